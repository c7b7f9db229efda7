"""Placement of tensors: how LV2 is divided, and what of it each buffer gets."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from compiler import ir
from compiler.plan.layers.layer import Layer
from compiler.plan.layers.step import ModelStep, flattened
from compiler.plan.memory.budget import Lv2Budget, Lv2Division, divide
from compiler.plan.memory.first_fit import ENDLESS, aligned, first_fit
from compiler.plan.memory.packing import Areas, best_packing
from compiler.plan.memory.sharing import BufferSharing, SharedBuffer
from compiler.plan.memory.staging import StagedSteps
from compiler.plan.memory.tensor_placement import DRAM_ALIGN, TensorBuffer, TensorPlacement
from compiler.plan.options import Options
from compiler.plan.regions.layer_order import Chain, Edges
from hw.contract.isa import Segment
from hw.contract.params import SocParams

#: Of the staging areas that tilers never have to think of, the parts that are tried where tensors do not fit.
_STAGING_PARTS = (Fraction(1), Fraction(3, 4), Fraction(1, 2), Fraction(3, 8), Fraction(1, 4))
_SMALLEST = Fraction(3, 16)  #: what is tried as well where cycles do not matter

TRIES = 200  #: packings of tensors that do not fit, at most, to find one with less traffic


def place(
    graph: ir.Graph, steps: Sequence[ModelStep], params: SocParams, options: Options,
    parts: Sequence[Fraction] | None = None, *, thorough: bool = False,
) -> tuple[Lv2Budget, TensorPlacement]:  # fmt: skip
    """Return the division of LV2 with the least traffic to tensors that did not fit, the first of equals, and the
    placement. ``parts``: of the staging areas, tried where tensors do not fit (None: all); ``thorough``: then the
    placement is improved as long as that takes. Raises :class:`compiler.ir.CompileError` if LV2 is too small for tiles
    and weights."""
    lv2, sharing = options.lv2_bytes(params), shared_buffers(graph, steps, params, options)
    parts = staging_parts(options) if parts is None else parts
    divisions = divide(graph, flattened(steps), params, options.engines, lv2, placed=options.placed)
    division, placement = _placed(graph, sharing, params, options, divisions, staged=None)
    if placement.moved and parts and not (options.observe or options.placed):
        smaller = [made for part in parts for one in divisions if (made := one.with_staging(part, params))]
        found = _with_less(graph, sharing, steps, params, options, smaller, placement.moved, thorough=thorough)
        if found is not None:
            return found
    budget = division.extended(placement.sizes[Segment.LV2], lv2, params)
    used = _used(budget, placement)
    if used > lv2:
        raise ir.CompileError(
            f"model {graph.name!r} needs {used} bytes of LV2 for its tiles and weights, {lv2} are allowed: choose a "
            "larger lv2_limit or a preset with a larger lv2_bytes"
        )
    return budget, placement


def _with_less(
    graph: ir.Graph, sharing: BufferSharing, steps: Sequence[ModelStep], params: SocParams, options: Options,
    divisions: Sequence[Lv2Division], moved: int, *, thorough: bool,
) -> tuple[Lv2Budget, TensorPlacement] | None:  # fmt: skip
    """Return the budget of one of ``divisions`` and a placement in which less than ``moved`` passes from and to DRAM,
    and staging areas are tensors' where nothing passes; None if there is none, or it does not fit."""
    lv2 = options.lv2_bytes(params)
    staged = StagedSteps.of(steps, min(one.least.windows for one in divisions), params)
    division, placement = _placed(graph, sharing, params, options, divisions, staged)
    if placement.moved >= moved:
        return None
    if thorough:
        low, high = division.least.staging_end, division.tensors_end
        placement = place_buffers(graph, sharing, params, low, high, options.observe, staged, TRIES)
    budget = division.extended(placement.sizes[Segment.LV2], lv2, params)
    return None if _used(budget, placement) > lv2 else (budget, placement)


def _used(budget: Lv2Budget, placement: TensorPlacement) -> int:
    return max(placement.sizes[Segment.LV2], budget.staging_end) + budget.windows * budget.parts


def _placed(
    graph: ir.Graph, sharing: BufferSharing, params: SocParams, options: Options, divisions: Sequence[Lv2Division],
    staged: StagedSteps | None,
) -> tuple[Lv2Division, TensorPlacement]:  # fmt: skip
    """Return the division with the least traffic to tensors that did not fit, the first of equals, and the placement.
    ``staged``: steps that pass nothing through the staging areas leave these to tensors. None: nobody does."""
    placed = [
        (one, place_buffers(graph, sharing, params, one.least.staging_end, one.tensors_end, options.observe, staged))
        for one in divisions
    ]
    return min(placed, key=lambda pair: pair[1].moved)


def staging_parts(options: Options) -> tuple[Fraction, ...]:
    """Return the parts of the staging areas that are tried where tensors do not fit, the largest first."""
    return (*_STAGING_PARTS, _SMALLEST) if options.objective == "dram" else _STAGING_PARTS


