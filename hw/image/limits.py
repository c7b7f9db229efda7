"""Checks that the numbers in the metadata of an image mean something: none is negative where it counts, none is beyond
what any device could hold or do, none is NaN.

:mod:`hw.image.check` asks whether tables refer to things that exist; numbers that pass both can be calculated with.
"""

import math
from collections.abc import Iterator

from hw.contract.isa import FORMATS, INSN_BYTES, MASKS, Insn, Op
from hw.contract.params import SocParams
from hw.contract.spaces import Space
from hw.image.tables import Contents, LiveRange, PortInfo, TensorInfo

MOST_CYCLES = 1 << 40  #: of one estimate, measurement or bound: 18 minutes at 1 GHz
MOST_COUNT = 1 << 56  #: multiply-accumulates or bytes of one layer
MOST_EVENTS = 1 << 16  #: whether as many are free is asked when they are leased
MOST_DIMENSIONS = 32  #: of a tensor or port: NumPy takes no more in every version
MOST_RELOADS = 360  #: loads that one cancellation point runs again: the driver's memory for its programs holds no more
#: Lowest and highest zero point by type; of others it means nothing and is 0.
_ZERO_POINTS = {"int8": (-128, 127), "uint8": (0, 255)}
_PORT_TYPES = ("int8", "uint8", "int32", "int64", "float32")
_CYCLES = ("load", "compute", "stream")
_COUNTS = ("macs", "input_bytes", "weight_bytes", "output_bytes")
#: Addresses, which may depend on where a segment lies. Other fields are what the checks of the code looked at.
_RELOCATABLE = ("src", "dst")


def impossible_numbers(image: Contents, params: SocParams) -> Iterator[str]:
    """Yield every number of ``image`` that has no meaning, as text that names the place. Its tables must be
    consistent."""
    meta = image.meta
    for i, size in enumerate(meta.segment_sizes):
        if size > max(params.dram_bytes, params.lv2_bytes):
            yield f"segment_sizes: segment {i} of {size} bytes exceeds DRAM ({params.dram_bytes})"
    if not 0 <= meta.events <= MOST_EVENTS:
        yield f"events: {meta.events} events are impossible, at most {MOST_EVENTS} can be named"
    yield from (problem for tensor in meta.tensors for problem in _tensor(tensor))
    tensors = {tensor.name: tensor for tensor in meta.tensors}
    for ports, shape_of in ((meta.inputs, lambda p: p.shape), (meta.outputs, lambda p: tensors[p.tensor].shape)):
        for name in sorted({port.name for port in ports if [p.name for p in ports].count(port.name) > 1}):
            yield f"two ports of one direction are called {name!r}"
        yield from (problem for port in ports for problem in _port(port, tensors[port.tensor], shape_of(port)))
    yield from _layers(image)
    yield from _jobs(image)
    yield from _points(image)
    yield from _masks(image, params)
    for i, entry in enumerate(meta.relocations):
        if entry.field not in _RELOCATABLE:
            known = " and ".join(_RELOCATABLE)
            yield f"relocation {i}: field {entry.field!r} is no address; only {known} are relocated"


def _tensor(tensor: TensorInfo) -> Iterator[str]:
    place = f"tensor {tensor.name!r}"
    if len(tensor.shape) > MOST_DIMENSIONS:
        yield f"{place}: {len(tensor.shape)} dimensions, at most {MOST_DIMENSIONS} are possible"
    if not (math.isfinite(tensor.scale) and tensor.scale > 0):
        yield f"{place}: scale {tensor.scale} is no positive number"
    low, high = _ZERO_POINTS.get(tensor.dtype, (0, 0))
    if not low <= tensor.zero_point <= high:
        yield f"{place}: zero point {tensor.zero_point} is beyond {tensor.dtype}"


def _port(port: PortInfo, tensor: TensorInfo, transposed: list[int]) -> Iterator[str]:
    """Yield what is wrong with a port; ``transposed`` is the shape to which its permutation applies."""
    place = f"port {port.name!r}"
    if port.dtype not in _PORT_TYPES:
        yield f"{place}: unknown type {port.dtype!r}; known are {', '.join(_PORT_TYPES)}"
    if min(port.shape, default=1) < 1 or len(port.shape) > MOST_DIMENSIONS:
        yield f"{place}: shape {port.shape} is impossible"
    if port.perm and len(port.perm) != len(transposed):
        yield f"{place}: {port.perm} does not permute {len(transposed)} dimensions"
    if port.quantise and tensor.dtype not in _ZERO_POINTS:
        yield f"{place}: tensor {port.tensor!r} of {tensor.dtype} cannot be quantised"


