"""Defines the placement that a plan says."""

from collections.abc import Mapping, Sequence

import numpy as np

from compiler import ir
from compiler.backend.layers.layer import Layer
from compiler.backend.memory.budget import Lv2Budget
from compiler.backend.memory.place import DRAM_ALIGN
from compiler.backend.memory.sharing import BufferSharing
from compiler.backend.memory.tensor_placement import TensorBuffer, TensorPlacement
from compiler.backend.options import Options
from compiler.backend.order.layer_order import Chain, Edges
from compiler.plan.plan import BufferPlan, MemoryPlan
from compiler.plan.plan_error import PlanError
from hw.contract.isa import Segment
from hw.contract.params import SocParams


def memory_plan(budget: Lv2Budget, placement: TensorPlacement) -> MemoryPlan:
    """Return what ``budget`` and ``placement`` say."""
    tensors: dict[int, list[str]] = {}
    for name, buffer in placement.by_tensor.items():
        tensors.setdefault(id(buffer), []).append(name)
    homes = {id(buffer): buffer for buffer in placement.by_tensor.values()}
    buffers = tuple(BufferPlan.of(names, homes[at]) for at, names in tensors.items())
    inside = tuple((name, outer, first) for name, (outer, first) in placement.inside.items())
    sizes = tuple((int(segment), size) for segment, size in placement.sizes.items())
    return MemoryPlan(
        budget.area, budget.windows, budget.job_weights, buffers, inside, tuple(placement.exports.items()), sizes
    )


def place_planned(
    graph: ir.Graph,
    layers: Sequence[Layer],
    params: SocParams,
    options: Options,
    memory: MemoryPlan,
    beneath: bytes = b"",
) -> tuple[Lv2Budget, TensorPlacement]:
    """Return the division of LV2 and the placement of ``memory``, with constants over those of ``beneath``. Raises
    :class:`PlanError` if tensors share buffers, or lie in others, that ``layers`` do not allow, or exceed their
    buffers."""
    parts, engines = options.engines, 1 if options.placed else options.engines
    budget = Lv2Budget(engines, parts, memory.staging, memory.windows, memory.job_weights)
    order = Edges(graph, layers) if options.placed else Chain()
    sharing = BufferSharing(graph, layers, params, order, observe=options.observe)
    by_tensor = _buffers(graph, sharing, memory)
    if {name: (outer, first) for name, outer, first in memory.inside} != sharing.inside:
        raise PlanError(f"model {graph.name!r}: tensors lie in others than in the plan")
    outside = (one for one in sharing.unique() if one.segment is None)
    names = {id(one): name for name, one in sharing.buffers.items()}
    moved = sum(one.size * one.uses for one in outside if by_tensor[names[id(one)]].segment != Segment.LV2)
    constants, exports = _constants(graph, by_tensor, beneath), dict(memory.exports)
    return budget, TensorPlacement(
        graph.tensors, by_tensor, sharing.inside, dict(memory.sizes), moved, constants, exports, order
    )


def _buffers(graph: ir.Graph, sharing: BufferSharing, memory: MemoryPlan) -> dict[str, TensorBuffer]:
    """Return buffers by tensor, in the order of the tensors."""
    homes = {name: buffer for buffer in memory.buffers for name in buffer.tensors}
    if homes.keys() != sharing.buffers.keys():
        odd = min(homes.keys() ^ sharing.buffers.keys())
        raise PlanError(f"model {graph.name!r}: tensor {odd!r} is in the model or in the plan alone")
    mine: dict[int, BufferPlan] = {}
    made: dict[int, TensorBuffer] = {}
    for name, buffer in sharing.buffers.items():
        home = homes[name]
        if mine.setdefault(id(buffer), home) is not home:
            raise PlanError(f"model {graph.name!r}: tensor {name!r} shares its buffer with others than in the plan")
        padding = buffer.padding if home.pitch else 0
        if home.size < buffer.size + padding or home.pitch not in (0, buffer.pitch):
            raise PlanError(f"model {graph.name!r}: tensor {name!r} does not fit the buffer of the plan")
        segment = None if home.segment is None else Segment(home.segment)
        made[id(home)] = TensorBuffer(home.size, frozenset(buffer.users), segment, home.offset, home.pitch)
    if len(mine) != len(memory.buffers):
        raise PlanError(f"model {graph.name!r}: tensors share buffers in the plan")
    return {name: made[id(homes[name])] for name in sharing.buffers}


def _constants(graph: ir.Graph, by_tensor: Mapping[str, TensorBuffer], beneath: bytes) -> bytes:
    """Return constant tensors that a layer reads at their places, written over ``beneath``: those of a shorter length
    are often the beginning of those there."""
    blob = bytearray(beneath)
    for name, tensor in graph.tensors.items():
        if tensor.data is not None and by_tensor[name].users:
            raw, offset = np.ascontiguousarray(tensor.data).tobytes(), by_tensor[name].offset
            end = -(-(offset + len(raw)) // DRAM_ALIGN) * DRAM_ALIGN
            blob.extend(bytes(max(0, end - len(blob))))
            blob[offset : offset + len(raw)] = raw
    return bytes(blob)
