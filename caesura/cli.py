"""The command line: ``caesura run | quantise | compile | info | disasm | verilog | profile | retime | ...``.

Exit codes: 0 success, 1 a check that failed, 2 an error of the user's making or of the device.
"""

import json
import sys
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console, Group
from rich.text import Text

from caesura import api, show
from caesura.comma_separated import to_csv
from caesura.commands.quantise import quantise
from caesura.commands.run import run
from caesura.latency import latency_fields, latency_table
from caesura.machine import machine, machine_of
from caesura.options import (
    Backend,
    Batch,
    Budget,
    CancelAt,
    Csv,
    Engines,
    Fallback,
    Interval,
    Jobs,
    Json,
    Lv2Limit,
    MaxLive,
    NoCache,
    NoRegions,
    NoSplit,
    Order,
    Page,
    ParamsFile,
    Placed,
    Preset,
    Set,
    SpillBound,
    check_form,
    compile_options,
    engine_count,
    image_of,
    is_image,
    seconds,
)  # fmt: skip
from caesura.order_table import (
    has_choice,
    measured_fields,
    measured_line,
    order_fields,
    order_table,
    tell_measured,
)
from caesura.progress import Progress, estimated_cycles
from caesura.show_points import point_fields, points_over, points_summary, points_table
from compiler.ir import CompileError, Graph
from hw.contract.image import Image, ImageError
from hw.contract.isa import IsaError
from hw.contract.params import PRESETS, ParamError
from sim.backends import BACKENDS_HELP, DEFAULT_BACKEND
from sim.bus import BusError, BusTimeout
from sw.driver import DriverError
from sw.runtime import InputError

if TYPE_CHECKING:
    from caesura.bench import BenchResult

