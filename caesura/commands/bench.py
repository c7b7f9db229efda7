"""Defines ``caesura bench``, which holds figures of a benchmark against what they must reach."""

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer
from rich.console import RenderableType

from caesura.api import UsageError
from caesura.bench import benchmarks
from caesura.commands.option_choices import backends
from caesura.commands.options import (
    Csv,
    Json,
    Page,
    ParamsFile,
    Preset,
    Set,
    check_form,
    check_writable,
    seconds,
)
from caesura.machines import machine
from caesura.views import Progress, json_text, say, tell, to_csv, write
from sim import BACKENDS_HELP, DEFAULT_BACKEND


class BenchResult(Protocol):
    """Holds what a benchmark says; ``benchmarks.report`` makes it."""

    @property
    def ok(self) -> bool:
        """Return whether every row meets what it must."""

    def to_dict(self) -> dict[str, Any]:
        """Return the result as data for JSON."""

    def to_rows(self) -> list[dict[str, Any]]:
        """Return the result as rows for comma-separated values."""

    def to_tables(self) -> RenderableType:
        """Return the result as tables for a terminal."""


def bench(
    name: Annotated[
        str,
        typer.Argument(
            help="utilisation, simspeed, preemption, scheduling, tenants, loads, accuracy, modelspeed, order, kernels, "
            "attention, networks, language, memory, everyday, trust; all (with --record); stale: recorded figures that "
            "may no longer hold"
        ),
    ],
    preset: Preset = None,
    params: ParamsFile = None,
    changes: Set = None,
    backend: Annotated[
        str | None,
        typer.Option(
            "--backend",
            help=f"{BACKENDS_HELP}; by default {DEFAULT_BACKEND}, for networks model",
            autocompletion=backends,
        ),
    ] = None,
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
            help="trust: time for all campaigns and what they build, such as 60s, 10m; --record: for rows to begin",
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
    report = benchmarks("report", "caesura bench")
    if name == "trust" and mutants:
        result = report.run_mutants(only=only or (), progress_file=resume)
    elif name == "trust":
        budget = math.inf if time_budget is None else seconds(time_budget)
        result = report.run_trust(
            backend or DEFAULT_BACKEND,
            seconds=budget,
            seed=seed,
            campaigns=campaign or (),
            full=full,
            progress_file=resume,
        )
    else:
        hardware = machine(preset or (None if params else "base"), params, changes or ()) or "base"
        result = report.run_bench(name, hardware, backend, only=only or (), everything=everything, check_layers=check)
    _show_bench(result, as_json, as_csv, page)


def _needs_checkout(command: str) -> None:
    if not Path(__file__).parents[2].joinpath("pyproject.toml").is_file():
        raise UsageError(
            f"{command} needs a checkout of Caesura: it reads the sources and docs that figures are kept in"
        )


def _show_stale(as_json: bool) -> None:
    _needs_checkout("caesura bench stale")
    stale = benchmarks("ledger.stale", "caesura bench stale")
    rows = stale.stale_rows()
    if as_json:
        write(json_text([dataclasses.asdict(row) for row in rows]))
    elif rows:
        tell(stale.to_table(rows))
    if rows:
        raise typer.Exit(1)


def _record(name: str, only: Sequence[str], budget: float) -> None:
    _needs_checkout("caesura bench --record")
    result = benchmarks("ledger.record", "caesura bench --record").record(name, only, seconds=budget, told=say)
    benchmarks("ledger.pages", "caesura bench --record").main([])
    if result.left:
        say(f"left for another call: {', '.join(result.left)}")
    if not result.ok:
        raise typer.Exit(1)


def _show_bench(report: BenchResult, as_json: bool, as_csv: bool, page: Path | None) -> None:
    if page:
        from caesura.views import write_bench_page

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
