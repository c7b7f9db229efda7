"""Schedules layers by idle time without trusting estimates to the last cycle."""

from collections.abc import Sequence

from sw.runtime.policies.contract import AcceleratorState, Candidate, OrderPolicy
from sw.runtime.policies.idle_time import idle_times, seniority
from sw.runtime.policies.starvation import guarded


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
