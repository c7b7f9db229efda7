"""Runs a whole image on the functional model: one inference, jobs in order, host steps through a callback."""

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from hw.contract.isa import LV2_SEGMENTS, Segment
from hw.image.image import Image, StepInfo, TensorInfo
from sim.functional.machine import AccessObserver, Machine
from sim.functional.state import Segments
from tests.support.turns import turns

Arrays = dict[str, npt.NDArray]
HostCall = Callable[[bytes, Mapping[str, npt.NDArray]], Mapping[str, npt.NDArray]]

_FIRST = 4096  #: segments do not start at address 0, so that an address taken for absolute shows
_ALIGN = 64


class HostMissing(RuntimeError):
    """Says that the image has steps for the CPU but no callback was given, and why the steps are there."""


def run_image(
    image: Image,
    inputs: Mapping[str, npt.NDArray],
    host: HostCall | None = None,
    observer: AccessObserver | None = None,
    machine: Machine | None = None,
) -> Arrays:
    """Run one inference and return every tensor of the image by name (outputs, and all others that have a place).

    ``inputs``: by port name, as the input's *tensor* holds it (quantised, transposed: see ``PortInfo``).
    ``host(model, arrays)`` runs a host step: serialised ONNX model and its inputs by name; returns outputs by name.

    Segments 0 to 5 are placed in DRAM one after the other from address 4096, each aligned to 64 bytes; segments 6 and 7
    in LV2, likewise from 0, or both at 0 if they are overlaid. Prologues run as early as they may: see
    :func:`tests.support.turns.turns`.
    """
    machine = machine or Machine(image.params, observer=observer)
    segments = place_segments(image)
    load(machine, image, segments, inputs)
    for step in image.meta.steps:
        if step.kind == "jobs":
            _run_jobs(machine, image, segments, step)
        else:
            run_host(machine, image, segments, step, host)
    return {info.name: get(machine, segments, info) for info in image.meta.tensors}


def load(machine: Machine, image: Image, segments: Segments, inputs: Mapping[str, npt.NDArray]) -> None:
    """Write code, weights and inputs to DRAM; raises ValueError if an input is not what its tensor holds."""
    _write(machine, segments[Segment.CODE][0], np.frombuffer(image.code, np.uint8))
    _write(machine, segments[Segment.WEIGHTS][0], np.frombuffer(image.weights, np.uint8))
    for port in image.meta.inputs:
        info = image.tensor(port.tensor)
        value = np.asarray(inputs[port.name])
        if value.shape != tuple(info.shape) or value.dtype.name != info.dtype:
            raise ValueError(
                f"input {port.name!r} is stored as {info.dtype} {info.shape}, "
                f"not {value.dtype.name} {list(value.shape)}"
            )
        put(machine, segments, info, value)


def place_segments(image: Image) -> list[tuple[int, int]]:
    """Return (base, limit) of each segment."""
    segments, dram, lv2 = list[tuple[int, int]](), _FIRST, 0
    for number, size in enumerate(image.meta.segment_sizes):
        if number in LV2_SEGMENTS:
            segments.append((lv2, size))
            lv2 += 0 if image.meta.overlaid else -(-size // _ALIGN) * _ALIGN
        else:
            segments.append((dram, size))
            dram += -(-size // _ALIGN) * _ALIGN
    if dram > image.params.dram_bytes:
        raise ValueError(f"image {image.meta.model!r} needs {dram} bytes of DRAM, there are {image.params.dram_bytes}")
    return segments


def put(machine: Machine, segments: Segments, info: TensorInfo, value: npt.NDArray) -> None:
    """Write a tensor to its place in DRAM."""
    raw = np.ascontiguousarray(value, dtype=info.dtype).reshape(-1).view(np.uint8)
    _write(machine, segments[info.segment][0] + info.offset, raw)


def get(machine: Machine, segments: Segments, info: TensorInfo) -> npt.NDArray:
    """Read a tensor from its place in DRAM."""
    size = int(np.prod(info.shape, dtype=np.int64)) * np.dtype(info.dtype).itemsize
    start = segments[info.segment][0] + info.offset
    return machine.dram[start : start + size].copy().view(info.dtype).reshape(info.shape)


def _write(machine: Machine, start: int, raw: npt.NDArray[np.uint8]) -> None:
    machine.dram[start : start + raw.size] = raw


def _run_jobs(machine: Machine, image: Image, segments: Segments, step: StepInfo) -> None:
    for turn in turns(image, step):
        job = image.meta.jobs[turn.job]
        if turn.body:
            machine.run_program(image.code, job.body_pc, segments, job.engine)
        elif job.prologue_pc is not None:
            machine.run_prologue(image.code, job.prologue_pc, segments, job.engine)


def run_host(machine: Machine, image: Image, segments: Segments, step: StepInfo, host: HostCall | None) -> None:
    """Run a host step on the tensors in DRAM; raises :class:`HostMissing` without a callback."""
    if host is None:
        raise HostMissing(f"image {image.meta.model!r} has a CPU step ({step.reason}): pass `host`")
    arrays = {name: get(machine, segments, image.tensor(name)) for name in step.inputs}
    results = host(image.host_models[step.host], arrays)
    for name in step.outputs:
        put(machine, segments, image.tensor(name), results[name])
