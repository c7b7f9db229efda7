"""Checks that an image is consistent: every table refers to things that exist, and every size fits.

Each check yields problems as text that names the place; ``Image.validate`` turns the first into an error.
"""

import math
from collections.abc import Iterator

from hw.contract.isa import FORMATS, INSN_BYTES, LV2_SEGMENTS, SEGMENTS, Insn, IsaError, Op, Segment
from hw.contract.params import ParamError, SocParams
from hw.contract.spaces import Space
from hw.image.kernel_attributes import AttributeProblem, KernelAttributes
from hw.image.limits import impossible_numbers
from hw.image.numbers import choice_problems, table_problems
from hw.image.tables import Contents, LiveRange
from hw.image.windows import promise_problems

_ITEM_BYTES = {"int8": 1, "uint8": 1, "float32": 4, "int32": 4, "int64": 8}
_LOADS = (Op.LD2, Op.LD1, Op.LD0)


def problems(image: Contents) -> Iterator[str]:
    """Yield everything that is wrong with ``image``, worst first; later checks rely on earlier ones."""
    try:
        params = image.params
    except (ParamError, TypeError) as error:
        yield f"params: {error}"
        return
    yield from _code(image)
    if len(image.meta.segment_sizes) != SEGMENTS or min(image.meta.segment_sizes) < 0:
        yield f"segment_sizes must be {SEGMENTS} sizes, not {image.meta.segment_sizes}"
        return
    yield from _segments(image, params)
    yield from _tensors(image)
    yield from _ports(image)
    yield from _jobs(image, params)
    yield from _steps(image)
    yield from _points(image, params)
    yield from _relocations(image)
    yield from _kernel(image)
    yield from promise_problems(image)
    yield from impossible_numbers(image, params)


def _code(image: Contents) -> Iterator[str]:
    if len(image.code) % INSN_BYTES:
        yield f"code section has {len(image.code)} bytes, not a multiple of {INSN_BYTES}"
    yield from table_problems(image.meta.parameters)
    named = _named(image)
    for pc in range(_count(image)):
        try:
            Insn.check(image.code[pc * INSN_BYTES : (pc + 1) * INSN_BYTES], named.get(pc, 0))
        except IsaError as error:
            yield f"code, PC {pc}: {error}"


def _named(image: Contents) -> dict[int, int]:
    """Return by PC how many parameters an instruction of a job that has any may name."""
    named = dict[int, int]()
    for job in image.meta.jobs:
        pc = job.body_pc
        while job.parameters and 0 <= pc < _count(image):
            named[pc] = len(job.parameters)
            if image.code[pc * INSN_BYTES] == Op.END:
                break
            pc += 1
    return named


def _count(image: Contents) -> int:
    return len(image.code) // INSN_BYTES


def _segments(image: Contents, params: SocParams) -> Iterator[str]:
    sizes, meta = image.meta.segment_sizes, image.meta
    if sizes[0] < len(image.code) or sizes[1] < len(image.weights):
        yield "code or weights do not fit their segment"
    if meta.overlaid and (meta.parts or sizes[6] > sizes[7]):
        yield f"segment 7 ({sizes[7]} bytes, {meta.parts} parts) has not all of segment 6 ({sizes[6]} bytes)"
    if meta.lv2_bytes > params.lv2_bytes:
        yield f"LV2 windows of {meta.lv2_bytes} bytes in all exceed LV2 ({params.lv2_bytes})"
    if meta.host_sizes != [len(model) for model in image.host_models] or sum(meta.host_sizes) < 0:
        yield f"host models do not match host_sizes {meta.host_sizes}"


def _tensors(image: Contents) -> Iterator[str]:
    sizes, names = image.meta.segment_sizes, set()
    for tensor in image.meta.tensors:
        size = _ITEM_BYTES[tensor.dtype] * math.prod(tensor.shape)
        if min(tensor.shape, default=1) < 1 or not 2 <= tensor.segment <= 5:
            yield f"tensor {tensor.name!r}: shape {tensor.shape} in segment {tensor.segment} is impossible"
        elif tensor.offset < 0 or tensor.offset + size > sizes[tensor.segment]:
            yield f"tensor {tensor.name!r} leaves segment {tensor.segment} ({sizes[tensor.segment]} bytes)"
        if tensor.name in names:
            yield f"two tensors are called {tensor.name!r}"
        names.add(tensor.name)


def _ports(image: Contents) -> Iterator[str]:
    shapes = {tensor.name: tensor.shape for tensor in image.meta.tensors}
    for port in image.meta.inputs + image.meta.outputs:
        if port.tensor not in shapes:
            yield f"port {port.name!r}: no tensor {port.tensor!r}"
        elif math.prod(port.shape) != math.prod(shapes[port.tensor]):
            yield f"port {port.name!r}: shape {port.shape} does not match tensor {shapes[port.tensor]}"
        if sorted(port.perm) != list(range(len(port.perm))):
            yield f"port {port.name!r}: {port.perm} is not a permutation"


def _jobs(image: Contents, params: SocParams) -> Iterator[str]:
    meta, count = image.meta, _count(image)
    for i, job in enumerate(meta.jobs):
        if not 0 <= job.layer < len(meta.layers) or not 0 <= job.engine < params.engines:
            yield f"job {i}: layer {job.layer} or engine {job.engine} does not exist"
        if not 0 <= job.body_pc < count or not 0 <= (job.prologue_pc or 0) < count:
            yield f"job {i}: entry PC beyond the code ({count} instructions)"
        if not 0 <= job.window_after < 1 << 16 or len(job.waits) > 2:
            yield f"job {i}: window_after {job.window_after} or {len(job.waits)} event waits are impossible"
        yield from _edges(image, i, params)
        yield from (f"job {i}: {problem}" for problem in choice_problems(job.parameters, len(meta.parameters)))
        signals = [] if job.signal is None else [job.signal]
        for event in [event for event, _ in job.waits] + signals:
            if not 0 <= event < meta.events:
                yield f"job {i}: event {event} beyond the image's {meta.events}"


