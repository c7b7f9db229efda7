"""The verifier of a placement, run before any instruction is made."""

from collections.abc import Iterator
from itertools import combinations

from compiler.backend.memory.budget import Lv2Budget
from compiler.backend.memory.tensor_placement import TensorBuffer, TensorPlacement
from compiler.ir import CompileError
from hw.contract.isa import Segment


def verify_placement(model: str, placement: TensorPlacement, budget: Lv2Budget) -> None:
    """Check that buffers which live at the same time share no byte of LV2 or of scratch DRAM, and that none reaches
    into the staging areas. Raises :class:`CompileError` naming ``model`` and offsets."""
    for problem in _problems(placement, budget):
        raise CompileError(f"{model}: internal error: {problem}")


def _problems(placement: TensorPlacement, budget: Lv2Budget) -> Iterator[str]:
    buffers = {id(buffer): buffer for buffer in placement.by_tensor.values() if buffer.size and buffer.users}
    for segment in (Segment.LV2, Segment.SCRATCH):
        inside = sorted((b for b in buffers.values() if b.segment == segment), key=lambda b: b.offset)
        for a, b in combinations(inside, 2):
            if b.offset < a.offset + a.size and not placement.order.apart(a, b):
                yield f"buffers at {a.offset} and {b.offset} of segment {int(segment)} share bytes while both live"
    for buffer in buffers.values():
        if buffer.segment == Segment.LV2 and _meets_staging(buffer, budget):
            yield f"the buffer at {buffer.offset} of LV2 lies in the staging areas"


def _meets_staging(buffer: TensorBuffer, budget: Lv2Budget) -> bool:
    return buffer.offset < budget.staging_end and budget.staging_base < buffer.offset + buffer.size
