"""Defines ``caesura scenario``, which serves several models under a policy."""

from pathlib import Path
from typing import Annotated

import typer

from caesura.options import Csv, Json, Page, ParamsFile, Set, check_form, check_writable
from sim import BACKENDS_HELP


def scenario(
    file: Annotated[Path, typer.Argument(help="a scenario file (.toml); docs/scheduling.md describes them")],
    policy: Annotated[
        list[str] | None,
        typer.Option(help="what decides: idle_time (default), fcfs ..., or my.py:Class; repeatable, in one table"),
    ] = None,
    backend: Annotated[
        str | None, typer.Option(help=f"synthetic (given durations), {BACKENDS_HELP}; by default what the models need")
    ] = None,
    placement: Annotated[str, typer.Option(help="which engine a layer goes to")] = "queue_time",
    option: Annotated[list[str] | None, typer.Option(help="option of the policy, such as window=3")] = None,
    params: ParamsFile = None,
    changes: Set = None,
    as_json: Json = False,
    as_csv: Csv = False,
    trace: Annotated[Path | None, typer.Option(help="write a timeline for Perfetto to this file")] = None,
    chart: Annotated[bool, typer.Option("--chart", help="draw what ran when as text, a letter for each model")] = False,
    page: Page = None,
) -> None:
    """Serve the models of a scenario under a policy and report ANTT, STP, deadlines missed and utilisation."""
    from caesura.scenario.command import scenario_command

    check_form(as_json, as_csv)
    check_writable(trace, page)
    scenario_command(
        file, policy or ["idle_time"], backend, placement, option or (), as_json, trace, params, changes or (), page,
        as_csv=as_csv, draw=chart,
    )  # fmt: skip
