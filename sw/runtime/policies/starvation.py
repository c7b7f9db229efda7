"""Guards idle-time layer scheduling against starvation."""

from collections.abc import Sequence

from sw.runtime.policies.contract import Candidate


def has_waited(candidate: Candidate, candidates: int) -> bool:
    """Return whether a layer was passed over twice as often as there are ``candidates``: then it goes before its
    equals."""
    return candidate.passed_over >= 2 * candidates


def guarded(chosen: Candidate, candidates: Sequence[Candidate], limit: int) -> Candidate:
    """Return ``chosen``, unless it would make another layer be passed over more than ``limit`` times: then the layer
    that was passed over most often.

    A layer passed over ``limit`` times goes next regardless. As only one layer can go next, the guard acts early where
    several are near the limit: of the others, the one passed over most often must have a decision left, the next one
    two, and so on. With more than ``limit + 1`` models no order could keep the limit; the number of models less one
    takes its place.
    """
    limit = max(limit, len(candidates) - 1)
    if max(c.passed_over for c in candidates) + len(candidates) <= limit:
        return chosen
    waiting = sorted((c.passed_over for c in candidates if c is not chosen), reverse=True)
    if all(passed + 1 + place <= limit for place, passed in enumerate(waiting)):
        return chosen
    return min(candidates, key=lambda c: (-c.passed_over, c.arrival, c.request))
