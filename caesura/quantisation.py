"""Quantises a float model for ``caesura quantise``: 8 bits, with ranges from samples, and how far they are from it.

It is done in a process of its own: a model of a stranger may take all time and memory there is.
"""

import math
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from caesura.api import UsageError
from caesura.samples import Sample, samples_of
from caesura.step_samples import sequences_of
from compiler import CompileError, ModelState, ModelStates, OpenDimension, states_of
from sim.host import ContainedProcess, confine, end_after, frames
from sw.runtime import InputError

MADE = "quantised.onnx"  #: the file with the 8-bit model
_FILE = 1 << 32  #: bytes of a file that it may write
_SAID = 1 << 16  #: characters of an error
_COMPARED = 16  #: samples on which outputs are compared
_PROGRAM = "from caesura.quantisation import serve; serve({seconds}, {memory}, {folder!r})"
_ERRORS: dict[str, type[Exception]] = {one.__name__: one for one in (UsageError, InputError, CompileError, OSError)}


_Outputs = Mapping[str, npt.NDArray]


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
    decibels, which nodes the accelerator refuses, and if it refuses none, why the CPU runs what it does. Of a step
    model also ``steps``, the outputs that are ``states``, and the ``sizes`` that it was compiled with. ``told`` hears
    what goes on. Raises :class:`UsageError`, :class:`InputError`, and what the frontend raises."""
    model, data = Path(asked.model), Path(asked.data)
    told(f"reading {model.name}")
    proto, ports, states = _float_model(model, asked.sizes)
    types = {port.name: port.dtype for port in ports}

    def numbers(feeds: Iterable[Sample]) -> list[Sample]:
        return [{name: _numbers(data, name, value, types[name]) for name, value in feed.items()} for feed in feeds]

    sequences = [numbers(one) for one in sequences_of(data, ports, asked.samples)] if states else []
    feeds = [] if states else numbers(samples_of(data, ports, asked.samples))
    if not feeds and not sequences:
        raise UsageError(f"{data}: no samples")
    from compiler import causes, load, quantise as quantiser, recurrent_amid  # onnxruntime's tools take a second

    longest = max(map(len, sequences), default=0)
    sizes = {state.label: max(longest - 1, 1) for state in states if state.label} or asked.sizes
    try:
        prepared = quantiser.prepared(proto)
        if refused := recurrent_amid(load(prepared, sizes=sizes)):
            raise UsageError(f"{model}: it would be refused when it is quantised: {'; '.join(causes(refused))}")
        given = quantiser.StepFeeds(proto, sequences) if states else feeds
        told(f"finding ranges on {len(given)} {'steps' if states else 'samples'}")
        quantiser.quantise(
            prepared, given, output, activations=asked.activations, per_channel=not asked.per_tensor,
            int4=asked.weights == "int4",
        )  # fmt: skip
    except (OSError, UsageError):
        raise
    except Exception as error:  # onnxruntime's have no common base, and its quantiser asserts
        raise UsageError(f"{model}: onnxruntime cannot quantise it: {error or type(error).__name__}") from None
    told("comparing with the float model")
    of_steps = {"steps": len(given), "states": [state.present for state in states], "sizes": sizes} if states else {}
    pairs = _stepped_pairs(proto, output, sequences, asked.activations) if states else _pairs(proto, output, feeds)
    return {"samples": len(sequences or feeds), "sqnr_db": _ratios(pairs), **_taken(output, sizes), **of_steps}


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


def _float_model(path: Path, sizes: dict[str, int]) -> tuple[onnx.ModelProto, list[_Input], list[ModelState]]:
    """Return a float model, one with states with fixed shapes but for the dimension of these, its inputs but pasts, and
    its states. Raises :class:`UsageError` if it is quantised already."""
    from compiler import QuantisedForm, load, quantised_form, read_model

    given = read_model(path)
    states = states_of(given)
    found = {state.past: state for state in states.found if state.label and state.label not in sizes}
    if found:
        _check_step_inputs(path, given, states)
    try:
        source = load(path, sizes=sizes | {state.label: 1 for state in found.values() if state.label})
    except OpenDimension as error:
        if not states.refused:
            raise
        raise UsageError(f"{error.told(f'--dim {error.label}=N,')} ({states.told()})") from None
    form = quantised_form(source.model)
    if form is not QuantisedForm.FLOAT:
        raise UsageError(
            f"{path}: the model is quantised already ({form.value}); give the float model it was made from"
        )
    for value in source.model.graph.input if found else ():
        for axis, size in enumerate(source.signatures[value.name].shape):
            value.type.tensor_type.shape.dim[axis].dim_value = size
        if (state := found.get(value.name)) and state.label:
            value.type.tensor_type.shape.dim[state.axis].dim_param = state.label
    ports = [_Input(name, list(sig.shape), sig.dtype) for name, sig in source.signatures.items() if name not in found]
    return source.model, ports, list(found.values())


def _check_step_inputs(path: Path, model: onnx.ModelProto, states: ModelStates) -> None:
    """Raise :class:`UsageError` for an input that would grow with the states, and is none."""
    if states.refused:
        raise UsageError(f"{path}: {states.told()}")
    pasts = {state.past for state in states.found}
    for value in model.graph.input:
        labels = {dim.dim_param for dim in value.type.tensor_type.shape.dim}
        if value.name not in pasts and ("mask" in value.name.lower() or states.label in labels):
            raise UsageError(
                f"{path}: input {value.name!r} goes with the states, which one token reads in full, so it needs no "
                "mask: export the model without it"
            )


def _pairs(proto: onnx.ModelProto, path: Path, feeds: list[Sample]) -> Iterator[tuple[_Outputs, _Outputs]]:
    """Yield the outputs of the float and of the 8-bit model."""
    from compiler import golden_outputs
    from sim.host import session

    run = session(proto)
    names = [value.name for value in run.get_outputs()]
    for feed in feeds[:_COMPARED]:
        yield dict(zip(names, run.run(names, feed), strict=True)), golden_outputs(path, feed)


def _stepped_pairs(
    proto: onnx.ModelProto, path: Path, sequences: list[list[Sample]], activations: str
) -> Iterator[tuple[_Outputs, _Outputs]]:
    """Yield the outputs of each step of the float and of the 8-bit model, each with presents of its own as pasts."""
    from compiler import quantise as quantiser, read_model

    # onnxruntime's kernel for softmax of uint8 makes 0 of a single score, which the first token has.
    made = quantiser.StepModel(read_model(path), as_written=activations == "uint8")
    model = quantiser.StepModel(proto)
    for sequence in sequences[:_COMPARED]:
        for (_, wanted), (_, got) in zip(model.steps(sequence), made.steps(sequence), strict=True):
            yield wanted, got


def _ratios(pairs: Iterable[tuple[_Outputs, _Outputs]]) -> dict[str, float]:
    """Return the signal to noise of each output in decibels."""
    signal: dict[str, float] = {}
    noise: dict[str, float] = {}
    for wanted, got in pairs:
        for name, value in wanted.items():
            signal[name] = signal.get(name, 0.0) + float(np.square(value, dtype=np.float64).sum())
            noise[name] = noise.get(name, 0.0) + float(np.square(value.astype(np.float64) - got[name]).sum())
    return {name: round(10 * np.log10(found / max(noise[name], 1e-30)), 2) for name, found in signal.items() if found}


def _taken(path: Path, sizes: dict[str, int]) -> dict[str, list[str]]:
    """Return which nodes the accelerator refuses, and why steps of the CPU are such, if it refuses none."""
    from compiler import Host, UnsupportedModel, import_model

    try:
        ops = import_model(path, sizes=sizes).ops
    except UnsupportedModel as error:
        return {"refused": [str(node) for node in error.nodes], "on_cpu": []}
    except CompileError as error:
        return {"refused": [str(error)], "on_cpu": []}
    return {"refused": [], "on_cpu": [op.reason for op in ops if isinstance(op, Host)]}


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
