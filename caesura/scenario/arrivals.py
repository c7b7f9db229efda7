"""Tells when requests arrive."""

import random
from itertools import accumulate
from pathlib import Path

from caesura.scenario.schema import Arrivals, Closed, Periodic, Poisson, ScenarioError, TraceSpec


def times(arrivals: Arrivals, rng: random.Random, folder: Path) -> list[float]:
    """Return the arrival times of requests that do not wait for others. TraceSpec files are looked up in ``folder``.

    Raises :class:`ScenarioError` for a trace that cannot be read.
    """
    match arrivals:
        case Periodic():
            return [arrivals.start + number * arrivals.period for number in range(arrivals.count)]
        case Poisson():
            gaps = (rng.expovariate(1 / arrivals.interval) for _ in range(arrivals.count))
            return [arrivals.start + time for time in accumulate(gaps)]
        case TraceSpec():
            return sorted(arrivals.times if arrivals.file is None else _read(folder / arrivals.file))
        case Closed():
            return [0.0] * min(arrivals.concurrency, arrivals.count)


def _read(path: Path) -> list[float]:
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
