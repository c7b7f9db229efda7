"""Defines when the requests of a stream arrive."""

import random
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from caesura.scenario.file_table import MOST, Count, FileTable, NotNegative, Positive, ScenarioError
from caesura.scenario.promises import Sporadic


class Periodic(FileTable):
    """Sends one request each ``period``, the first at ``start``."""

    kind: Literal["periodic"]
    period: Positive
    count: Count
    start: NotNegative = 0.0


class Poisson(FileTable):
    """Sends requests at random, ``interval`` apart on average, from ``start`` on."""

    kind: Literal["poisson"]
    interval: Positive
    count: Count
    start: NotNegative = 0.0


class Closed(FileTable):
    """Keeps ``concurrency`` requests at any time: the next arrives when one has ended, or has ended its stage
    ``after``. Without a ``count`` requests follow until all streams that have one, or times, have ended."""

    kind: Literal["closed"]
    count: Count | None = None
    concurrency: Count = 1
    think: NotNegative = 0.0  #: time from the end of a request to the arrival of the next
    after: str | None = None


class TraceSpec(FileTable):
    """Sends requests at ``times``, or at the times in ``file``: one number per line."""

    kind: Literal["trace"]
    times: list[NotNegative] = Field(default_factory=list)
    file: Path | None = None


Arrivals = Annotated[Periodic | Sporadic | Poisson | Closed | TraceSpec, Field(discriminator="kind")]


def times(arrivals: Arrivals, rng: random.Random, folder: Path) -> list[float]:
    """Return the arrival times of requests that do not wait for others. TraceSpec files are looked up in ``folder``.

    Raises :class:`ScenarioError` for a trace that cannot be read.
    """
    match arrivals:
        case Periodic():
            return [arrivals.start + number * arrivals.period for number in range(arrivals.count)]
        case Sporadic():
            return sorted(arrivals.due(number) + rng.uniform(0, arrivals.jitter) for number in range(arrivals.count))
        case Poisson():
            gaps = (rng.expovariate(1 / arrivals.interval) for _ in range(arrivals.count))
            return [arrivals.start + time for time in accumulate(gaps)]
        case TraceSpec():
            return sorted(arrivals.times if arrivals.file is None else _times_in(folder / arrivals.file))
        case Closed():
            return [0.0] * min(arrivals.concurrency, arrivals.count or MOST)


def request_count(arrivals: Arrivals, folder: Path) -> int:
    """Return how many requests arrive in all, at most. Raises as :func:`times`."""
    return len(times(arrivals, random.Random(), folder)) if isinstance(arrivals, TraceSpec) else arrivals.count or MOST


def _times_in(path: Path) -> list[float]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ScenarioError(f"{path}: arrival trace cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ScenarioError(f"{path}: not a text file; write one time per line") from None
    result = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                result.append(float(line))
            except ValueError:
                raise ScenarioError(f"{path}: line {number}: {line!r} is not a time; write one per line") from None
            if not 0 <= result[-1] < float("inf"):
                raise ScenarioError(f"{path}: line {number}: {line!r} must be a time from 0 on")
    return result
