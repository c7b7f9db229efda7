"""What makes an image consistent: every table refers to things that exist, every size fits.

Each check yields problems as text that names the place; ``Image.validate`` turns the first into an error.
"""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hw.isa import FORMATS, INSN_BYTES, SEGMENTS, Insn, IsaError, Op
from hw.params import ParamError, SocParams

if TYPE_CHECKING:
    from hw.image import Image

_ITEM_BYTES = {"int8": 1, "uint8": 1, "float32": 4, "int32": 4, "int64": 8}


def problems(image: "Image") -> Iterator[str]:
    """Everything that is wrong with ``image``, worst first; later checks rely on earlier ones."""
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
    yield from _points(image)


def _code(image: "Image") -> Iterator[str]:
    if len(image.code) % INSN_BYTES:
        yield f"code section has {len(image.code)} bytes, not a multiple of {INSN_BYTES}"
    for pc in range(_count(image)):
        try:
            Insn.decode(image.code[pc * INSN_BYTES : (pc + 1) * INSN_BYTES])
        except IsaError as error:
            yield f"code, PC {pc}: {error}"


def _count(image: "Image") -> int:
    return len(image.code) // INSN_BYTES


def _segments(image: "Image", params: SocParams) -> Iterator[str]:
    sizes, meta = image.meta.segment_sizes, image.meta
    if sizes[0] < len(image.code) or sizes[1] < len(image.weights):
        yield "code or weights do not fit their segment"
    if sizes[6] + sizes[7] > params.lv2_bytes:
        yield f"LV2 windows of {sizes[6]} + {sizes[7]} bytes exceed LV2 ({params.lv2_bytes})"
    if meta.host_sizes != [len(model) for model in image.host_models] or sum(meta.host_sizes) < 0:
        yield f"host models do not match host_sizes {meta.host_sizes}"


def _tensors(image: "Image") -> Iterator[str]:
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


def _ports(image: "Image") -> Iterator[str]:
    shapes = {tensor.name: tensor.shape for tensor in image.meta.tensors}
    for port in image.meta.inputs + image.meta.outputs:
        if port.tensor not in shapes:
            yield f"port {port.name!r}: no tensor {port.tensor!r}"
        elif math.prod(port.shape) != math.prod(shapes[port.tensor]):
            yield f"port {port.name!r}: shape {port.shape} does not match tensor {shapes[port.tensor]}"
        if sorted(port.perm) != list(range(len(port.perm))):
            yield f"port {port.name!r}: {port.perm} is not a permutation"


def _jobs(image: "Image", params: SocParams) -> Iterator[str]:
    meta, count = image.meta, _count(image)
    for i, job in enumerate(meta.jobs):
        if not 0 <= job.layer < len(meta.layers) or not 0 <= job.engine < params.engines:
            yield f"job {i}: layer {job.layer} or engine {job.engine} does not exist"
        if not 0 <= job.body_pc < count or not 0 <= (job.prologue_pc or 0) < count:
            yield f"job {i}: entry PC beyond the code ({count} instructions)"
        if not 0 <= job.window_after < 1 << 16 or len(job.waits) > 2:
            yield f"job {i}: window_after {job.window_after} or {len(job.waits)} event waits are impossible"
        signals = [] if job.signal is None else [job.signal]
        for event in [event for event, _ in job.waits] + signals:
            if not 0 <= event < meta.events:
                yield f"job {i}: event {event} beyond the image's {meta.events}"


def _steps(image: "Image") -> Iterator[str]:
    meta, names = image.meta, {tensor.name for tensor in image.meta.tensors}
    for i, step in enumerate(meta.steps):
        if step.kind == "jobs" and not 0 <= step.first <= step.first + step.count <= len(meta.jobs):
            yield f"step {i}: jobs {step.first} to {step.first + step.count} of {len(meta.jobs)}"
        if step.kind == "host" and not 0 <= step.host < len(image.host_models):
            yield f"step {i}: host model {step.host} of {len(image.host_models)}"
        for name in step.inputs + step.outputs:
            if name not in names:
                yield f"step {i}: no tensor {name!r}"


def _points(image: "Image") -> Iterator[str]:
    meta, count = image.meta, _count(image)
    for point in meta.cancel_points:
        if not 0 <= point.job < len(meta.jobs) or not 0 <= point.pc < count:
            yield f"cancellation point {point.point}: job {point.job} or PC {point.pc} does not exist"
    for i, entry in enumerate(meta.relocations):
        if not 0 <= entry.pc < count:
            yield f"relocation {i}: PC {entry.pc} beyond the code ({count} instructions)"
            continue
        op = Op(image.code[entry.pc * INSN_BYTES])
        if entry.field not in {f.name for f in FORMATS[op]}:
            yield f"relocation {i}: {op.name} has no field {entry.field!r}"
