"""``caesura quantise``: a float ONNX model as an 8-bit one that the accelerator runs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import onnx
import typer

from caesura.api import UsageError
from caesura.inputs import samples_of
from caesura.json_text import json_text
from caesura.options import Dim, Json, check_writable, sizes_of
from caesura.progress import Progress
from caesura.terminal import say, write
from sw.runtime import InputError


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
    dim: Dim = None,
    per_tensor: Annotated[bool, typer.Option("--per-tensor", help="one scale for all channels of weights")] = False,
    as_json: Json = False,
) -> None:
    """Quantise a float ONNX model with onnxruntime: ranges from samples, batch normalisation folded."""
    check_writable(output)
    sizes = sizes_of(dim or ())
    if activations not in ("int8", "uint8"):
        raise UsageError(f"--activations must be int8 or uint8, not {activations!r}")
    with Progress() as progress:
        progress.task(f"reading {model.name}")
        proto, ports = _float_model(model, sizes)
        feeds = samples_of(data, ports, samples)
        if not feeds:
            raise UsageError(f"{data}: no samples")
        feeds = [{name: _floats(data, name, value) for name, value in feed.items()} for feed in feeds]
        from compiler import quantise as quantiser  # loads onnxruntime's tools, which takes a second

        progress.task(f"finding ranges on {len(feeds)} samples")
        try:
            quantiser.quantise(
                quantiser.prepared(proto), feeds, output, activations=activations, per_channel=not per_tensor
            )
        except OSError:
            raise
        except Exception as error:  # onnxruntime's have no common base, and its quantiser asserts
            raise UsageError(f"{model}: onnxruntime cannot quantise it: {error or type(error).__name__}") from None
        progress.task("comparing with the float model")
        found = {"output": str(output), "samples": len(feeds), **_compared(proto, output, feeds, sizes)}
    if as_json:
        write(json_text(found))
        return
    ratios = ", ".join(f"{name} {ratio:.1f} dB" for name, ratio in found["sqnr_db"].items())
    say(f"{output}: {output.stat().st_size:,} bytes, ranges from {len(feeds)} samples of {data}")
    say(f"signal to quantisation noise on them: {ratios}")
    dims = "".join(f" --dim {name}={size}" for name, size in sizes.items())
    command = f"caesura run {output} --input {data}{dims}"
    if found["refused"]:
        count = len(found["refused"])
        say(
            f"the accelerator cannot run {count} node{'s' if count > 1 else ''} of it, which caesura info "
            f"{output}{dims} lists: the CPU does with {command} --fallback --check"
        )
    else:
        say(f"the accelerator runs all of it: {command} --check")


def _floats(path: Path, name: str, value: npt.NDArray) -> npt.NDArray[np.float32]:
    """A sample as float32. Raises :class:`InputError` for what are no finite numbers."""
    if value.dtype.kind not in "iufb":
        raise InputError(f"{path}: input {name!r} holds {value.dtype}, and numbers are wanted")
    if not np.isfinite(value).all():
        raise InputError(f"{path}: input {name!r} holds values that are no finite numbers, so it has no range")
    return value.astype(np.float32)


def _float_model(path: Path, sizes: dict[str, int]) -> tuple[onnx.ModelProto, list[_Input]]:
    """A float model with fixed shapes, and its inputs. Raises :class:`UsageError` if it is quantised already."""
    from compiler.frontend.load import load
    from compiler.frontend.quantised_form import QuantisedForm, quantised_form

    source = load(path, sizes=sizes)
    form = quantised_form(source.model)
    if form is not QuantisedForm.FLOAT:
        raise UsageError(
            f"{path}: the model is quantised already ({form.value}); give the float model it was made from"
        )
    return source.model, [_Input(name, list(sig.shape)) for name, sig in source.signatures.items()]


def _compared(proto: onnx.ModelProto, path: Path, feeds: list[dict], sizes: dict[str, int]) -> dict:
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
        import_model(path, sizes=sizes)
        refused: list[str] = []
    except UnsupportedModel as error:
        refused = [str(node) for node in error.nodes]
    return {"sqnr_db": ratios, "refused": refused}


_COMPARED = 16  #: samples on which outputs are compared
