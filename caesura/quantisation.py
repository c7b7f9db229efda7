"""Quantises a float model for ``caesura quantise``: 8 bits, with ranges from samples, and how far they are from it.

It is done in a process of its own: a model of a stranger may take all time and memory there is.
"""

import math
import os
import socket
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from caesura.api import UsageError
from caesura.samples import samples_of
from compiler import CompileError, OpenDimension
from sim.host import ContainedProcess, confine, end_after, frames
from sw.runtime import InputError

MADE = "quantised.onnx"  #: the file with the 8-bit model
_FILE = 1 << 32  #: bytes of a file that it may write
_SAID = 1 << 16  #: characters of an error
_COMPARED = 16  #: samples on which outputs are compared
_PROGRAM = "from caesura.quantisation import serve; serve({seconds}, {memory}, {folder!r})"
_ERRORS: dict[str, type[Exception]] = {one.__name__: one for one in (UsageError, InputError, CompileError, OSError)}


@dataclass(frozen=True)
class QuantisationRequest:
    """Says what is asked for: a float ``model``, ``data`` with samples, of which the first are used (None: all), sizes
    of dynamic dimensions, the type of activations, whether weights have one scale for all channels, and their type:
    ``int8``, or ``int4`` for those of products of matrices."""

    model: str
    data: str
    samples: int | None
    sizes: dict[str, int]
    activations: str
    per_tensor: bool
    weights: str = "int8"


@dataclass
class _Input:
    name: str
    shape: list[int]
    dtype: str


def quantised(asked: QuantisationRequest, output: Path, told: Callable[[str], None]) -> dict[str, Any]:
    """Write the 8-bit model to ``output``; return the number of samples, the signal to noise of each output in
    decibels, which nodes the accelerator refuses, and if it refuses none, why the CPU runs what it does. ``told`` hears
    what goes on. Raises :class:`UsageError`, :class:`InputError`, and what the frontend raises."""
    model, data = Path(asked.model), Path(asked.data)
    told(f"reading {model.name}")
    proto, ports = _float_model(model, asked.sizes)
    feeds = samples_of(data, ports, asked.samples)
    if not feeds:
        raise UsageError(f"{data}: no samples")
    types = {port.name: port.dtype for port in ports}
    feeds = [{name: _numbers(data, name, value, types[name]) for name, value in feed.items()} for feed in feeds]
    from compiler import causes, load, quantise as quantiser, recurrent_amid  # onnxruntime's tools take a second

    try:
        prepared = quantiser.prepared(proto)
        if refused := recurrent_amid(load(prepared, sizes=asked.sizes)):
            raise UsageError(f"{model}: it would be refused when it is quantised: {'; '.join(causes(refused))}")
        told(f"finding ranges on {len(feeds)} samples")
        quantiser.quantise(
            prepared, feeds, output, activations=asked.activations, per_channel=not asked.per_tensor,
            int4=asked.weights == "int4",
        )  # fmt: skip
    except (OSError, UsageError):
        raise
    except Exception as error:  # onnxruntime's have no common base, and its quantiser asserts
        raise UsageError(f"{model}: onnxruntime cannot quantise it: {error or type(error).__name__}") from None
    told("comparing with the float model")
    return {"samples": len(feeds), **_compared(proto, output, feeds, asked.sizes)}


def _numbers(path: Path, name: str, value: npt.NDArray, dtype: str) -> npt.NDArray:
    """Return a sample as ``dtype``, or as float32 for an input that holds no integers. Raises :class:`InputError` for
    what are no finite numbers, and for those that are no integers where the input holds such."""
    if value.dtype.kind not in "iufb":
        raise InputError(f"{path}: input {name!r} holds {value.dtype}, and numbers are wanted")
    if not np.isfinite(value).all():
        raise InputError(f"{path}: input {name!r} holds values that are no finite numbers, so it has no range")
    if not np.issubdtype(np.dtype(dtype), np.integer):
        return value.astype(np.float32)
    made = value.astype(dtype)
    if (made != value).any():
        raise InputError(f"{path}: input {name!r} holds values that are no {dtype}, which the model takes")
    return made