def most_room(graph: ir.Graph, layers: Sequence[Layer], params: SocParams, options: Options) -> int:
    """Return the bytes that LV2 has for tensors at most, beside staging areas."""
    divisions = divide(graph, layers, params, options.engines, options.lv2_bytes(params), placed=options.placed)
    if not (options.observe or options.placed):
        divisions = [
            made for part in staging_parts(options) for one in divisions if (made := one.with_staging(part, params))
        ]
    return max(one.tensors_end - one.least.staging_end for one in divisions)


def shared_buffers(graph: ir.Graph, steps: Sequence[ModelStep], params: SocParams, options: Options) -> BufferSharing:
    """Return the buffers of all tensors, still without places."""
    order = Edges(graph, steps) if options.placed else Chain()
    return BufferSharing(graph, steps, params, order, observe=options.observe)


def place_buffers(
    graph: ir.Graph, sharing: BufferSharing, params: SocParams, low: int, high: int, observe: bool,
    staged: StagedSteps | None = None, tries: int = 0,
) -> TensorPlacement:  # fmt: skip
    """Return a placement with tensors from ``low`` to ``high`` of segment 6, or, with ``staged`` (see :func:`_placed`),
    from its first byte on where no staging areas are in use. With ``observe`` no two tensors share DRAM, and
    :attr:`TensorPlacement.exports` gives each tensor in LV2 a place there too."""
    unique = list(sharing.unique())
    waiting = [buffer for buffer in unique if buffer.segment is None]
    areas = Areas(low)
    if staged is not None:
        placed = {id(buffer) for buffer in unique}
        homes = [[sharing.home(name) for name in names] for names in staged.tensors]
        areas = Areas(low, [[one for one in held if id(one) in placed] for held in homes], staged.streaming)
    best = best_packing(waiting, params, sharing.order, areas, high, tries)
    states = sum(_aligned(buffer.size) for buffer in unique if buffer.segment == Segment.SCRATCH)
    spilled = [] if observe else [buffer for buffer in waiting if id(buffer) not in best.offsets]
    scratch, extent = _in_dram(spilled, sharing, states)
    places: dict[int, tuple[int, int | None]] = {}  # segment and offset by identity of the buffer
    for buffer in waiting:
        if id(buffer) in best.offsets:
            places[id(buffer)] = (Segment.LV2, best.offsets[id(buffer)])
        elif observe:
            places[id(buffer)] = (Segment.SHARED, None)
        else:
            places[id(buffer)] = (Segment.SCRATCH, scratch[id(buffer)])
    sizes: dict[int, int] = {Segment.INPUTS: 0, Segment.OUTPUTS: 0, Segment.SCRATCH: 0, Segment.SHARED: 0}
    ports = port_offsets(unique)
    for buffer in unique:
        segment = places[id(buffer)][0] if id(buffer) in places else buffer.segment
        if segment in sizes and (segment != Segment.SCRATCH or id(buffer) not in places):
            places[id(buffer)] = (segment, ports.get(id(buffer), sizes[segment]))
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
    sizes |= {Segment.SCRATCH: extent, Segment.LV2: best.extent}
    moved = best.moved + sum(buffer.size * buffer.uses for buffer in unique if buffer.kept)
    passed = sum(buffer.passed for buffer in (*spilled, *(one for one in unique if one.kept)))
    return TensorPlacement(
        graph.tensors, by_tensor, sharing.inside, sizes, moved, constants, exports, sharing.order,
        sharing.parameters, passed,
    )  # fmt: skip


def port_offsets(buffers: Iterable[SharedBuffer]) -> dict[int, int]:
    """Return the offsets of inputs and outputs in their segments, by identity of the buffer: one behind the other."""
    ends: dict[int | None, int] = {Segment.INPUTS: 0, Segment.OUTPUTS: 0}
    found = {}
    for buffer in buffers:
        if buffer.segment in ends:
            found[id(buffer)] = ends[buffer.segment]
            ends[buffer.segment] += _aligned(buffer.size)
    return found


def _in_dram(buffers: Sequence[SharedBuffer], sharing: BufferSharing, base: int) -> tuple[dict[int, int], int]:
    """Return the offsets of ``buffers`` from ``base`` on, by their identity, and the end of all."""
    sizes = aligned(np.array([one.size for one in buffers], np.int64), DRAM_ALIGN)
    bases, together = np.full(len(buffers), base), sharing.order.together(buffers)
    offsets = first_fit(np.arange(len(buffers)), sizes, bases, together, ENDLESS)
    places = {id(one): int(at) for one, at in zip(buffers, offsets, strict=True)}
    return places, max(base, int((offsets + sizes).max(initial=0)))


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
    pieces, end = list[bytes](), 0
    for name, tensor in graph.tensors.items():
        buffer = sharing.buffers[name]
        if tensor.data is not None and buffer.end >= 0:
            places[id(buffer)] = (Segment.WEIGHTS, end)
            raw = np.ascontiguousarray(tensor.data).tobytes()
            pieces.append(raw + bytes(-len(raw) % DRAM_ALIGN))
            end += len(pieces[-1])
    return b"".join(pieces)
