"""Schedules layers by idle time (Korean patent application 10-2020-0132759, 2020): resources idle least."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from sw.runtime.policies.combinations import first_of_best
from sw.runtime.policies.contract import AcceleratorState, Candidate, OrderPolicy
from sw.runtime.policies.starvation import guarded, has_waited


class Idle(NamedTuple):
    """Says for how long a candidate, scheduled next, leaves each of the two resources idle."""

    compute: float
    access: float


def idle_times(state: AcceleratorState, candidate: Candidate) -> Idle:
    """Return both idle times. Compute idle time is ``max(0, memory-access time - (T2 - T1))``. Memory-access idle time
    runs from when loading must pause because on-chip memory is full for this layer until the compute of scheduled
    layers has freed enough.

    A pause delays the load, so it counts as part of the memory-access time. A layer whose inputs exist only after T2,
    which happens with several engines, leaves compute idle until then. A layer of several jobs computes the first while
    it loads the next, so that much of its load counts for nothing.
    """
    now, start, free = state.now, state.access_free, candidate.free
    load, _, size, overlap, _, _ = candidate.cost
    if start < now:  # comparisons: max() takes several times as long, and all candidates of all decisions come here
        start = now
    begin = candidate.room
    if begin < start:
        begin = start
    if size > state.memory_total - state.memory_used:
        begin = state.load_end(begin, load, size) - load
    computes = begin + load - overlap
    if computes < candidate.ready:
        computes = candidate.ready
    if free is None:
        free = state.compute_end
    idle = computes - (free if free > now else now)
    return Idle(idle if idle > 0 else 0.0, begin - start)


class IdleTime(OrderPolicy):
    """Follows the published rule: the layer with the smallest sum of both idle times, on a tie the one with the smaller
    memory-access idle time.

    Where that ties, too, which the publication leaves open, a layer that has waited goes first (see
    :func:`sw.runtime.policies.starvation.has_waited`); then the one with the most memory access for its compute, which
    uses the lead of compute over memory access that compute-heavy layers have built up, so that both kinds alternate;
    then that of the oldest request.

    ``window > 1`` prices combinations of that many layers and takes the first layer of the best. ``starvation_limit``:
    how often a layer may be passed over (see :func:`sw.runtime.policies.starvation.guarded`), also for those on other
    engines, so that memory access is not idle in the end because the longest model has lost it to others.
    """

    def __init__(self, window: int = 1, starvation_limit: int = 16) -> None:
        if not 1 <= window <= 8:
            raise ValueError(f"window must be 1 to 8 layers of each model, not {window}")
        if starvation_limit < 1:
            raise ValueError(f"starvation_limit must be at least 1, not {starvation_limit}")
        self.window = window
        self.yields = self._limit = starvation_limit

    def choose(self, state: AcceleratorState, candidates: Sequence[Candidate]) -> Candidate:
        """Return the candidate that the class describes."""
        if self.window > 1 and any(c.following for c in candidates):
            best = first_of_best(state, candidates, self.window)
        else:
            tied, least = list[Candidate](), (math.inf, math.inf)
            for candidate in candidates:
                compute, access = idle_times(state, candidate)
                price = compute + access, access
                if price < least:
                    tied, least = [candidate], price
                elif price == least:
                    tied.append(candidate)
            best = tied[0] if len(tied) == 1 else min(tied, key=lambda one: seniority(one, len(candidates)))
        return guarded(best, candidates, self._limit)


def seniority(candidate: Candidate, candidates: int) -> tuple[float, ...]:
    """Return a key that sorts layers whose idle times tie among so many ``candidates``."""
    cost = candidate.cost
    return not has_waited(candidate, candidates), cost.compute - cost.load, candidate.arrival, candidate.request


class IdleTimeTolerant(OrderPolicy):
    """Is :class:`~sw.runtime.policies.idle_time.IdleTime` with sums of idle times that tie although they differ a
    little: by less than ``tolerance`` times what the layer with the larger one takes.

    Estimates are not better than that, and compute that waits for a moment costs less than a lead that memory access
    has no room for. What ties is ordered as there, the smaller memory-access idle time first.
    """

    def __init__(self, tolerance: float = 0.05, starvation_limit: int = 16) -> None:
        if tolerance < 0:
            raise ValueError(f"tolerance must not be negative, not {tolerance}")
        if starvation_limit < 1:
            raise ValueError(f"starvation_limit must be at least 1, not {starvation_limit}")
        self._limit, self._tolerance = starvation_limit, tolerance

    def choose(self, state: AcceleratorState, candidates: Sequence[Candidate]) -> Candidate:
        """Return the candidate that the class describes."""
        idle = [idle_times(state, candidate) for candidate in candidates]
        least = min(map(sum, idle))
        tied = [
            (mine, candidate)
            for mine, candidate in zip(idle, candidates, strict=True)
            if sum(mine) - least <= self._tolerance * max(candidate.cost.load, candidate.cost.compute)
        ]
        best = min(tied, key=lambda pair: (pair[0].access, *seniority(pair[1], len(candidates))))[1]
        return guarded(best, candidates, self._limit)