def _float_model(path: Path, sizes: dict[str, int]) -> tuple[onnx.ModelProto, list[_Input]]:
    """Return a float model with fixed shapes, and its inputs. Raises :class:`UsageError` if it is quantised already."""
    from compiler import QuantisedForm, load, quantised_form

    source = load(path, sizes=sizes)
    form = quantised_form(source.model)
    if form is not QuantisedForm.FLOAT:
        raise UsageError(
            f"{path}: the model is quantised already ({form.value}); give the float model it was made from"
        )
    return source.model, [_Input(name, list(sig.shape), sig.dtype) for name, sig in source.signatures.items()]


def _compared(proto: onnx.ModelProto, path: Path, feeds: list[dict], sizes: dict[str, int]) -> dict:
    """Return how far outputs are from those of the float model, which nodes the accelerator refuses, and why steps of
    the CPU are such, if it refuses none."""
    from compiler import Host, UnsupportedModel, golden_outputs, import_model
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
    refused: list[str] = []
    on_cpu: list[str] = []
    try:
        on_cpu = [op.reason for op in import_model(path, sizes=sizes).ops if isinstance(op, Host)]
    except UnsupportedModel as error:
        refused = [str(node) for node in error.nodes]
    return {"sqnr_db": ratios, "refused": refused, "on_cpu": on_cpu}


@dataclass(frozen=True)
class QuantisationLimits:
    """Bounds what a quantisation may use: ``seconds`` of real time, and ``memory`` bytes of addresses."""

    seconds: float = 600.0
    memory: int = 8 << 30


def contained_quantisation(
    asked: QuantisationRequest, limits: QuantisationLimits, told: Callable[[str], None]
) -> tuple[bytes, dict[str, Any]]:
    """Return the 8-bit model as a file, and what :func:`caesura.quantisation.quantised` says of it. Raises
    :class:`UsageError` if it takes too much, and what that raises."""
    end = time.monotonic() + limits.seconds
    with tempfile.TemporaryDirectory(prefix="caesura-") as folder:
        program = _PROGRAM.format(seconds=math.ceil(limits.seconds), memory=limits.memory, folder=folder)
        # What it leaves when it is killed goes with the folder.
        process = ContainedProcess(program, {"TMPDIR": folder})
        try:
            process.send(asdict(asked), {}, end)
            while "told" in (header := process.receive(end)[0]):
                told(header["told"])
            if "error" in header:
                raise _ERRORS.get(header["kind"], UsageError)(header["error"])
            return (Path(folder) / MADE).read_bytes(), header["found"]
        except TimeoutError:
            raise UsageError(
                f"{asked.model}: not quantised after {limits.seconds:g} seconds of real time, which is the limit: give "
                "fewer --samples, or raise --time-limit"
            ) from None
        except (EOFError, ConnectionError, frames.FrameError):
            raise UsageError(
                f"{asked.model}: the process that quantises it ended; it may use {limits.memory >> 20:,} MiB of memory "
                "(--memory-limit)"
            ) from None
        finally:
            process.kill()


def serve(seconds: int, memory: int, folder: str) -> None:
    """Quantise what the one frame on standard input, a socket, asks for, within limits; files go to ``folder``."""
    confine(memory, _FILE)
    end_after(seconds)
    with socket.socket(fileno=os.dup(0)) as parent:
        header, _ = frames.receive(parent)
        try:
            found = quantised(
                QuantisationRequest(**header), Path(folder) / MADE,
                lambda what: frames.send(parent, {"told": what}, {}),
            )  # fmt: skip
        except Exception as error:
            kind = next((name for name, one in _ERRORS.items() if isinstance(error, one)), "")
            frames.send(parent, {"error": _told(error, memory)[:_SAID], "kind": kind}, {})
        else:
            frames.send(parent, {"found": found}, {})


def _told(error: Exception, memory: int) -> str:
    said = str(error) or type(error).__name__
    if isinstance(error, OpenDimension):
        said = error.told(f"--dim {error.label}=N,")
    if isinstance(error, MemoryError) or "alloc" in said:
        said += f" (it may use {memory >> 20:,} MiB of memory: raise --memory-limit)"
    return said
