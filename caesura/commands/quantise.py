"""Defines ``caesura quantise``, which makes of a float ONNX model an 8-bit one that the accelerator runs."""

from pathlib import Path
from typing import Annotated, Any

import typer

from caesura.api import UsageError
from caesura.commands.options import Dim, Json, check_writable, seconds, sizes_of
from caesura.quantisation import QuantisationLimits, QuantisationRequest, contained_quantisation
from caesura.views import Progress, json_text, say, write


def quantise(
    model: Annotated[Path, typer.Argument(help="a float ONNX model")],
    data: Annotated[
        Path,
        typer.Option(help="samples to find ranges with: .npz, or .npy for a single input"),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="where to write the 8-bit model")],
    samples: Annotated[
        int | None, typer.Option(min=1, help="how many samples, or sequences of tokens, to use (default: all)")
    ] = None,
    activations: Annotated[str, typer.Option(help="type of activations: int8 or uint8")] = "int8",
    weights: Annotated[str, typer.Option(help="type of weights: int8, or int4 for products of matrices")] = "int8",
    dim: Dim = None,
    per_tensor: Annotated[bool, typer.Option("--per-tensor", help="one scale for all channels of weights")] = False,
    time_limit: Annotated[str, typer.Option(help="real time it may take, such as 30m")] = "10m",
    memory_limit: Annotated[int, typer.Option(min=256, help="MiB of memory it may use")] = 8192,
    as_json: Json = False,
) -> None:
    """Quantise a float ONNX model with onnxruntime: ranges from samples, batch normalisation folded.

    A step model, a decoder of one token whose past is an input and whose present an output, is run token by token.

    It is done in a process that ends with an error when it takes more time or memory than its limits."""
    check_writable(output)
    sizes = sizes_of(dim or ())
    if activations not in ("int8", "uint8"):
        raise UsageError(f"--activations must be int8 or uint8, not {activations!r}")
    if weights not in ("int8", "int4"):
        raise UsageError(f"--weights must be int8 or int4, not {weights!r}")
    asked = QuantisationRequest(str(model), str(data), samples, sizes, activations, per_tensor, weights)
    limits = QuantisationLimits(seconds(time_limit, "--time-limit"), memory_limit << 20)
    with Progress() as progress:
        raw, found = contained_quantisation(asked, limits, progress.task)
    output.write_bytes(raw)
    found = {"output": str(output), **found}
    if as_json:
        write(json_text(found))
        return
    say(f"{output}: {output.stat().st_size:,} bytes, ranges from {_data_told(found)} of {data}")
    say(f"signal to quantisation noise on them: {_ratios_told(found)}")
    if "states" in found:
        _say_of_steps(output, data, found)
        return
    dims = "".join(f" --dim {name}={size}" for name, size in sizes.items())
    command = f"caesura run {output} --input {data}{dims}"
    if found["refused"]:
        count = len(found["refused"])
        say(
            f"the accelerator cannot run {count} node{'s' if count > 1 else ''} of it, which caesura info "
            f"{output}{dims} lists: the CPU does with {command} --fallback --check"
        )
    elif found["on_cpu"]:
        say(f"the accelerator runs all of it but what the CPU does ({'; '.join(found['on_cpu'])}): {command} --check")
    else:
        say(f"the accelerator runs all of it: {command} --check")


def _data_told(found: dict[str, Any]) -> str:
    if "states" not in found:
        return f"{found['samples']} samples"
    return f"{found['steps']:,} steps, {found['samples']} sequence{'s' * (found['samples'] > 1)}"


def _ratios_told(found: dict[str, Any]) -> str:
    """Return the signal to noise of outputs; of states, which are many, the lowest."""
    states, ratios = found.get("states", []), found["sqnr_db"]
    told = [f"{name} {ratio:.1f} dB" for name, ratio in ratios.items() if name not in states]
    lowest = min((ratio for name, ratio in ratios.items() if name in states), default=None)
    return ", ".join([*told, *([] if lowest is None else [f"states {lowest:.1f} dB or more"])])


def _say_of_steps(output: Path, data: Path, found: dict[str, Any]) -> None:
    """Say what the accelerator makes of a step model, and how it is run."""
    dims = "".join(f" --dim {name}={size}" for name, size in found["sizes"].items())
    say(f"it has {len(found['states'])} states, each with one scale: a present comes back as the past byte by byte")
    if found["refused"]:
        count = len(found["refused"])
        say(
            f"the accelerator cannot run {count} node{'s' if count > 1 else ''} of a step, which caesura info "
            f"{output}{dims} lists"
        )
    elif found["on_cpu"]:
        say(f"with{dims} the accelerator runs all of it but what the CPU does: {'; '.join(found['on_cpu'])}")
    else:
        say(f"with{dims} the accelerator runs all of it, token by token: caesura run {output} --input {data} --check")
