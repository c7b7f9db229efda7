"""Defines ``caesura bench``, which holds figures of a benchmark against what they must reach."""

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from caesura.api import UsageError
from caesura.comma_separated import to_csv
from caesura.json_form import json_text
from caesura.machines import machine
from caesura.options import Backend, Csv, Json, Page, ParamsFile, Preset, Set, check_form, check_writable, seconds
from caesura.progress import Progress
from caesura.terminal import say, tell, write
from sim import DEFAULT_BACKEND

if TYPE_CHECKING:
    from caesura.bench import BenchResult


def bench(
    name: Annotated[
        str,
        typer.Argument(
            help="utilisation, simspeed, preemption, scheduling, accuracy, modelspeed, order, kernels, attention, "
            "trust; all (with --record); stale: recorded figures that may no longer hold"
        ),
    ],
    preset: Preset = None,
    params: ParamsFile = None,
    changes: Set = None,
    backend: Backend = DEFAULT_BACKEND,
    as_json: Json = False,
    as_csv: Csv = False,
    only: Annotated[list[str] | None, typer.Option(help="measure only figures that match, such as 'conv_*'")] = None,
    everything: Annotated[bool, typer.Option("--all", help="also measure what takes many minutes")] = False,
    check: Annotated[bool, typer.Option("--check", help="compare every layer with onnxruntime")] = False,
    campaign: Annotated[list[str] | None, typer.Option(help="trust: run only these campaigns")] = None,
    time_budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            help="trust: time for all campaigns without builds, such as 60s, 10m; --record: for rows to begin",
        ),
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="write the figures to benchmarks/figures.json; of all, what is stale")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="trust: many more rounds; see --resume")] = False,
    mutants: Annotated[
        bool, typer.Option("--mutants", help="trust: do the campaigns find breakages? --only R1,R2 names some")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="trust: number of the first round")] = 0,
    resume: Annotated[
        Path | None, typer.Option(help="trust: go on where this file says, and note progress there")
    ] = None,
    page: Page = None,
) -> None:
    """Measure a benchmark's figures; exit code 1 if one misses what it must reach or an output is wrong.

    ``trust`` attacks the device in campaigns, on hardware of its own; it takes no preset. A run that did not come to
    the rounds or to the situations that a campaign needs in order to say anything is one that failed.

    ``stale`` lists recorded figures whose files changed, with exit code 1 if there are any.
    """
    from caesura.bench import run_bench, run_mutants, run_trust

    check_form(as_json, as_csv)
    check_writable(page)
    if name == "stale":
        _show_stale(as_json)
        return
    if name == "all" and not record:
        raise UsageError("all benchmarks together are only recorded: caesura bench all --record")
    if record:
        if any((preset, params, changes, campaign, full, resume, page, as_json, as_csv, everything, check)):
            raise UsageError("--record takes only --only and --budget: benchmarks/ledger/plan.py says what is measured")
        _record(name, only or (), seconds(time_budget) if time_budget else math.inf)
        return
    if name == "trust":
        if mutants:
            report = run_mutants(only=only or (), progress_file=resume)
        else:
            budget = math.inf if time_budget is None else seconds(time_budget)
            report = run_trust(
                backend, seconds=budget, seed=seed, campaigns=campaign or (), full=full, progress_file=resume
            )
        _show_bench(report, as_json, as_csv, page)
        return
    hardware = machine(preset or (None if params else "base"), params, changes or ())
    report = run_bench(name, hardware or "base", backend, only=only or (), everything=everything, check_layers=check)
    _show_bench(report, as_json, as_csv, page)


def _show_stale(as_json: bool) -> None:
    from caesura.bench import stale_figures

    rows, shown = stale_figures()
    if as_json:
        write(json_text([dataclasses.asdict(row) for row in rows]))
    elif rows:
        tell(shown)
    if rows:
        raise typer.Exit(1)


def _record(name: str, only: Sequence[str], budget: float) -> None:
    from caesura.bench import record_figures

    ok, left = record_figures(name, only, seconds=budget, told=say)
    if left:
        say(f"left for another call: {', '.join(left)}")
    if not ok:
        raise typer.Exit(1)


def _show_bench(report: "BenchResult", as_json: bool, as_csv: bool, page: Path | None) -> None:
    if page:
        from caesura.page.bench_page import write_bench_page

        with Progress() as progress:
            progress.task(f"writing {page}")
            write_bench_page(page, report.to_dict())
    if as_json:
        write(json_text(report.to_dict()))
    elif as_csv:
        write(to_csv(report.to_rows()))
    else:
        tell(report.to_tables())
    if not report.ok:
        raise typer.Exit(1)
