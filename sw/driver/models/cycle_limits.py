"""How many cycles a body may take before it is taken for one that never ends."""

from collections import Counter

from hw.contract.image import Image
from hw.contract.params import DRAM_TIMING, SocParams

FACTOR = 4  #: times the bound: it leaves out what the host does to the memory, and stalls that are nobody's
MARGIN = 1 << 16
_MOST = (1 << 32) - 1


def default_cycle_limits(image: Image, params: SocParams) -> list[int]:
    """For each job ``FACTOR`` times the worst case that the image states plus ``MARGIN``, or 0, which is no limit: for
    an image without bounds, and on a memory of other timing than that which the bounds hold for."""
    if any(getattr(image.params, name) != getattr(params, name) for name in DRAM_TIMING):
        return [0] * len(image.meta.jobs)
    stretches: Counter[int] = Counter()
    for point in image.meta.cancel_points:
        stretches[point.job] += point.worst_interval
    return [
        min(FACTOR * (stretches[i] + job.worst_cycles) + MARGIN, _MOST) if job.worst_cycles else 0
        for i, job in enumerate(image.meta.jobs)
    ]
