"""Idle-time layer scheduling (Korean patent application 10-2020-0132759, 2020): resources idle least."""

from collections.abc import Sequence
from typing import NamedTuple

from sw.runtime.policies.combinations import first_of_best
from sw.runtime.policies.contract import AcceleratorState, Candidate, OrderPolicy
from sw.runtime.policies.starvation import guarded


class Idle(NamedTuple):
    """For how long a candidate, scheduled next, leaves each of the two resources idle."""

    compute: float
    access: float


def idle_times(state: AcceleratorState, candidate: Candidate) -> Idle:
    """Compute idle time: ``max(0, memory-access time - (T2 - T1))``. Memory-access idle time: from when loading must
    pause because on-chip memory is full for this layer until the compute of scheduled layers has freed enough.

    A pause delays the load, so it counts as part of the memory-access time. A layer whose inputs exist only after T2,
    which happens with several engines, leaves compute idle until then. A layer of several jobs computes the first while
    it loads the next, so that much of its load counts for nothing.
    """
    start = state.access_start
    cost = candidate.cost
    pause = max(0.0, max(state.room_at(cost.bytes), candidate.room) - start)
    begin = max(start + pause + cost.load - cost.overlap, candidate.ready)
    return Idle(max(0.0, begin - max(state.now, state.compute_end)), pause)


class IdleTime(OrderPolicy):
    """The layer with the smallest sum of both idle times; on a tie the one with the smaller memory-access idle time.

    Where that ties, too, the layer with the most memory access for its compute: it uses the lead of compute over memory
    access that compute-heavy layers have built up, so both kinds alternate. Then the oldest request.

    Two sums tie if they differ by less than ``tolerance`` times what the layer with the larger one takes: estimates are
    not better than that, and compute that waits for a moment costs less than a lead that memory access has no room for.

    ``window > 1`` prices combinations of that many layers and takes the first layer of the best. ``starvation_limit``:
    how often a layer may be passed over (see :func:`sw.runtime.policies.starvation.guarded`).
    """

    def __init__(self, window: int = 1, starvation_limit: int = 16, tolerance: float = 0.05) -> None:
        if tolerance < 0:
            raise ValueError(f"tolerance must not be negative, not {tolerance}")
        if not 1 <= window <= 8:
            raise ValueError(f"window must be 1 to 8 layers of each model, not {window}")
        if starvation_limit < 1:
            raise ValueError(f"starvation_limit must be at least 1, not {starvation_limit}")
        self.window = window
        self._limit, self._tolerance = starvation_limit, tolerance

    def choose(self, state: AcceleratorState, candidates: Sequence[Candidate]) -> Candidate:
        """See the class."""
        if self.window > 1 and any(c.following for c in candidates):
            best = first_of_best(state, candidates, self.window)
        else:
            best = self._best(state, candidates)
        return guarded(best, candidates, self._limit)

    def _best(self, state: AcceleratorState, candidates: Sequence[Candidate]) -> Candidate:
        idle = [idle_times(state, candidate) for candidate in candidates]
        least = min(map(sum, idle))
        tied = [
            (mine, candidate)
            for mine, candidate in zip(idle, candidates, strict=True)
            if sum(mine) - least <= self._tolerance * max(candidate.cost.load, candidate.cost.compute)
        ]
        return min(tied, key=lambda pair: _order(*pair))[1]


def _order(idle: Idle, candidate: Candidate) -> tuple[float, float, float, int]:
    """Among layers whose sums tie, smaller goes first."""
    cost = candidate.cost
    return idle.access, cost.compute - cost.load, candidate.arrival, candidate.request
