"""Tells whether one more model may use the path to memory, which hardware shares evenly, so that all still end when the
longest does.

Models on engines of their own wait for nothing of each other but DRAM. If all of them load at once, the one that takes
longest loses as much as the others, and ends later than it would have to. So a layer of another waits as long as its
model can still catch up: fluid fair shares, by the least slack.
"""

import math
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace

from sw.runtime.engine_sets import apart
from sw.runtime.forecast import Estimates
from sw.runtime.policies.contract import LayerCost
from sw.runtime.request import GroupRun
from sw.runtime.scheduler import LayerChain

#: Each further stream of bursts opens rows of the DRAM that others had open; what that takes of the bandwidth, as
#: measured with eight networks on eight engines.
LOST_BY_STREAM = 0.05
_NEGLIGIBLE = 0.03  #: share of the bandwidth below which a stream opens rows too seldom to count


@dataclass(frozen=True)
class MemoryUser:
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


def may_join(tenant: MemoryUser, others: Sequence[MemoryUser], ready: bool = True) -> bool:
    """Return whether a layer of ``tenant`` may run beside those of ``others``: each that is as urgent as it, or more,
    still ends in time, which is when the longest of all would alone, or its own deadline. The one that has least time
    to spare always may; another only when it is ``ready``, which is when its layer before has begun."""
    beside = [other for other in others if other.priority >= tenant.priority]
    longest = max([tenant.left, *(other.left for other in beside)])
    needs = [other.left / max(1.0, min(longest, other.due)) for other in [tenant, *beside]]
    if needs[0] >= max(needs):
        return True
    if not ready:
        return False
    speeds = fair_speeds([tenant.demand, *(other.demand for other in beside)])
    return all(speed >= min(1.0, need) for speed, need in zip(speeds[1:], needs[1:], strict=True))


class MemoryShares:
    """Lets layers on engines of their own wait for those of others, by ``estimates``."""

    def __init__(self, estimates: Estimates) -> None:
        self._estimates = estimates

    def may_join(
        self, chain: LayerChain, beside: Iterable[LayerChain], running: Sequence[GroupRun],
        begun: Container[tuple[int, int]], yields: int, now: float,
    ) -> bool:  # fmt: skip
        """Return whether the next layer of ``chain`` may run, ``beside`` other chains. ``running``: groups that were
        decided on and have not ended; some have ``begun``. One that has waited for ``yields`` layers of each set of
        other engines always may."""
        sets = apart((other for other in beside if not other.parked), lambda other: other.engines)
        others = [one for one in sets if not any(other.meets(chain) for other in one)]
        if not others or chain.yielded >= yields * len(others):
            return True
        own = next(one for one in sets if chain in one)
        layer = self._estimates.layers(chain.model)[chain.next_layer]
        ready = all(run.decision.key in begun for run in running if run.decision.chain is chain)
        joining = replace(self._tenant(own, running, now), demand=_demand(layer))
        return may_join(joining, [self._tenant(one, running, now) for one in others], ready)

    def _tenant(self, chains: Sequence[LayerChain], running: Sequence[GroupRun], now: float) -> MemoryUser:
        """Return what uses one set of engines. Its demand is that of the layer that runs there, or 0."""
        layers = [run.group.cost for run in running if run.decision.chain in chains]
        left = sum(max(cost.load, cost.compute) for cost in layers)
        left += sum(self._estimates.remaining(c.model, c.next_layer) for c in chains if c.candidates or c.committed)
        due = min((c.deadline - now for c in chains if c.deadline is not None), default=math.inf)
        return MemoryUser(_demand(layers[0]) if layers else 0.0, left, due, max(chain.priority for chain in chains))


def _demand(cost: LayerCost) -> float:
    return cost.load / max(1.0, cost.load, cost.compute)
