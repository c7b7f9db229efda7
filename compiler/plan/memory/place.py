"""Placement of tensors: how LV2 is divided, and what of it each buffer gets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from compiler import ir
from compiler.plan.layers.step import ModelStep, flattened
from compiler.plan.memory.budget import Lv2Budget, divide
from compiler.plan.memory.first_fit import FirstFit
from compiler.plan.memory.sharing import BufferSharing, SharedBuffer
from compiler.plan.memory.tensor_placement import DRAM_ALIGN, TensorBuffer, TensorPlacement
from compiler.plan.options import Options
from compiler.plan.regions.layer_order import Chain, Edges, LayerOrder
from hw.contract.isa import Segment
from hw.contract.params import SocParams

#: Orders in which buffers are offered LV2: what lives long and large either last or first.
_ORDERS: tuple[Callable[[SharedBuffer], tuple[int, int]], ...] = (
    lambda buffer: (buffer.size * (buffer.end - buffer.start + 1), buffer.start),
    lambda buffer: (-buffer.size, buffer.start),
    lambda buffer: (-buffer.size * (buffer.end - buffer.start + 1), buffer.start),
)


def place(
    graph: ir.Graph, steps: Sequence[ModelStep], params: SocParams, options: Options
) -> tuple[Lv2Budget, TensorPlacement]:
    """Return the division of LV2 with the least traffic to tensors that did not fit, the first of equals, and the
    placement. Raises :class:`compiler.ir.CompileError` if LV2 is too small for tiles and weights."""
    lv2, sharing = options.lv2_bytes(params), shared_buffers(graph, steps, params, options)
    placed = [
        (one, place_buffers(graph, sharing, params, one.least.staging_end, one.tensors_end, options.observe))
        for one in divide(graph, flattened(steps), params, options.engines, lv2, placed=options.placed)
    ]
    division, placement = min(placed, key=lambda pair: pair[1].moved)
    budget = division.extended(placement.sizes[Segment.LV2], lv2, params)
    used = max(placement.sizes[Segment.LV2], budget.staging_end) + budget.windows * budget.parts
    if used > lv2:
        raise ir.CompileError(
            f"model {graph.name!r} needs {used} bytes of LV2 for its tiles and weights, {lv2} are allowed: choose a "
            "larger lv2_limit or a preset with a larger lv2_bytes"
        )
    return budget, placement


def shared_buffers(graph: ir.Graph, steps: Sequence[ModelStep], params: SocParams, options: Options) -> BufferSharing:
    """Return the buffers of all tensors, still without places."""
    order = Edges(graph, steps) if options.placed else Chain()
    return BufferSharing(graph, steps, params, order, observe=options.observe)


def place_buffers(
    graph: ir.Graph, sharing: BufferSharing, params: SocParams, low: int, high: int, observe: bool
) -> TensorPlacement:
    """Return a placement with tensors from ``low`` to ``high`` of segment 6. With ``observe`` no two tensors share
    DRAM, and :attr:`TensorPlacement.exports` gives each tensor in LV2 a place there too."""
    unique = list(sharing.unique())
    waiting = [buffer for buffer in unique if buffer.segment is None]
    best = _best_packing(waiting, params, sharing.order, low, high)
    states = sum(_aligned(buffer.size) for buffer in unique if buffer.segment == Segment.SCRATCH)
    scratch = FirstFit(None, DRAM_ALIGN, sharing.order.apart, states)
    places: dict[int, tuple[int, int | None]] = {}  # segment and offset by identity of the buffer
    for buffer in waiting:
        if id(buffer) in best.offsets:
            places[id(buffer)] = (Segment.LV2, best.offsets[id(buffer)])
        elif observe:
            places[id(buffer)] = (Segment.SHARED, None)
        else:
            places[id(buffer)] = (Segment.SCRATCH, scratch.place(buffer.size, buffer) or 0)
    sizes: dict[int, int] = {Segment.INPUTS: 0, Segment.OUTPUTS: 0, Segment.SCRATCH: 0, Segment.SHARED: 0}
    for buffer in unique:
        segment = places[id(buffer)][0] if id(buffer) in places else buffer.segment
        if segment in sizes and (segment != Segment.SCRATCH or id(buffer) not in places):
            places[id(buffer)] = (segment, sizes[segment])
            sizes[segment] += _aligned(buffer.size)
    constants = _constants(graph, sharing, places)
    made = {
        id(buffer): buffer_at(
            buffer, *places.get(id(buffer), (buffer.segment, 0)), padded=best.padded,
            copy=places.get(id(buffer.copy)) if buffer.copy else None,
        )
        for buffer in sharing.buffers.values()
    }  # fmt: skip
    by_tensor = {name: made[id(buffer)] for name, buffer in sharing.buffers.items()}
    exports = _exports(graph, sharing, by_tensor, sizes) if observe else {}
    sizes |= {Segment.SCRATCH: scratch.extent, Segment.LV2: best.extent}
    return TensorPlacement(
        graph.tensors, by_tensor, sharing.inside, sizes, best.moved, constants, exports, sharing.order,
        sharing.parameters,
    )  # fmt: skip


def buffer_at(
    buffer: SharedBuffer, segment: int | None, offset: int | None, *, padded: bool,
    copy: tuple[int, int | None] | None = None,
) -> TensorBuffer:  # fmt: skip
    """Return ``buffer`` at its place, on chip with a pitch of its pixels if it is ``padded``; ``copy``: segment and
    offset of the state that it is a copy of."""
    spread = segment == Segment.LV2 and padded
    size, pitch = buffer.size + buffer.padding * spread, buffer.pitch * spread
    same = (copy[0], copy[1] or 0) if copy and segment == Segment.LV2 else None
    return TensorBuffer(size, frozenset(buffer.users), segment, offset or 0, pitch, same)


@dataclass(frozen=True)
class _Packing:
    """LV2 offsets by identity of the buffer; bytes that pass from or to DRAM because a buffer did not fit; end of LV2;
    whether pixels have their pitch, or are dense."""

    offsets: dict[int, int]
    moved: int
    extent: int
    padded: bool


def _pack(
    waiting: Sequence[SharedBuffer], params: SocParams, order: LayerOrder, low: int, high: int, padded: bool
) -> _Packing:  # fmt: skip
    lv2, offsets, moved = FirstFit(high, params.lv1_word, order.apart, low), {}, 0
    for buffer in waiting:
        offset = lv2.place(buffer.size + buffer.padding * padded, buffer)
        if offset is None:
            moved += buffer.size * buffer.uses
        else:
            offsets[id(buffer)] = offset
    return _Packing(offsets, moved, lv2.extent, padded)


def _best_packing(
    waiting: Sequence[SharedBuffer], params: SocParams, order: LayerOrder, low: int, high: int
) -> _Packing:  # fmt: skip
    """Return the packing with the least traffic to DRAM; padding goes if it costs any."""

    def best(padded: bool) -> _Packing:
        packed = [_pack(sorted(waiting, key=key), params, order, low, high, padded) for key in _ORDERS]
        return min(packed, key=lambda packing: (packing.moved, packing.extent))

    spread = best(True)
    if not any(buffer.padding for buffer in waiting):
        return spread
    dense = best(False)
    return dense if dense.moved < spread.moved else spread


def _exports(
    graph: ir.Graph, sharing: BufferSharing, by_tensor: dict[str, TensorBuffer], sizes: dict[int, int]
) -> dict[str, int]:
    """Return the places in DRAM for what lies in LV2. The copy made after a layer serves reshaped names of the result
    too."""
    places: dict[str, int] = {}
    exports = {}
    for name, tensor in graph.tensors.items():
        root = sharing.roots[name]
        if by_tensor[name].segment == Segment.LV2 and tensor.data is None:
            if root not in places:
                places[root] = sizes[Segment.SHARED]
                sizes[Segment.SHARED] += _aligned(tensor.size)
            exports[name] = places[root]
    return exports


def _aligned(size: int) -> int:
    return -(-size // DRAM_ALIGN) * DRAM_ALIGN


def _constants(graph: ir.Graph, sharing: BufferSharing, places: dict[int, tuple[int, int | None]]) -> bytes:
    """Return constant tensors that a layer reads, for the start of the weight segment; notes their offsets in
    ``places``."""
    blob = b""
    for name, tensor in graph.tensors.items():
        buffer = sharing.buffers[name]
        if tensor.data is not None and buffer.end >= 0:
            places[id(buffer)] = (Segment.WEIGHTS, len(blob))
            raw = np.ascontiguousarray(tensor.data).tobytes()
            blob += raw + bytes(-len(raw) % DRAM_ALIGN)
    return blob
