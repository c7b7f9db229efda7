"""Defines ``caesura run``, which runs a model on the RTL or on the fast model of it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from caesura import api, inputs
from caesura.backends import chosen_backend
from caesura.comma_separated import to_csv
from caesura.json_text import json_text
from caesura.machine import machine
from caesura.options import (
    AnyBackend,
    Batch,
    Budget,
    CancelAt,
    Csv,
    Dim,
    Engines,
    Fallback,
    Interval,
    Json,
    Lv2Limit,
    MaxLive,
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
    check_writable,
    compile_options,
    image_of,
    is_image,
    sizes_of,
)  # fmt: skip
from caesura.outputs import save_outputs
from caesura.progress import Progress, estimated_cycles
from caesura.shares import shares
from caesura.terminal import tell, write
from hw.contract.image import Image
from sw.driver import HandledInterrupt
from sw.runtime import RunStats

if TYPE_CHECKING:
    from caesura.check import CheckResult
    from caesura.profile import Profile
    from sim.timing.runs import InstructionRun


def run(
    model: Annotated[Path, typer.Argument(help="an ONNX model, or a compiled image (.cimg)")],
    input: Annotated[
        Path | None, typer.Option(help="inputs: .npz, or .npy for one input; random (seeded) if absent")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="keep the outputs in this .npz file")] = None,
    preset: Preset = None,
    params: ParamsFile = None,
    changes: Set = None,
    backend: AnyBackend = None,
    check: Annotated[bool, typer.Option("--check", help="compare with onnxruntime, layer by layer")] = False,
    as_json: Json = False,
    as_csv: Csv = False,
    vcd: Annotated[Path | None, typer.Option(help="write waveforms to this file (cxxrtl, pysim)")] = None,
    samples: Annotated[int, typer.Option(min=1, help="how many samples to run")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="seed of random inputs")] = 0,
    engines: Engines = None,
    placed: Placed = False,
    order: Order = "search",
    budget: Budget = None,
    no_regions: NoRegions = False,
    no_split: NoSplit = False,
    fallback: Fallback = False,
    dim: Dim = None,
    batch: Batch = None,
    cancel_interval: Interval = None,
    cancel_max_live: MaxLive = None,
    cancel_at: CancelAt = "both",
    cancel_spill_bound: SpillBound = None,
    lv2_limit: Lv2Limit = None,
    keep_weights: Annotated[
        bool, typer.Option("--keep-weights", help="leave weights that fit in LV2 there from one sample to the next")
    ] = False,
    profile: Annotated[bool, typer.Option("--profile", help="show where the MAC cycles went, per layer")] = False,
    trace: Annotated[Path | None, typer.Option(help="write a timeline for Perfetto to this file")] = None,
    page: Page = None,
    units: Annotated[
        bool, typer.Option("--units", help="with --trace or --report: a line for each unit on RTL too, slowly")
    ] = False,
) -> None:
    """Run a model on the RTL, or on the fast model of it, and report outputs, cycles and utilisation per layer."""
    from caesura.report import RunReport

    check_form(as_json, as_csv)
    check_writable(output, vcd, trace, page)
    if output and output.suffix != ".npz":
        raise api.UsageError(f"--output {output}: must be an .npz file")
    if as_csv and profile:
        raise api.UsageError("--csv prints one table, that of the layers: take --json with --profile")
    options = compile_options(
        cancel_interval, cancel_max_live, cancel_at, cancel_spill_bound, lv2_limit, placed=placed, order=order,
        budget=budget, no_regions=no_regions, no_split=no_split,
    )  # fmt: skip
    image = image_of(model, machine(preset, params, changes or ()), engines, fallback, options, batch, dim or ())
    if check and is_image(model):
        raise api.UsageError(f"{model}: --check compares with the ONNX model; give the .onnx file instead of the image")
    data = inputs.load_samples(input, image, samples) if input else inputs.random_samples(image, samples, seed)
    origin = str(input) if input else f"random, seed {seed}"
    backend = chosen_backend(backend, image.params)
    report = RunReport(image.meta.model, str(image.meta.params["name"]), backend, origin)
    report.host_steps = [f"{', '.join(s.outputs)}: {s.reason}" for s in image.meta.steps if s.kind == "host"]
    report.shares = shares(image)
    report.labels = inputs.load_labels(input, samples) if input else None
    if units and ((trace is None and page is None) or vcd is not None):
        raise api.UsageError("--units adds lines to the timeline that --trace or --report writes, without --vcd")
    # The fast model knows when its units run; on the RTL that has to be watched for.
    recorded = units or (backend == "model" and vcd is None and trace is not None)
    with Progress() as progress, _device(image, backend, vcd, progress, recorded=recorded) as device:
        loaded, expected = device.load(image, keep_weights=keep_weights), estimated_cycles(image)
        for number, sample in enumerate(data, 1):
            left = expected * (len(data) - number + 1)
            progress.task(f"sample {number} of {len(data)}", cycle=device.bus.cycle, expected=left)
            outputs, stats = loaded.run(sample)
            expected = stats.latency  # of the samples to come: better than the compiler's estimate
            report.outputs.append(outputs)
            report.stats.append(stats)
        device.unload(loaded)
        if check:
            progress.task("checking layer by layer")
            report.check = _check(device, model, fallback, batch or 1, sizes_of(dim or ()), data, report.outputs)
        runs, interrupts = getattr(device.bus, "runs", []), device.driver.handled_interrupts
        if trace:
            _write_trace(trace, report.stats, runs, interrupts)
    if page:
        from caesura.page.run_page import write_run_page

        with Progress() as progress:
            progress.task(f"writing {page}")
            write_run_page(page, report, image, runs, interrupts)
    if output:
        save_outputs(output, report.outputs)
    where = _profile(image, report.stats[0]) if profile else None
    if as_json:
        write(json_text({**report.to_dict(), **({"profile": where.to_dict()} if where else {})}))
    elif as_csv:
        write(to_csv(report.to_rows()))
    else:
        tell(report.to_tables())
        if where:
            _print_profile(where)
    if report.check is not None and not report.check.ok:
        raise typer.Exit(1)


def _check(
    device: api.Device,
    path: Path,
    fallback: bool,
    batch: int,
    sizes: dict[str, int],
    data: list[inputs.Sample],
    outputs: list[inputs.Sample],
) -> "CheckResult":
    from caesura.check import check
    from compiler.compile import compile_with_report

    # On one engine, whatever the run used: copies for observation are not ordered behind the other engines' parts.
    observing = compile_with_report(
        path, device.params, fallback=fallback, observe=True, engines=1, batch=batch, sizes=sizes
    )
    return check(device, path, observing.image, observing.graph, data, outputs)


def _device(image: Image, backend: str, vcd: Path | None, progress: Progress, *, recorded: bool) -> api.Device:
    """Return a device, which keeps when its units run if it shall be ``recorded``."""
    if not recorded:
        return api.open(image.params, backend, vcd=vcd, progress=progress.cycles)
    from sim.recording import NoRecording, open_recorded

    try:
        return api.Device(open_recorded(image.params, backend, progress.cycles))
    except NoRecording as error:
        raise api.UsageError(f"--units: {error}") from None


def _write_trace(
    path: Path, stats: list[RunStats], runs: "list[InstructionRun]", interrupts: list[HandledInterrupt]
) -> None:
    from caesura.run_trace import job_counters, run_spans
    from sim.trace import write_trace

    write_trace(path, run_spans(stats, runs, interrupts), job_counters([job for run in stats for job in run.jobs]))


def _profile(image: Image, stats: RunStats) -> "Profile":
    from caesura.profile import profile

    return profile(image, stats.jobs)


def _print_profile(where: "Profile") -> None:
    from caesura.profile_table import profile_table

    tell(profile_table(where))