def _edges(image: Contents, number: int, params: SocParams) -> Iterator[str]:
    """Yield what is wrong with a job of a placed image."""
    meta, job = image.meta, image.meta.jobs[number]
    if any(not 0 <= earlier < number for earlier in job.after):
        yield f"job {number}: it waits for jobs {job.after}, which are not all before it"
    if not meta.parts:
        if job.after:
            yield f"job {number}: it waits for jobs {job.after}, but the image is not placed"
        return
    if not 2 <= meta.parts <= params.engines or meta.segment_sizes[Segment.WINDOWS] % (meta.parts * params.lv1_word):
        yield f"parts: {meta.parts} parts of segment 7 for {params.engines} engines are impossible"
    if job.engine or job.waits or job.signal is not None or meta.events:
        yield f"job {number}: in a placed image jobs name neither engines nor events"


def _steps(image: Contents) -> Iterator[str]:
    meta, names = image.meta, {tensor.name for tensor in image.meta.tensors}
    for i, step in enumerate(meta.steps):
        if step.kind == "jobs" and not 0 <= step.first <= step.first + step.count <= len(meta.jobs):
            yield f"step {i}: jobs {step.first} to {step.first + step.count} of {len(meta.jobs)}"
        if step.kind == "host" and not 0 <= step.host < len(image.host_models):
            yield f"step {i}: host model {step.host} of {len(image.host_models)}"
        for name in step.inputs + step.outputs:
            if name not in names:
                yield f"step {i}: no tensor {name!r}"


def _points(image: Contents, params: SocParams) -> Iterator[str]:
    meta, count = image.meta, _count(image)
    memories = _Memories(image, params)
    for i, job in enumerate(meta.jobs):
        start, size = job.window
        room = meta.segment_sizes[Segment.WINDOWS]
        if not 0 <= start <= start + size <= room:
            yield f"job {i}: window of {size} bytes at {start} leaves segment {Segment.WINDOWS} ({room} bytes)"
        yield from (f"job {i}: {problem}" for problem in memories.problems(job.live))
    for i, point in enumerate(meta.cancel_points):
        place = f"cancellation point {i}"
        if point.point != i:
            yield f"{place}: called {point.point}; points are numbered in the order of the table"
        if not 0 <= point.job < len(meta.jobs) or not 0 <= point.pc < count:
            yield f"{place}: job {point.job} or PC {point.pc} does not exist"
        elif _op(image, point.pc) is not Op.CANCEL:
            yield f"{place}: PC {point.pc} holds {_op(image, point.pc).name}, not CANCEL"
        for pc in point.reload:
            if not 0 <= pc < count or _op(image, pc) not in _LOADS:
                yield f"{place}: PC {pc}, which it would run again, is no load"
        for number, signals in point.semaphores:
            if not 0 <= number < params.semaphores or not 0 <= signals <= params.semaphore_max:
                yield f"{place}: semaphore {number} cannot hold {signals}"
        yield from (f"{place}: {problem}" for problem in memories.problems(point.live))


class _Memories:
    """Holds the sizes of the memories in which live ranges lie, and of the DRAM segments from which clean ones are
    loaded."""

    def __init__(self, image: Contents, params: SocParams) -> None:
        self._segments = image.meta.segment_sizes
        self._checked: dict[int, LiveRange] = {}  # by identity: points of a compiled image share ranges
        self._sizes = {(Space.LV2, segment): self._segments[segment] for segment in LV2_SEGMENTS} | {
            (Space.LV1, 0): params.lv1_bytes,
            (Space.LV0_ACT, 0): params.lv0_act_bytes,
            (Space.LV0_WGT, 0): params.lv0_wgt_bytes,
            (Space.LV0_ACC, 0): 4 * params.out_channels * params.lv0_acc_rows,
        }

    def problems(self, live: list[LiveRange]) -> Iterator[str]:
        for one in live:
            if id(one) in self._checked:
                continue
            self._checked[id(one)] = one
            size = self._sizes.get((one.space, one.segment), -1)
            if one.size < 0 or not 0 <= one.offset <= size - one.size:
                yield f"live range of {one.size} bytes at {one.offset} leaves {one.space} (segment {one.segment})"
            elif one.space == Space.LV2 and not one.dirty and not self._in_dram(one):
                yield f"the copy of a clean range, {one.size} bytes at {one.source_offset}, leaves its segment"

    def _in_dram(self, one: LiveRange) -> bool:
        source = one.source_segment
        inside = 0 <= source < SEGMENTS and source not in LV2_SEGMENTS
        return inside and 0 <= one.source_offset <= self._segments[source] - one.size


def _op(image: Contents, pc: int) -> Op:
    return Op(image.code[pc * INSN_BYTES])


def _relocations(image: Contents) -> Iterator[str]:
    meta, count = image.meta, _count(image)
    for i, entry in enumerate(meta.relocations):
        if not 0 <= entry.pc < count:
            yield f"relocation {i}: PC {entry.pc} beyond the code ({count} instructions)"
            continue
        op = _op(image, entry.pc)
        if entry.field not in {f.name for f in FORMATS[op]}:
            yield f"relocation {i}: {op.name} has no field {entry.field!r}"


def _kernel(image: Contents) -> Iterator[str]:
    if image.meta.kernel_attributes:
        try:
            KernelAttributes.parse(image.meta.kernel_attributes)
        except AttributeProblem as problem:
            yield f"kernel_attributes: {problem}"