def _layers(image: Contents) -> Iterator[str]:
    for i, layer in enumerate(image.meta.layers):
        for name in _COUNTS:
            if not 0 <= getattr(layer, name) <= MOST_COUNT:
                yield f"layer {i}: {name} {getattr(layer, name)} is impossible"
        for name in [f"{how}_{part}" for how in ("estimated", "measured") for part in _CYCLES]:
            if not 0 <= (getattr(layer, name) or 0) <= MOST_CYCLES:
                yield f"layer {i}: {name} of {getattr(layer, name)} cycles is impossible"


def _jobs(image: Contents) -> Iterator[str]:
    jobs = image.meta.jobs
    for i, job in enumerate(jobs):
        if not 0 <= job.worst_cycles <= MOST_CYCLES:
            yield f"job {i}: worst_cycles {job.worst_cycles} is impossible"
        for event, times in job.waits:
            if not 0 <= times <= len(jobs):
                yield f"job {i}: it waits for {times} signals of event {event}, of {len(jobs)} jobs"
        yield from (f"job {i}: {problem}" for problem in _dirty_lv0(job.live))


def _points(image: Contents) -> Iterator[str]:
    listed = {}
    for i, point in enumerate(image.meta.cancel_points):
        place = f"cancellation point {i}"
        listed[point.pc] = i
        for name in ("estimated_interval", "worst_interval"):
            if not 0 <= getattr(point, name) <= MOST_CYCLES:
                yield f"{place}: {name} of {getattr(point, name)} cycles is impossible"
        if len(point.reload) > MOST_RELOADS:
            yield f"{place}: {len(point.reload)} loads to run again, at most {MOST_RELOADS} are possible"
        numbers = [number for number, _ in point.semaphores]
        if len(numbers) != len(set(numbers)):
            yield f"{place}: a semaphore has two counts"
        yield from (f"{place}: {problem}" for problem in _dirty_lv0(point.live))
    for pc in range(len(image.code) // INSN_BYTES):
        if image.code[pc * INSN_BYTES] == Op.CANCEL:
            number = Insn.decode(image.code[pc * INSN_BYTES : (pc + 1) * INSN_BYTES])["point"]
            if listed.get(pc) != number:
                yield f"code, PC {pc}: CANCEL {number} is not in the table of cancellation points"


def _masks(image: Contents, params: SocParams) -> Iterator[str]:
    """Yield the semaphores and PEs that the code names and the hardware does not have."""
    beyond: dict[int, dict[str, int]] = {}  #: by opcode and field: bits of an instruction that must be zero
    for op, parts in FORMATS.items():
        at = 0
        for f in parts:
            there = params.pes if f.name == "pe_mask" else params.semaphores
            if f.name in MASKS and (f.name != "pe_mask" or op is Op.LD0):  # other copies ignore it
                beyond.setdefault(op, {})[f.name] = max(0, (1 << f.width) - (1 << there)) << at
            at += f.width
    any_of = {op: sum(masks.values()) for op, masks in beyond.items()}
    for pc in range(len(image.code) // INSN_BYTES):
        word = int.from_bytes(image.code[pc * INSN_BYTES : (pc + 1) * INSN_BYTES], "little")
        if not word & any_of.get(word & 0xFF, 0):
            continue
        name = next(name for name, mask in beyond[word & 0xFF].items() if word & mask)
        known = f"{params.pes} PEs" if name == "pe_mask" else f"{params.semaphores} semaphores"
        yield f"code, PC {pc}: {name} of {Op(word & 0xFF).name} has bits beyond the {known} of {params.name!r}"


def _dirty_lv0(live: list[LiveRange]) -> Iterator[str]:
    for one in live:
        if one.dirty and one.space in (Space.LV0_ACT, Space.LV0_WGT):
            yield f"dirty {one.space}, {one.size} bytes at {one.offset}, which nothing can dump"