app = typer.Typer(
    name="caesura",
    help="An open NPU: compile ONNX models and run them on its RTL.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _told_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"caesura {version('caesura')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_told_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    """An open NPU: compile ONNX models and run them on its RTL."""


app.command()(quantise)


app.command()(run)


@app.command()
def compile(
    model: Annotated[Path, typer.Argument(help="an ONNX model")],
    output: Annotated[Path, typer.Option("--output", "-o", help="where to write the image")],
    preset: Preset = None,
    params: ParamsFile = None,
    changes: Set = None,
    engines: Engines = None,
    placed: Placed = False,
    order: Order = "search",
    budget: Budget = None,
    no_regions: NoRegions = False,
    no_split: NoSplit = False,
    fallback: Fallback = False,
    batch: Batch = None,
    cancel_interval: Interval = None,
    cancel_max_live: MaxLive = None,
    cancel_at: CancelAt = "both",
    cancel_spill_bound: SpillBound = None,
    lv2_limit: Lv2Limit = None,
    jobs: Jobs = None,
    no_cache: NoCache = False,
    as_json: Json = False,
) -> None:
    """Compile an ONNX model to an image, and report the search for the order of its layers."""
    options = compile_options(
        cancel_interval, cancel_max_live, cancel_at, cancel_spill_bound, lv2_limit, placed=placed, order=order,
        budget=budget, no_regions=no_regions, no_split=no_split,
    )  # fmt: skip
    hardware = machine(preset, params, changes or ()) or "tiny"
    with Progress() as progress:
        compiled = api.compile_with_report(
            model, hardware, engines=engine_count(engines), fallback=fallback, options=options,
            told=partial(tell_measured, progress), jobs=jobs, cache=not no_cache, batch=batch or 1,
        )  # fmt: skip
    image, orders = compiled.image, compiled.report.orders
    image.save(output)
    if as_json:
        sizes = {"bytes": output.stat().st_size, "layers": len(image.meta.layers), "jobs": len(image.meta.jobs)}
        fields = {"order": order_fields(orders), **measured_fields(compiled.measured)}
        typer.echo(json.dumps({"image": str(output), **sizes, **fields}))
        return
    if has_choice(orders):
        show.tell(order_table(orders))
    if compiled.measured:
        typer.echo(measured_line(compiled.measured))
    typer.echo(
        f"{output}: {output.stat().st_size:,} bytes, {len(image.meta.layers)} layers, {len(image.meta.jobs)} jobs, "
        f"for {image.meta.params['name']}"
    )
    if (told := points_over(image, cancel_max_live or 0)) is not None:
        typer.echo(told)


@app.command()
def info(
    target: Annotated[str, typer.Argument(help="an image, an ONNX model, a preset, or a TOML file of parameters")],
    changes: Set = None,
    as_json: Json = False,
    fallback: Fallback = False,
    points: Annotated[bool, typer.Option("--points", help="list an image's cancellation points")] = False,
) -> None:
    """Show what an image, a model or a machine holds."""
    path, params = Path(target), machine_of(target, changes or ())
    if params is not None:
        result, plain = show.show_params(params), show.params_fields(params)
    elif changes:
        raise api.UsageError(f"{target}: --set changes a preset or a TOML file of parameters, and this is neither")
    elif is_image(path):
        image = Image.load(path)
        listed = [points_table(image)] if points else []
        result = Group(show.show_image(image), *listed, points_summary(image), latency_table(image))
        plain = {**show.image_fields(image), "cancellation": point_fields(image), "latency": latency_fields(image)}
    elif path.exists():
        graph = _graph(path, fallback)
        result, plain = show.show_graph(graph), show.graph_fields(graph)
    else:
        raise api.UsageError(f"{target}: no such file, and no preset of that name; presets are {', '.join(PRESETS)}")
    if as_json:
        typer.echo(json.dumps(plain))
    else:
        show.tell(result)


@app.command()
def disasm(image: Annotated[Path, typer.Argument(help="a compiled image (.cimg)")]) -> None:
    """Print the assembler text of an image."""
    typer.echo(show.listing(Image.load(image)))


@app.command()
def sweep(
    file: Annotated[Path, typer.Argument(help="what varies and what is run (.toml); docs/sweeps.md describes it")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="folder (default: out/NAME)")] = None,
    scheduler: Annotated[str | None, typer.Option(help="a Dask scheduler, such as tcp://head:8786")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="processes (default: one for each CPU)")] = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Run many machines, models and policies; what was run before is not run again. Exit code 1 if points failed."""
    from caesura.sweep.command import sweep_command

    check_form(as_json, as_csv)
    if sweep_command(file, output, scheduler, jobs, as_json, as_csv):
        raise typer.Exit(1)


@app.command()
def export(
    image: Annotated[Path, typer.Argument(help="a compiled image (.cimg)")],
    output: Annotated[Path, typer.Option("--output", "-o", help="file to write")],
) -> None:
    """Write an image in flat form, for drivers in C that read no JSON."""
    from hw.contract.flat import flat

    raw = flat(Image.load(image))
    output.write_bytes(raw)
    typer.echo(f"{output}: {len(raw):,} bytes in flat form; see docs/flat-images.md")


@app.command()
def verilog(
    output: Annotated[Path, typer.Option("--output", "-o", help="folder for the files")],
    preset: Preset = None,
    params: ParamsFile = None,
    changes: Set = None,
) -> None:
    """Write the accelerator as Verilog."""
    hardware = machine(preset, params, changes or ()) or api.resolve("tiny")
    from sim.rtl.verilog import write_verilog  # after the check, as it loads Amaranth

    output.mkdir(parents=True, exist_ok=True)
    with Progress() as progress:
        progress.task(f"elaborating {hardware.name} and writing Verilog, about a minute for large machines")
        write_verilog(hardware, output)
    for path in sorted(output.iterdir()):
        typer.echo(f"{path}: {path.stat().st_size:,} bytes")


@app.command()
def profile(
    model: Annotated[Path, typer.Argument(help="an ONNX model, or a compiled image (.cimg)")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="where to write the image")] = None,
    preset: Preset = None,
    params: ParamsFile = None,
    changes: Set = None,
    backend: Backend = DEFAULT_BACKEND,
    as_json: Json = False,
    engines: Engines = None,
    placed: Placed = False,
    fallback: Fallback = False,
    lv2_limit: Lv2Limit = None,
) -> None:
    """Run a model alone once and store how long each layer loads and computes in its image."""
    from caesura.durations import measure, to_fields, to_table

    options = compile_options(None, None, "both", None, lv2_limit, placed=placed)
    image = image_of(model, machine(preset, params, changes or ()), engines, fallback, options)
    with Progress() as progress:
        progress.task("measuring durations", expected=estimated_cycles(image))
        measure(image, backend, progress.cycles)
    target = output or model.with_suffix(".cimg")
    image.save(target)
    if as_json:
        typer.echo(json.dumps({"image": str(target), **to_fields(image)}))
    else:
        show.tell(to_table(image))
        typer.echo(f"{target}: measured durations stored")


@app.command()
def retime(
    model: Annotated[Path, typer.Argument(help="an ONNX model, or a compiled image (.cimg)")],
    change: Annotated[
        list[str] | None,
        typer.Option(help="such as dram_latency=200 or dram_bandwidth=50,mac=0.5; repeatable, a run each"),
    ] = None,
    preset: Preset = None,
    params: ParamsFile = None,
    changes: Set = None,
    check: Annotated[bool, typer.Option("--check", help="also run the fast model under each change of DRAM")] = False,
    as_json: Json = False,
    engines: Engines = None,
    placed: Placed = False,
    fallback: Fallback = False,
    lv2_limit: Lv2Limit = None,
) -> None:
    """Run a model once on the fast model, then tell what it would take with another DRAM or with other units."""
    from caesura import retime as retiming

    options = compile_options(None, None, "both", None, lv2_limit, placed=placed)
    image = image_of(model, machine(preset, params, changes or ()), engines, fallback, options)
    with Progress() as progress:
        progress.task("recording a run", expected=estimated_cycles(image))
        variations = retiming.retime(image, change or (), check=check, progress=progress.cycles)
    if as_json:
        typer.echo(json.dumps(retiming.to_fields(image, variations)))
    else:
        show.tell(retiming.to_table(image, variations))


@app.command()
def bench(
    name: Annotated[
        str,
        typer.Argument(
            help="utilisation, simspeed, preemption, scheduling, accuracy, modelspeed, order, kernels, attention, trust"
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
        str, typer.Option("--budget", help="trust: time for all campaigns, such as 60s, 10m")
    ] = "60s",
    seed: Annotated[int, typer.Option(min=0, help="trust: of the first round")] = 0,
    resume: Annotated[
        Path | None, typer.Option(help="trust: go on where this file says, and note progress there")
    ] = None,
    page: Page = None,
) -> None:
    """Measure a benchmark's figures; exit code 1 if one misses what it must reach or an output is wrong.

    ``trust`` attacks the device in campaigns, on hardware of its own; it takes no preset.
    """
    from caesura.bench import run_bench, run_trust

    check_form(as_json, as_csv)
    if name == "trust":
        _show_bench(
            run_trust(backend, seconds=seconds(time_budget), seed=seed, campaigns=campaign or (), progress_file=resume),
            as_json,
            as_csv,
            page,
        )
        return
    hardware = machine(preset or (None if params else "base"), params, changes or ())
    report = run_bench(name, hardware or "base", backend, only=only or (), everything=everything, check_layers=check)
    _show_bench(report, as_json, as_csv, page)


def _show_bench(report: "BenchResult", as_json: bool, as_csv: bool, page: Path | None) -> None:
    if page:
        from caesura.page.bench_page import write_bench_page

        write_bench_page(page, report.to_dict())
    if as_json:
        typer.echo(json.dumps(report.to_dict()))
    elif as_csv:
        typer.echo(to_csv(report.to_rows()), nl=False)
    else:
        show.tell(report.to_tables())
    if not report.ok:
        raise typer.Exit(1)


@app.command()
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
    scenario_command(
        file, policy or ["idle_time"], backend, placement, option or (), as_json, trace, params, changes or (), page,
        as_csv=as_csv, draw=chart,
    )  # fmt: skip


def _graph(path: Path, fallback: bool) -> Graph:
    from compiler.frontend import import_model

    return import_model(path, fallback=fallback)


def user_errors() -> tuple[type[Exception], ...]:
    """Errors that are told in one message, without a traceback."""
    from sim.rtl.toolchain import BuildError
    from sim.simulators import NoWaveforms

    ours = (CompileError, ImageError, InputError, IsaError, ParamError, DriverError, api.UsageError)
    return (*ours, BusError, BusTimeout, BuildError, NoWaveforms, OSError)


def main() -> None:
    """Entry point of the ``caesura`` command."""
    try:
        app()
    except user_errors() as error:
        Console(stderr=True).print(Text(f"error: {error}", "red"), soft_wrap=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
