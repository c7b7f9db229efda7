"""Tells whether one more model may use the path to memory, which hardware shares evenly, so that all still end when the
longest does.

Models on engines of their own wait for nothing of each other but DRAM. If all of them load at once, the one that takes
longest loses as much as the others, and ends later than it would have to. So a layer of another waits as long as its
model can still catch up: fluid fair shares, by the least slack.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

#: Each further stream of bursts opens rows of the DRAM that others had open; what that takes of the bandwidth, as
#: measured with eight networks on eight engines.
LOST_BY_STREAM = 0.05
_NEGLIGIBLE = 0.03  #: share of the bandwidth below which a stream opens rows too seldom to count


@dataclass(frozen=True)
class Tenant:
    """Is a model on engines of its own. ``demand``: the share of the bandwidth, 0 to 1, that it takes when it has its
    full speed. ``left``: cycles until it ends at that speed. ``due``: cycles until it has to, if it has a deadline.
    ``priority``: larger is more urgent."""

    demand: float
    left: float
    due: float = math.inf
    priority: int = 0


def fair_speeds(demands: Sequence[float]) -> list[float]:
    """Return the share of its full speed, 0 to 1, that each stream has where the bandwidth is shared evenly: what those
    do not need who need least is for the others (max-min fairness)."""
    streams = sum(demand > _NEGLIGIBLE for demand in demands)
    free, speeds = 1 / (1 + LOST_BY_STREAM * max(0, streams - 1)), [1.0] * len(demands)
    waiting = sorted(range(len(demands)), key=lambda number: demands[number])
    for served, number in enumerate(waiting):
        share = free / (len(waiting) - served)
        if demands[number] > share:
            speeds[number] = share / demands[number]
        free -= min(demands[number], share)
    return speeds


def may_join(tenant: Tenant, others: Sequence[Tenant]) -> bool:
    """Return whether a layer of ``tenant`` may run beside those of ``others``: each that is as urgent as it, or more,
    still ends in time, which is when the longest of all would alone, or its own deadline. The one that has least time
    to spare always may."""
    beside = [other for other in others if other.priority >= tenant.priority]
    longest = max([tenant.left, *(other.left for other in beside)])
    needs = [other.left / max(1.0, min(longest, other.due)) for other in [tenant, *beside]]
    if needs[0] >= max(needs):
        return True
    speeds = fair_speeds([tenant.demand, *(other.demand for other in beside)])
    return all(speed >= min(1.0, need) for speed, need in zip(speeds[1:], needs[1:], strict=True))
