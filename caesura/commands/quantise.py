"""``caesura quantise``: a float ONNX model as an 8-bit one that the accelerator runs."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import onnx
import typer

from caesura.api import UsageError
from caesura.inputs import samples_of
from caesura.options import Json
from caesura.progress import Progress


@dataclass
class _Input:
    name: str
    shape: list[int]


def quantise(
    model: Annotated[Path, typer.Argument(help="a float ONNX model")],
    data: Annotated[Path, typer.Option(help="samples to find ranges with: .npz, or .npy for a single input")],
    output: Annotated[Path, typer.Option("--output", "-o", help="where to write the 8-bit model")],
    samples: Annotated[int | None, typer.Option(min=1, help="how many samples to use (default: all)")] = None,
    activations: Annotated[str, typer.Option(help="type of activations: int8 or uint8")] = "int8",
    per_tensor: Annotated[bool, typer.Option("--per-tensor", help="one scale for all channels of weights")] = False,
    as_json: Json = False,
) -> None:
    """Quantise a float ONNX model with onnxruntime: ranges from samples, batch normalisation folded."""
    if activations not in ("int8", "uint8"):
        raise UsageError(f"--activations must be int8 or uint8, not {activations!r}")
    with Progress() as progress:
        progress.task(f"reading {model.name}")
        proto, ports = _float_model(model)
        feeds = samples_of(data, ports, samples)
        if not feeds:
            raise UsageError(f"{data}: no samples")
        feeds = [{name: value.astype(np.float32) for name, value in feed.items()} for feed in feeds]
        from compiler import quantise as quantiser  # loads onnxruntime's tools, which takes a second

        progress.task(f"finding ranges on {len(feeds)} samples")
        quantiser.quantise(
            quantiser.prepared(proto), feeds, output, activations=activations, per_channel=not per_tensor
        )
        progress.task("comparing with the float model")
        found = {"output": str(output), "samples": len(feeds), **_compared(proto, output, feeds)}
    if as_json:
        typer.echo(json.dumps(found))
        return
    ratios = ", ".join(f"{name} {ratio:.1f} dB" for name, ratio in found["sqnr_db"].items())
    typer.echo(f"{output}: {output.stat().st_size:,} bytes, ranges from {len(feeds)} samples of {data}")
    typer.echo(f"signal to quantisation noise on them: {ratios}")
    if found["refused"]:
        typer.echo(f"the accelerator cannot run {len(found['refused'])} nodes of it; caesura info {output} lists them")
    else:
        typer.echo(f"the accelerator runs all of it: caesura run {output} --input {data} --check")


def _float_model(path: Path) -> tuple[onnx.ModelProto, list[_Input]]:
    """A float model with fixed shapes, and its inputs. Raises :class:`UsageError` if it is quantised already."""
    from compiler.frontend.load import load
    from compiler.frontend.quantised_form import QuantisedForm, quantised_form

    source = load(path)
    form = quantised_form(source.model)
    if form is not QuantisedForm.FLOAT:
        raise UsageError(
            f"{path}: the model is quantised already ({form.value}); give the float model it was made from"
        )
    return source.model, [_Input(name, list(sig.shape)) for name, sig in source.signatures.items()]


def _compared(proto: onnx.ModelProto, path: Path, feeds: list[dict]) -> dict:
    """How far outputs are from those of the float model, and which nodes the accelerator refuses."""
    from compiler.frontend import UnsupportedModel, import_model
    from compiler.golden import golden_outputs
    from sim.host import session

    signal: dict[str, float] = {}
    noise: dict[str, float] = {}
    run = session(proto)
    names = [value.name for value in run.get_outputs()]
    for feed in feeds[:_COMPARED]:
        got = golden_outputs(path, feed)
        for name, wanted in zip(names, run.run(names, feed), strict=True):
            signal[name] = signal.get(name, 0.0) + float(np.square(wanted, dtype=np.float64).sum())
            error = wanted.astype(np.float64) - got[name]
            noise[name] = noise.get(name, 0.0) + float(np.square(error).sum())
    ratios = {name: round(10 * np.log10(signal[name] / max(noise[name], 1e-30)), 2) for name in names if signal[name]}
    try:
        import_model(path)
        refused: list[str] = []
    except UnsupportedModel as error:
        refused = [str(node) for node in error.nodes]
    return {"sqnr_db": ratios, "refused": refused}


_COMPARED = 16  #: samples on which outputs are compared
