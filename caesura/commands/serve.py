"""Defines ``caesura serve``, which serves requests for models of one's own and tells how each model fared."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType

from caesura.api import UsageError
from caesura.commands import option_choices
from caesura.commands.options import (
    Backend,
    CheckOutputs,
    Csv,
    Devices,
    Json,
    Page,
    Placement,
    PolicyOptions,
    check_form,
    check_writable,
    policy_options,
)
from caesura.compilation import Compilation, takes_compilation
from caesura.views import Progress, json_text, line, tell, to_csv, width, write
from sim import BACKENDS

if TYPE_CHECKING:
    from caesura.scenario import Served

Chart = Annotated[bool, typer.Option("--chart", help="draw what ran when as text, a letter for each model")]


@takes_compilation
def serve(
    files: Annotated[
        list[Path], typer.Argument(help="a scenario file (.toml), or models: ONNX files and compiled images (.cimg)")
    ],
    compilation: Compilation,
    policy: Annotated[
        str | None, typer.Option(help="what decides, as for caesura scenario", autocompletion=option_choices.policies)
    ] = None,
    backend: Backend = "model",
    placement: Placement = "queue_time",
    option: PolicyOptions = None,
    requests: Annotated[
        int | None, typer.Option(min=1, help="models: how many of each, one after the other (default: 10)")
    ] = None,
    devices: Devices = None,
    check: CheckOutputs = False,
    as_json: Json = False,
    as_csv: Csv = False,
    trace: Annotated[Path | None, typer.Option(help="write a timeline for Perfetto to this file")] = None,
    chart: Chart = False,
    page: Page = None,
) -> None:
    """Serve requests for models of your own side by side, and tell how each model fared."""
    from caesura.commands.served_scenario import scenario_of  # loaded where they are used
    from caesura.scenario import serve as served_by

    check_form(as_json, as_csv)
    check_writable(trace, page)
    if chart and (as_json or as_csv):
        raise UsageError("--chart draws for people: leave --json and --csv out")
    if backend not in BACKENDS:
        raise UsageError(f"caesura serve runs models, which backend {backend!r} has not: use {', '.join(BACKENDS)}")
    scenario, folder = scenario_of(files, compilation, requests, devices)
    with Progress() as progress:
        served = served_by(
            scenario, policy, backend, folder=folder, check=check, placement=placement, options=policy_options(option),
            trace=trace, page=page, jobs=compilation.jobs, cache=compilation.cache, progress=progress,
        )  # fmt: skip
    if as_json:
        write(json_text(served.result))
    elif as_csv:
        write(to_csv(served.result["models"]))
    else:
        tell(Group(*_told(served, chart)))
    if served.mismatches:
        raise typer.Exit(1)


def _told(served: "Served", chart: bool) -> list[RenderableType]:
    """Return what people read: the head, notes, a table of models, what was compared, and a chart if it is asked
    for."""
    from caesura.scenario.device_report import device_tables
    from caesura.scenario.model_report import models_tables
    from caesura.scenario.outcome_chart import outcome_chart

    result, unit = served.result, served.scenario.time_unit
    asked = f"{result['requests']} requests under {result['policy']} ({result['backend']})"
    ended = sum(one.requests - one.dropped for one in served.models)
    equal = f"{len(served.mismatches)} DIFFER" if served.mismatches else "all equal"
    rest = "" if result["checked"] >= ended else "; --check compares all"
    drawn = [outcome_chart(served.outcome, unit, width())] if chart else []
    return [
        line(f"{result['scenario']}: {asked} in {result['makespan']:,.0f} {unit}"),
        *(line(f"note: {note}", "yellow") for note in result["notes"]),
        *(table.rich() for table in [*models_tables(result["models"], unit), *device_tables(result["devices"])]),
        line(f"outputs: {result['checked']} of {ended} compared with those of the models alone: {equal}{rest}"),
        *drawn,
    ]
