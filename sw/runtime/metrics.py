"""Measures how well several models were served. Terms and definitions are those of the field; sources stand in the
docstrings."""

import math
from collections.abc import Iterable, Mapping, Sequence


def antt(turnarounds: Sequence[float], alone: Sequence[float]) -> float:
    """Return the average normalised turnaround time: the mean of turnaround time divided by the turnaround time when
    alone.

    Eyerman and Eeckhout, "System-level performance metrics for multiprogram workloads", IEEE Micro 28(3), 2008. 1 is
    ideal, smaller is better. One element per request; NaN without requests.
    """
    return _mean([shared / single for shared, single in zip(turnarounds, alone, strict=True)])


def stp(progress: Mapping[str, Sequence[float]]) -> float:
    """Return the system throughput: the sum over programs of their normalised progress.

    Eyerman and Eeckhout 2008. ``progress``: by program, of each of its requests the turnaround time when alone divided
    by the turnaround time. The number of programs is ideal, larger is better.
    """
    return sum(_mean(values) for values in progress.values())


def fairness(progress: Mapping[str, Sequence[float]]) -> float:
    """Return the smallest normalised progress of a program divided by the largest: 1 is fair, 0 is starvation.

    Eyerman and Eeckhout 2008, who take it from Gabor, Weiss and Mendelson, MICRO 2006. ``progress`` as for :func:`stp`.
    """
    means = [_mean(values) for values in progress.values()]
    return min(means) / max(means) if means else math.nan


def sla_violation_rate(ends: Iterable[tuple[float, float | None]]) -> float:
    """Return the share of requests that ended after their deadline, of those that have one (as in PREMA, HPCA 2020).

    ``ends``: end and deadline of each request; an infinite end is a request that never did. 0 without deadlines.
    """
    late = [end > deadline for end, deadline in ends if deadline is not None]
    return sum(late) / len(late) if late else 0.0


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that at least ``percent`` of all values do not exceed (nearest rank). NaN without
    values."""
    if not values:
        return math.nan
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def utilisation(busy: float, available: float) -> float:
    """Return the percentage of the available time in which a resource was busy, or 0 if none was available."""
    return 100 * busy / available if available else 0.0


def prediction_error(predicted: Sequence[float], measured: Sequence[float]) -> float:
    """Return the mean absolute error of ``predicted``. NaN without values."""
    return _mean([abs(a - b) for a, b in zip(predicted, measured, strict=True)])


def makespan_bound(loads: Iterable[float], computes: Iterable[float], engines: int = 1) -> float:
    """Return a time before which no order ends: memory access and compute can overlap, but each resource does one thing
    at a time."""
    return max(sum(loads), sum(computes) / engines)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan
