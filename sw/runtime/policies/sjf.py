"""Serves short requests before long ones."""

from collections.abc import Sequence

from sw.runtime.policies.contract import AcceleratorState, Candidate, OrderPolicy


class ShortestJobFirst(OrderPolicy):
    """Serves the request with the shortest duration when alone. A shorter one that arrives takes over at the next
    layer."""

    def choose(self, state: AcceleratorState, candidates: Sequence[Candidate]) -> Candidate:
        """Return the layer of the shortest request, of equally short ones the oldest."""
        return min(candidates, key=lambda c: (c.alone, c.arrival, c.request))
