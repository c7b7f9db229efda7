"""Serves requests turn by turn, layer by layer."""

from collections.abc import Sequence

from sw.runtime.policies.contract import AcceleratorState, Candidate, OrderPolicy


class RoundRobin(OrderPolicy):
    """Serves one layer of each open request in turn, in order of request numbers."""

    def __init__(self) -> None:
        self._last = -1

    def choose(self, state: AcceleratorState, candidates: Sequence[Candidate]) -> Candidate:
        """Return the layer of the request after the one served last."""
        chosen = min(candidates, key=lambda c: (c.request <= self._last, c.request))
        self._last = chosen.request
        return chosen
