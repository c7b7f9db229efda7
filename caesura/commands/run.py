"""Defines ``caesura run``, which runs a model on the RTL or on the fast model of it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from caesura import api, checks, profiles, samples as inputs
from caesura.commands.options import AnyBackend, Csv, Json, Page, check_form, check_writable, chosen_backend, is_image
from caesura.commands.run_lengths import run_varying, varies
from caesura.commands.run_steps import run_steps, steps_of
from caesura.commands.run_urgent import run_with_urgent
from caesura.compilation import Compilation, image_of, takes_compilation
from caesura.steps_on_cpu import cpu_steps
from caesura.views import Progress, RunReport, job_counters, json_text, profile_table, run_spans, shares, tell, write
from hw.image import Image
from sim import NoRecording, open_recorded, write_trace
from sim.cost import inference


@takes_compilation
def run(
    model: Annotated[Path, typer.Argument(help="an ONNX model, or a compiled image (.cimg)")],
    compilation: Compilation,
    input: Annotated[
        Path | None, typer.Option(help="inputs: .npz, or .npy for one input; random (seeded) if absent")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="keep the outputs in this .npz file")] = None,
    backend: AnyBackend = None,
    device: Annotated[
        str | None, typer.Option(help="a board in place of a backend: serial:PORT, or serial:PORT@BAUD")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="compare with onnxruntime, layer by layer")] = False,
    as_json: Json = False,
    as_csv: Csv = False,
    vcd: Annotated[Path | None, typer.Option(help="write waveforms to this file (cxxrtl, pysim)")] = None,
    samples: Annotated[
        int | None,
        typer.Option(min=1, help="how many samples to run (default: 1; all, where they vary in length)"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="seed of random inputs")] = 0,
    keep_weights: Annotated[
        bool, typer.Option("--keep-weights", help="leave weights that fit in LV2 there from one sample to the next")
    ] = False,
    profile: Annotated[bool, typer.Option("--profile", help="show where the MAC cycles went, per layer")] = False,
    trace: Annotated[Path | None, typer.Option(help="write a timeline for Perfetto to this file")] = None,
    page: Page = None,
    units: Annotated[
        bool, typer.Option("--units", help="with --trace or --report: a line for each unit on RTL too, slowly")
    ] = False,
    urgent: Annotated[
        Path | None, typer.Option(help="a model, or an image, that is more urgent and arrives meanwhile")
    ] = None,
    at: Annotated[
        int | None, typer.Option(min=0, help="--urgent: cycle of its arrival (default: in the middle)")
    ] = None,
    every: Annotated[int | None, typer.Option(min=1, help="--urgent: it arrives again after so many cycles")] = None,
    live: Annotated[bool, typer.Option("--live", help="--urgent: show engines, queues and requests meanwhile")] = False,
    kernels: Annotated[
        Path | None, typer.Option(help="of a model whose inputs vary in length: a library of kernels (.ckl)")
    ] = None,
) -> None:
    """Run a model on the RTL, or on the fast model of it, and report outputs, cycles and utilisation per layer."""
    check_form(as_json, as_csv)
    check_writable(output, vcd, trace, page)
    if urgent is None and not is_image(model) and (states := steps_of(model, input)):
        _refuse_for_varying(
            {"--csv": as_csv, "--vcd": vcd, "--trace": trace, "--profile": profile, "--report": page, "--units": units,
             "--kernels": kernels, "--device": device},
            "steps of a sequence are inferences of their own",
        )  # fmt: skip
        assert input is not None
        run_steps(
            model, compilation, states, input, samples=samples, output=output, backend=backend, check=check,
            as_json=as_json,
        )  # fmt: skip
        return
    if input is not None and urgent is None and not is_image(model) and varies(model, compilation):
        _refuse_for_varying(
            {
                "--csv": as_csv,
                "--vcd": vcd,
                "--trace": trace,
                "--profile": profile,
                "--report": page,
                "--units": units,
                "--device": device,
            },
            "inputs that vary in length have an image each",
        )
        run_varying(
            model, compilation, input, kernels=kernels, samples=samples, output=output, backend=backend, check=check,
            as_json=as_json,
        )  # fmt: skip
        return
    if kernels is not None:
        raise api.UsageError("--kernels is for a model whose inputs vary in length, and --input with such samples")
    samples = samples or 1
    if urgent is not None:
        _refuse_beside_urgent(
            {"--check": check, "--csv": as_csv, "--vcd": vcd, "--samples": samples > 1, "--profile": profile,
             "--report": page, "--units": units, "--device": device}
        )  # fmt: skip
        run_with_urgent(
            model, urgent, compilation, at=at, every=every, input=input, seed=seed, output=output, backend=backend,
            as_json=as_json, trace=trace, keep_weights=keep_weights,
            live=live,
        )  # fmt: skip
        return
    if at is not None or every is not None or live:
        raise api.UsageError("--at, --every and --live are of --urgent MODEL, which arrives meanwhile: name it")
    _check_outputs(output, vcd, trace or page, profile_as_csv=profile and as_csv, units=units)
    if keep_weights and not is_image(model):
        compilation = compilation.keeping_weights()
    image = image_of(model, compilation.measuring(backend))
    if check and is_image(model):
        raise api.UsageError(f"{model}: --check compares with the ONNX model; give the .onnx file instead of the image")
    data = inputs.load_samples(input, image, samples) if input else inputs.random_samples(image, samples, seed)
    if device is not None and (backend or vcd or units):
        raise api.UsageError("--device is a board; what --backend, --vcd and --units say is of simulators")
    backend = device or chosen_backend(backend, image.params)
    report = _begun_report(image, backend, input, samples, seed)
    # The fast model knows when its units run; on the RTL that has to be watched for.
    recorded = units or (backend == "model" and vcd is None and trace is not None)
    with Progress() as progress, _device(image, backend, vcd, progress, recorded=recorded) as opened:
        if report.shares and not as_json and not as_csv:
            progress.note(f"{report.model}: {report.shares.division()}")
        _run_samples(opened, image, data, report, progress, keep_weights=keep_weights)
        if check:
            progress.task("checking layer by layer")
            report.check = checks.check_model(
                opened, model, data, report.outputs, fallback=compilation.fallback, batch=compilation.batch or 1,
                sizes=compilation.sizes, jobs=compilation.jobs, cache=compilation.cache,
            )  # fmt: skip
        runs, interrupts = getattr(opened.bus, "runs", []), opened.driver.handled_interrupts
    if trace:
        counters = job_counters([job for stats in report.stats for job in stats.jobs])
        write_trace(trace, run_spans(report.stats, runs, interrupts), counters)
    if page:
        from caesura.views import write_run_page  # loads the plotting library

        with Progress() as progress:
            progress.task(f"writing {page}")
            write_run_page(page, report, image, runs, interrupts)
    if output:
        inputs.save_outputs(output, report.outputs)
    where = profiles.profile(image, report.stats[0].jobs) if profile else None  # the cycles of the first sample went
    _print(report, where, as_json=as_json, as_csv=as_csv)
    if report.check is not None and not report.check.ok:
        raise typer.Exit(1)


def _refuse_for_varying(flags: Mapping[str, object], why: str) -> None:
    """Raise :class:`caesura.api.UsageError` for flags with a value, which tell of one inference; ``why``: there is none
    alone."""
    if given := [name for name, value in flags.items() if value]:
        raise api.UsageError(f"{why}: leave {', '.join(given)} out, or name --dim and give all inputs")


def _refuse_beside_urgent(flags: Mapping[str, object]) -> None:
    """Raise :class:`caesura.api.UsageError` for flags with a value, which speak of one model alone."""
    if given := [name for name, value in flags.items() if value]:
        raise api.UsageError(f"--urgent tells how two models fare together: leave {', '.join(given)} out")


def _check_outputs(
    output: Path | None, vcd: Path | None, timeline: Path | None, *, profile_as_csv: bool, units: bool
) -> None:
    """Check that files can be written; raises :class:`caesura.api.UsageError` for outputs that cannot be."""
    if output and output.suffix != ".npz":
        raise api.UsageError(f"--output {output}: must be an .npz file")
    if profile_as_csv:
        raise api.UsageError("--csv prints one table, that of the layers: take --json with --profile")
    if units and (timeline is None or vcd is not None):
        raise api.UsageError("--units adds lines to the timeline that --trace or --report writes, without --vcd")


def _begun_report(image: Image, backend: str, input: Path | None, samples: int, seed: int) -> RunReport:
    """Return a report with all that is known before the first sample."""
    return RunReport(
        image.meta.model,
        str(image.meta.params["name"]),
        backend,
        str(input) if input else f"random, seed {seed}",
        host_steps=[str(step) for step in cpu_steps(image)],
        shares=shares(image),
        labels=inputs.load_labels(input, samples) if input else None,
    )


def _device(image: Image, backend: str, vcd: Path | None, progress: Progress, *, recorded: bool) -> api.Device:
    """Return a device, which keeps when its units run if it shall be ``recorded``; ``backend`` may name a board."""
    if ":" in backend:
        from caesura.serial_device import serial_device

        return serial_device(backend, image.params)
    if not recorded:
        return api.open(image.params, backend, vcd=vcd, progress=progress.cycles)
    try:
        return api.Device(open_recorded(image.params, backend, progress.cycles))
    except NoRecording as error:
        raise api.UsageError(f"--units: {error}") from None


def _run_samples(
    device: api.Device,
    image: Image,
    data: Sequence[inputs.Sample],
    report: RunReport,
    progress: Progress,
    *,
    keep_weights: bool,
) -> None:
    """Run all samples, and enter their outputs and statistics into the report."""
    loaded, expected = device.load(image, keep_weights=keep_weights), inference(image.meta.layers).in_turn
    for number, sample in enumerate(data, 1):
        left = expected * (len(data) - number + 1)
        progress.task(f"sample {number} of {len(data)}", cycle=device.bus.cycle, expected=left)
        outputs, stats = loaded.run(sample)
        expected = stats.latency  # of the samples to come: better than the compiler's estimate
        report.outputs.append(outputs)
        report.stats.append(stats)
    device.unload(loaded)


def _print(report: RunReport, profile: profiles.Profile | None, *, as_json: bool, as_csv: bool) -> None:
    """Print the report, and the profile if there is one."""
    if as_json:
        write(json_text({**report.to_dict(), **({"profile": profile.to_dict()} if profile else {})}))
    elif as_csv:
        write(report.to_csv())
    else:
        tell(report.to_tables())
        if profile:
            tell(profile_table(profile))
