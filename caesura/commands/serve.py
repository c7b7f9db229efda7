"""Defines ``caesura serve``, which serves requests for models of one's own and tells how each model fared."""

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType

from caesura.api import UsageError
from caesura.commands.options import (
    CheckOutputs,
    Csv,
    Json,
    Page,
    Placement,
    PolicyOptions,
    check_form,
    check_writable,
    is_image,
    policy_options,
)
from caesura.compilation import Compilation, takes_compilation
from caesura.views import Progress, json_text, line, tell, to_csv, width, write
from compiler import Options
from hw.image import Image
from sim import BACKENDS_HELP

if TYPE_CHECKING:
    from caesura.scenario import ModelSpec, Scenario, Served

Chart = Annotated[bool, typer.Option("--chart", help="draw what ran when as text, a letter for each model")]


@takes_compilation
def serve(
    files: Annotated[
        list[Path], typer.Argument(help="a scenario file (.toml), or models: ONNX files and compiled images (.cimg)")
    ],
    compilation: Compilation,
    policy: Annotated[str, typer.Option(help="what decides, as for caesura scenario")] = "idle_time",
    backend: Annotated[str, typer.Option(help=BACKENDS_HELP)] = "model",
    placement: Placement = "queue_time",
    option: PolicyOptions = None,
    requests: Annotated[
        int | None, typer.Option(min=1, help="models: how many of each, one after the other (default: 10)")
    ] = None,
    check: CheckOutputs = False,
    as_json: Json = False,
    as_csv: Csv = False,
    trace: Annotated[Path | None, typer.Option(help="write a timeline for Perfetto to this file")] = None,
    chart: Chart = False,
    page: Page = None,
) -> None:
    """Serve requests for models of your own side by side, and tell how each model fared."""
    from caesura.scenario import serve as served_by  # loaded where it is used

    check_form(as_json, as_csv)
    check_writable(trace, page)
    if chart and (as_json or as_csv):
        raise UsageError("--chart draws for people: leave --json and --csv out")
    scenario, folder = _scenario(files, compilation, requests)
    with Progress() as progress:
        served = served_by(
            scenario, policy, backend, folder=folder, check=check, placement=placement, options=policy_options(option),
            trace=trace, page=page, progress=progress,
        )  # fmt: skip
    if as_json:
        write(json_text(served.result))
    elif as_csv:
        write(to_csv(served.result["models"]))
    else:
        tell(Group(*_told(served, chart)))
    if served.mismatches:
        raise typer.Exit(1)


# -- what is served ------------------------------------------------------------------------------------------
def _scenario(files: list[Path], compilation: Compilation, requests: int | None) -> "tuple[Scenario, Path]":
    """Return the scenario that is asked for, and the folder for paths in it."""
    if not any(file.suffix == ".toml" for file in files):
        return _of_models(files, compilation, requests or 10), Path()
    if len(files) > 1:
        raise UsageError(f"{files[0]}: a scenario file has its models in it: give it alone, or models alone")
    if given := [*compilation.compiler_flags(), *(["--requests"] if requests else [])]:
        raise UsageError(
            f"{files[0]}: the scenario says what is served and how it is compiled: leave {', '.join(given)} out"
        )
    return _from_file(files[0], compilation), files[0].parent


def _from_file(file: Path, compilation: Compilation) -> "Scenario":
    """Return the scenario in a file, on the machine that the command line names if it names one."""
    from caesura.scenario import ScenarioError, load_scenario, on_machine

    scenario = load_scenario(file)
    for name in scenario.used_models:
        if scenario.models[name].given(("onnx", "image", "workload")) == []:
            raise ScenarioError(
                f"{file}: model {name!r} has only layers with durations: caesura scenario runs it; give onnx or image"
            )
    if compilation.machine() is None:
        return scenario
    return on_machine(scenario, compilation.preset, compilation.params, compilation.changes)


def _of_models(files: list[Path], compilation: Compilation, requests: int) -> "Scenario":
    """Return a scenario of models alone, each in a closed loop. The machine is the one that is named, or that of the
    first image, or ``tiny``."""
    from caesura.scenario import MachineSpec, closed_loops, hardware_of

    names = [file.stem for file in files]
    if len(set(names)) < len(names):
        raise UsageError(f"two models are called {max(names, key=names.count)!r}: give files of different names")
    models = {name: _model(file, compilation) for name, file in zip(names, files, strict=True)}
    params = compilation.machine() or next((Image.load(file).params for file in files if is_image(file)), None)
    machine = MachineSpec() if params is None else MachineSpec(**hardware_of(params))
    return closed_loops(models, machine, requests, ", ".join(names))


def _model(file: Path, compilation: Compilation) -> "ModelSpec":
    """Return a model of the command line: an image, or one that is compiled as the flags say."""
    from caesura.scenario import ModelSpec

    if is_image(file):
        return ModelSpec(image=file)
    options = {one.name: getattr(compilation.options, one.name) for one in fields(Options) if one.name not in _KEYS}
    default = Options()
    return ModelSpec(
        onnx=file, engines=compilation.engines, fallback=compilation.fallback, batch=compilation.batch,
        sizes=dict(compilation.sizes), lv2_limit=compilation.options.lv2_limit or None, plan=compilation.plan,
        options={name: value for name, value in options.items() if value != getattr(default, name)},
    )  # fmt: skip


_KEYS = ("observe", "engines", "placed", "lv2_limit")  #: options that are keys of a model


# -- what is told --------------------------------------------------------------------------------------------
def _told(served: "Served", chart: bool) -> list[RenderableType]:
    """Return what people read: the head, notes, a table of models, what was compared, and a chart if it is asked
    for."""
    from caesura.scenario.model_report import models_table
    from caesura.scenario.outcome_chart import outcome_chart

    result, unit = served.result, served.scenario.time_unit
    asked = f"{result['requests']} requests under {result['policy']} ({result['backend']})"
    checked = f"outputs: {result['checked']} of {result['requests']} compared with those of the models alone"
    drawn = [outcome_chart(served.outcome, unit, width())] if chart else []
    return [
        line(f"{result['scenario']}: {asked} in {result['makespan']:,.0f} {unit}"),
        *(line(f"note: {note}", "yellow") for note in result["notes"]),
        models_table(result["models"], unit).rich(),
        line(f"{checked}: {'all equal' if not served.mismatches else f'{len(served.mismatches)} DIFFER'}"),
        *drawn,
    ]
