"""Serves layers in the order of whole requests, or turn by turn."""

from collections.abc import Sequence

from sw.runtime.policies.contract import AcceleratorState, Candidate, OrderPolicy


class Fcfs(OrderPolicy):
    """Serves first come, first served: all layers of the oldest request before any of the next."""

    def choose(self, state: AcceleratorState, candidates: Sequence[Candidate]) -> Candidate:
        """Return the layer of the request that arrived first."""
        return min(candidates, key=lambda c: (c.arrival, c.request))


class RoundRobin(OrderPolicy):
    """Serves one layer of each open request in turn, in order of request numbers."""

    def __init__(self) -> None:
        self._last = -1

    def choose(self, state: AcceleratorState, candidates: Sequence[Candidate]) -> Candidate:
        """Return the layer of the request after the one served last."""
        chosen = min(candidates, key=lambda c: (c.request <= self._last, c.request))
        self._last = chosen.request
        return chosen


class ShortestJobFirst(OrderPolicy):
    """Serves the request with the shortest duration when alone. A shorter one that arrives takes over at the next
    layer."""

    def choose(self, state: AcceleratorState, candidates: Sequence[Candidate]) -> Candidate:
        """Return the layer of the shortest request, of equally short ones the oldest."""
        return min(candidates, key=lambda c: (c.alone, c.arrival, c.request))


class Prema(OrderPolicy):
    """Lets tokens grow with priority and slowdown; among requests with many tokens the shortest goes first.

    After Choi and Rhu, "PREMA: a predictive multi-task scheduling algorithm for preemptible neural processing units",
    HPCA 2020. Levels of priority stand at 1, 3, 9, ... tokens. A request starts with the tokens of its level and gains
    as many again for each of its own durations that it has waited. Requests at or above the highest level that any of
    them reached take part. The original decides when a task arrives or ends; this one at every layer, as all do here.
    """

    def choose(self, state: AcceleratorState, candidates: Sequence[Candidate]) -> Candidate:
        """Return the candidate that the class describes."""
        tokens = [_tokens(c, state.now) for c in candidates]
        threshold = 1.0
        while threshold * 3 <= max(tokens):
            threshold *= 3
        eligible = [c for c, count in zip(candidates, tokens, strict=True) if count >= threshold]
        return min(eligible, key=lambda c: (c.remaining, c.arrival, c.request))


def _tokens(candidate: Candidate, now: float) -> float:
    waited = max(0.0, now - candidate.arrival - (candidate.alone - candidate.remaining))
    slowdown = waited / candidate.alone if candidate.alone else 0.0
    return 3.0 ** max(0, candidate.priority) * (1 + slowdown)
