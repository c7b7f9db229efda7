"""Takes deadlines first when they are near, and idle time otherwise."""

from collections.abc import Sequence

from sw.runtime.policies.contract import AcceleratorState, Candidate, OrderPolicy
from sw.runtime.policies.idle_time import IdleTime


class Deadline(OrderPolicy):
    """Is the deadline mode of idle-time layer scheduling: earliest deadline first while slack is short.

    Slack is the time to the deadline less the time that the request still needs alone. It is short below ``margin``
    times the latter, which allows for what the other models take meanwhile.
    """

    def __init__(self, margin: float = 1.0, window: int = 1, starvation_limit: int = 16) -> None:
        if margin < 0:
            raise ValueError(f"margin must not be negative, not {margin}")
        self._margin = margin
        self._idle_time = IdleTime(window, starvation_limit)
        self.window = window

    def choose(self, state: AcceleratorState, candidates: Sequence[Candidate]) -> Candidate:
        """Return the candidate that the class describes."""
        urgent = [c for c in candidates if c.deadline is not None and self._is_short(c, c.deadline - state.now)]
        if urgent:
            return min(urgent, key=lambda c: (c.deadline, c.arrival, c.request))
        return self._idle_time.choose(state, candidates)

    def _is_short(self, candidate: Candidate, left: float) -> bool:
        return left - candidate.remaining < self._margin * candidate.remaining
