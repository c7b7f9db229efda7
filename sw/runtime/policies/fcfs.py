"""Serves one model at a time, in order of arrival."""

from collections.abc import Sequence

from sw.runtime.policies.contract import AcceleratorState, Candidate, OrderPolicy


class Fcfs(OrderPolicy):
    """Serves first come, first served: all layers of the oldest request before any of the next."""

    def choose(self, state: AcceleratorState, candidates: Sequence[Candidate]) -> Candidate:
        """Return the layer of the request that arrived first."""
        return min(candidates, key=lambda c: (c.arrival, c.request))
