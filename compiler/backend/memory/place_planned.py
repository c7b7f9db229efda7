"""The placement as a plan says it."""

from compiler.backend.memory.budget import Lv2Budget
from compiler.backend.memory.tensor_placement import TensorPlacement
from compiler.plan.plan import BufferPlan, MemoryPlan


def memory_plan(budget: Lv2Budget, placement: TensorPlacement) -> MemoryPlan:
    """What ``budget`` and ``placement`` say."""
    tensors: dict[int, list[str]] = {}
    for name, buffer in placement.by_tensor.items():
        tensors.setdefault(id(buffer), []).append(name)
    homes = {id(buffer): buffer for buffer in placement.by_tensor.values()}
    buffers = tuple(
        BufferPlan(
            tuple(names), None if home.segment is None else int(home.segment), home.offset, home.size, home.pitch
        )
        for names, home in ((names, homes[at]) for at, names in tensors.items())
    )
    inside = tuple((name, outer, first) for name, (outer, first) in placement.inside.items())
    sizes = tuple((int(segment), size) for segment, size in placement.sizes.items())
    return MemoryPlan(
        budget.area, budget.windows, budget.job_weights, buffers, inside, tuple(placement.exports.items()), sizes
    )
