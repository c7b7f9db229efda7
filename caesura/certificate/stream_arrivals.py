"""Says how often requests of a stream may come, in cycles."""

import math

from caesura.scenario.arrivals import Periodic
from caesura.scenario.file_table import ScenarioError
from caesura.scenario.promises import Sporadic
from caesura.scenario.schema import Stream


def rate(stream: Stream, ticks: int) -> tuple[int | None, int, int]:
    """Return period, jitter and burst of ``stream``, whose unit of time has ``ticks`` cycles; no period if its arrivals
    have none and nobody polices them. Raises :class:`ScenarioError` for a period below a cycle."""
    if stream.police is not None:
        return _period(stream.name, stream.police.period, ticks), 0, stream.police.burst
    match stream.arrivals:
        case Periodic(period=period):
            return _period(stream.name, period, ticks), 0, 1
        case Sporadic(period=period, jitter=jitter, burst=burst):
            return _period(stream.name, period, ticks), math.ceil(jitter * ticks), burst
    return None, 0, 1


def _period(name: str, period: float, ticks: int) -> int:
    cycles = math.floor(period * ticks)
    if not cycles:
        raise ScenarioError(f"stream {name!r}: a period of {period} is less than a cycle; lengthen it")
    return cycles
