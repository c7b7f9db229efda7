"""Defines ``caesura scenario``, which serves several models under a policy."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType

from caesura.api import UsageError
from caesura.commands import option_choices
from caesura.commands.options import (
    CheckOutputs,
    Csv,
    Devices,
    Json,
    Live,
    Page,
    ParamsFile,
    Placement,
    PolicyOptions,
    Set,
    check_form,
    check_writable,
    policy_options,
)
from caesura.views import LiveView, Progress, complain, json_text, line, tell, to_csv, width, write
from sim import BACKENDS_HELP

if TYPE_CHECKING:
    from caesura.certificate.promised_run import PromiseRefused
    from caesura.scenario.outcome import Outcome
    from caesura.scenario.schema import Scenario


def scenario(
    file: Annotated[Path, typer.Argument(help="a scenario file (.toml); docs/scheduling.md describes them")],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="what decides: idle_time (default), fcfs ..., module:Class or file.py:Class; repeatable",
            autocompletion=option_choices.policies,
        ),
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(
            help=f"synthetic (given durations), {BACKENDS_HELP}; by default what the models need",
            autocompletion=option_choices.any_backends,
        ),
    ] = None,
    placement: Placement = "queue_time",
    option: PolicyOptions = None,
    params: ParamsFile = None,
    changes: Set = None,
    devices: Devices = None,
    as_json: Json = False,
    as_csv: Csv = False,
    trace: Annotated[Path | None, typer.Option(help="write a timeline for Perfetto to this file")] = None,
    chart: Annotated[bool, typer.Option("--chart", help="draw what ran when as text, a letter for each model")] = False,
    page: Page = None,
    live: Live = False,
    check: CheckOutputs = False,
    certified: Annotated[
        bool,
        typer.Option("--certified", help="enforce the certificate of caesura admit; tell how promises are kept"),
    ] = False,
) -> None:
    """Serve the models of a scenario under a policy and report ANTT, STP, deadlines missed and utilisation."""
    from caesura.certificate.promise_report import told_violations  # loaded where they are used
    from caesura.certificate.promised_run import PromiseRefused
    from caesura.scenario.outcome_chart import outcome_chart
    from caesura.scenario.reports import comparison, to_rows, to_table
    from caesura.scenario.runner import backend_of, run_scenario
    from caesura.scenario.schema import load_scenario

    check_form(as_json, as_csv)
    check_writable(trace, page)
    policies: Sequence[str | None] = policy or [None]
    chosen = policy_options(option)
    if (trace or page) and len(policies) > 1:
        raise UsageError("--trace and --report tell of one run: give one --policy")
    if certified and len(policies) > 1:
        raise UsageError("--certified: certificates are for fcfs: leave --policy out")
    if chart and (as_json or as_csv):
        raise UsageError("--chart draws for people: leave --json and --csv out")
    if live and (backend or backend_of(load_scenario(file))) == "synthetic":
        raise UsageError("--live shows engines of a device, which the synthetic machine has not: choose a --backend")
    charts: list[RenderableType] = []

    def drawn(scenario: "Scenario", outcome: "Outcome") -> None:
        charts.append(outcome_chart(outcome, scenario.time_unit, width()))

    try:
        with LiveView() if live else Progress() as progress:
            results = [
                run_scenario(
                    file, name, backend, certified=certified, placement=placement, options=chosen, trace=trace,
                    params=params, changes=changes or (), devices=devices, page=page,
                    seen=drawn if chart else None, progress=progress, check=check,
                )
                for name in policies
            ]  # fmt: skip
    except PromiseRefused as refusal:
        _tell_refusal(refusal, as_json)
        raise typer.Exit(1) from None
    for name, shown in zip(policies, charts, strict=False):
        tell(Group(line(f"{name}:"), shown) if len(policies) > 1 else shown)
    if as_json:
        write(json_text(results[0] if len(results) == 1 else results))
    elif as_csv:
        write(to_csv(to_rows(results)))
    else:
        tell(to_table(results[0]) if len(results) == 1 else comparison(results))
    broken = told_violations(results[0].get("promises", []))
    for text in broken:
        complain(text)
    if broken or any(result["mismatches"] for result in results):
        raise typer.Exit(1)


def _tell_refusal(refusal: "PromiseRefused", as_json: bool) -> None:
    """Tell what ``caesura admit`` tells of a scenario that it refuses."""
    from caesura.certificate.certificate_report import certificate_fields, certificate_text

    found = refusal.certificate
    if as_json:
        write(json_text(certificate_fields(found)))
    else:
        tell(certificate_text(found))
