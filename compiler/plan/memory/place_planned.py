"""Defines the placement that a plan says, and what a plan says of a placement."""

from collections.abc import Sequence

import numpy as np

from compiler import ir
from compiler.plan.layers.step import ModelStep
from compiler.plan.memory.budget import Lv2Budget
from compiler.plan.memory.place import shared_buffers
from compiler.plan.memory.tensor_placement import DRAM_ALIGN, TensorBuffer, TensorPlacement
from compiler.plan.memory.verify import verify_memory
from compiler.plan.options import Options
from compiler.plan.plan import BufferPlan, MemoryPlan
from hw.contract.isa import Segment
from hw.contract.params import SocParams


def memory_plan(budget: Lv2Budget, placement: TensorPlacement) -> MemoryPlan:
    """Return what ``budget`` and ``placement`` say."""
    tensors: dict[int, list[str]] = {}
    for name, buffer in placement.by_tensor.items():
        tensors.setdefault(id(buffer), []).append(name)
    homes = {id(buffer): buffer for buffer in placement.by_tensor.values()}
    buffers = tuple(buffer_plan(names, homes[at]) for at, names in tensors.items())
    inside = tuple((name, outer, first) for name, (outer, first) in placement.inside.items())
    sizes = tuple((int(segment), size) for segment, size in placement.sizes.items())
    return MemoryPlan(
        budget.area, budget.windows, budget.job_weights, buffers, inside, tuple(placement.exports.items()), sizes
    )


def buffer_plan(tensors: Sequence[str], home: TensorBuffer) -> BufferPlan:
    """Return what ``home`` says, the buffer of ``tensors``."""
    segment = None if home.segment is None else int(home.segment)
    return BufferPlan(tuple(tensors), segment, home.offset, home.size, home.pitch)


def place_planned(
    graph: ir.Graph, steps: Sequence[ModelStep], params: SocParams, options: Options, memory: MemoryPlan,
    beneath: bytes = b"",
) -> tuple[Lv2Budget, TensorPlacement]:  # fmt: skip
    """Return the division of LV2 and the placement of ``memory``, with constants over those of ``beneath``, which are
    those of a longer length: a shorter one's are often the beginning of those there. Raises :class:`PlanError` if it
    does not do for ``steps``."""
    parts, engines = options.engines, 1 if options.placed else options.engines
    budget = Lv2Budget(engines, parts, memory.staging, memory.windows, memory.job_weights)
    sharing = shared_buffers(graph, steps, params, options)
    verify_memory(graph, sharing, memory, params, options)
    homes, made = {name: buffer for buffer in memory.buffers for name in buffer.tensors}, dict[int, TensorBuffer]()
    for name, buffer in sharing.buffers.items():
        home = homes[name]
        segment = None if home.segment is None else Segment(home.segment)
        copy = None
        if buffer.copy and segment == Segment.LV2:
            kept = next(homes[other] for other, one in sharing.buffers.items() if one is buffer.copy)
            copy = (int(Segment.SCRATCH), kept.offset)
        made[id(home)] = TensorBuffer(home.size, frozenset(buffer.users), segment, home.offset, home.pitch, copy)
    by_tensor, blob = {name: made[id(homes[name])] for name in sharing.buffers}, bytearray(beneath)
    for name, tensor in graph.tensors.items():
        if tensor.data is not None and by_tensor[name].users:
            raw, offset = np.ascontiguousarray(tensor.data).tobytes(), by_tensor[name].offset
            end = -(-(offset + len(raw)) // DRAM_ALIGN) * DRAM_ALIGN
            blob.extend(bytes(max(0, end - len(blob))))
            blob[offset : offset + len(raw)] = raw
    return budget, TensorPlacement(
        graph.tensors, by_tensor, sharing.inside, dict(memory.sizes), 0, bytes(blob), dict(memory.exports),
        sharing.order, sharing.parameters,
    )  # fmt: skip
