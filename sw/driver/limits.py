"""Sets how many cycles the driver waits for what others wrote, and how much code a job can reach: limits of its own,
which nothing in an image raises.

The hardware counts the cycles of a body, from its first instruction on. What is ahead of that counts here, from when
the job has become the oldest of its engine and the events that it waits for have come."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from hw.contract.isa import INSN_BYTES, Op
from hw.contract.params import DRAM_TIMING, SocParams
from hw.image import Image

FACTOR = 4  #: times the bound: it leaves out what the host does to the memory, and stalls that are nobody's
MARGIN = 1 << 16
#: Of any body: 2.7 times what a convolution of 1080x1920 takes on ``base``. ``Device.load`` takes another one.
BODY = 1 << 23
BEGINNING = 1 << 22  #: until the oldest job of an engine has its descriptor, its prologue and an instruction
AFTER_DEADLINE = 1 << 20  #: in which jobs of a request that is too late may run out where others stand behind them
_MOST = (1 << 32) - 1
_PER_BYTE = 16  #: cycles in which a copy moves a byte, on the slowest memory, with all engines at work


def body_limits(image: Image, params: SocParams, most: int | Sequence[int] = BODY) -> list[int]:
    """Return for each job ``FACTOR`` times the worst case that the image states plus ``MARGIN``, but never above
    ``most``: that alone holds for an image without bounds, and on a memory of other timing than that which bounds hold
    for. A number for each job holds instead of all that; raises ``ValueError`` unless there is one for each."""
    if not isinstance(most, int):
        if len(most) != len(image.meta.jobs):
            raise ValueError(
                f"body_cycles has {len(most)} limits, and image {image.meta.model!r} has {len(image.meta.jobs)} jobs; "
                "give one for each"
            )
        return [min(each, _MOST) for each in most]
    most = min(most, _MOST)
    if any(getattr(image.params, name) != getattr(params, name) for name in DRAM_TIMING):
        return [most] * len(image.meta.jobs)
    stretches: Counter[int] = Counter()
    for point in image.meta.cancel_points:
        stretches[point.job] += point.worst_interval
    return [
        min(FACTOR * (stretches[i] + job.worst_cycles) + MARGIN, most) if job.worst_cycles else most
        for i, job in enumerate(image.meta.jobs)
    ]


def copy_limit(size: int) -> int:
    """Return the limit of a program of the driver's own that moves, or clears, ``size`` bytes."""
    return min(MARGIN + _PER_BYTE * size, _MOST)


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
