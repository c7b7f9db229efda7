"""Schedules by tokens in the manner of PREMA."""

from collections.abc import Sequence

from sw.runtime.policies.contract import AcceleratorState, Candidate, OrderPolicy


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
