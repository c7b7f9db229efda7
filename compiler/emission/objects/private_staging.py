"""Addresses in LV2 of a placed model: what any engine may run must not name the bytes of one engine.

Kernels put tiles on their way from or to DRAM into the staging area of segment 6, beside tensors. Several engines do so
at once in a placed model, each with a job of another layer. So the staging area moves to segment 7, behind the ring of
weight windows: both are private to an engine, whose part of LV2 the driver makes segment 7 of the job. Segment 6 keeps
the tensors, from the first on.
"""

from collections.abc import Sequence
from dataclasses import replace

from compiler.emission.program.address import JobAddresses
from compiler.emission.program.extents import source
from compiler.emission.program.task import Task
from compiler.plan.memory.budget import Lv2Budget
from compiler.plan.memory.tensor_placement import TensorPlacement
from hw.contract.isa import Insn, Op, Segment
from hw.contract.spaces import Space
from hw.image import LiveRange

_ADDRESSES = 1 << 32


class PrivateStaging:
    """Translates addresses in segment 6 as kernels use them. ``bytes``: of the part of an engine, windows and staging;
    ``shared_bytes``: of the tensors, in whole LV2 words of ``word`` bytes."""

    def __init__(self, placement: TensorPlacement, budget: Lv2Budget, word: int) -> None:
        self._area, self._windows = budget.area, budget.windows
        homes = [b for b in placement.by_tensor.values() if b.segment == Segment.LV2 and b.size]
        self._first = min((buffer.offset for buffer in homes), default=0)
        end = max((buffer.offset + buffer.size for buffer in homes), default=0)
        self.shared_bytes = -(-(end - self._first) // word) * word  # so that segment 7 behind it begins with a word
        self.bytes = budget.windows + budget.area.size

    def insn(self, task: Task, addresses: JobAddresses) -> Insn:
        """Return the instruction of ``task``, with each end of a copy that lies in segment 6 at its place."""
        insn = task.insn(addresses)
        fields = dict(insn.fields)
        if task.op in (Op.LD1, Op.ST2) and fields.get("src_seg") == Segment.LV2:
            read = source(task)
            if read is not None:  # by what is read: under padding a copy starts before its tile
                fields["src_seg"], shift = self._move(read.low)
                fields["src"] = (fields.get("src", 0) + shift) % _ADDRESSES
        if task.op in (Op.LD2, Op.ST1) and fields.get("dst_seg") == Segment.LV2:
            fields["dst_seg"], shift = self._move(fields.get("dst", 0))
            fields["dst"] = fields.get("dst", 0) + shift
        return Insn(insn.op, fields, insn.added)

    def ranges(self, live: Sequence[LiveRange]) -> list[LiveRange]:
        """Return the live ranges at their places."""
        return [self._range(one) if (one.space, one.segment) == (Space.LV2, Segment.LV2) else one for one in live]

    def _range(self, one: LiveRange) -> LiveRange:
        segment, shift = self._move(one.offset)
        return replace(one, segment=segment, offset=one.offset + shift)

    def _move(self, offset: int) -> tuple[int, int]:
        """Return the segment of what lies at ``offset``, and what to add to its address."""
        if self._area.base <= offset < self._area.base + self._area.size:
            return int(Segment.WINDOWS), self._windows - self._area.base
        return int(Segment.LV2), -self._first
