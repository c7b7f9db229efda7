"""Tells how much of a model's code each job can reach: its fetch, which reads ahead, need not go further."""

from bisect import bisect_left

from hw.contract.isa import INSN_BYTES, Op
from hw.image import Image


def code_limits(image: Image) -> list[int]:
    """Return for each job the bytes of the code segment up to the end of its programs. There are no jumps, so a program
    runs from its entry to the next END; where it has none, all of the segment counts."""
    ends = [pc for pc, op in enumerate(image.code[::INSN_BYTES]) if op == Op.END]

    def limit(entry: int) -> int:
        found = bisect_left(ends, entry)
        return (ends[found] + 1) * INSN_BYTES if found < len(ends) else len(image.code)

    return [
        max(limit(entry) for entry in (job.body_pc, job.prologue_pc) if entry is not None) for job in image.meta.jobs
    ]
