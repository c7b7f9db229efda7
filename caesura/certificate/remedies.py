"""Says which term breaks a promise, and what would mend it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from sw.admission import Delays, RequestStream, Response, responses

_MOST = 64  #: times a period may be lengthened


def breaking_term(response: Response) -> str:
    """Return the largest term of a response time in words."""
    if response.response is None:
        return response.reason
    parts = {"blocking": response.blocking, "its own time": response.own}
    parts |= {f"requests of {part.urgent.name}": part.cycles for part in response.interference}
    name = max(parts, key=lambda one: parts[one])
    return f"{name}, {parts[name] / response.response:.0%} of its response time"


def remedies(streams: Sequence[RequestStream], section: int, response: Response) -> list[str]:
    """Return changes, each of which alone would let the stream of ``response`` keep its promise."""
    return list(_found(streams, section, response))


def _found(streams: Sequence[RequestStream], section: int, response: Response) -> Iterator[str]:
    stream = response.stream
    if response.response is not None:
        yield f"a deadline of {response.response:,} cycles"
        yield from _shorter_blocking(streams, section, response)
    for part in sorted(_urgent(streams, stream), key=lambda one: -one.own):
        if (period := _period(streams, section, stream, part.stream)) is not None:
            yield f"a period of {period:,} cycles for {part.stream.name}"


def _urgent(streams: Sequence[RequestStream], stream: RequestStream) -> list[Response]:
    """Return the streams that are at least as urgent and have a period, the stream itself among them."""
    some = [one for one in streams if one.priority >= stream.priority and one.period is not None]
    delays = Delays(streams)
    return [Response(one, 0, delays.own(one)) for one in some]


def _shorter_blocking(streams: Sequence[RequestStream], section: int, response: Response) -> Iterator[str]:
    """Say how much less urgent streams may hold the engines, if that is enough to mend it."""
    delays, stream = Delays(streams, section), response.stream
    lower = delays.less_urgent(stream)
    if response.slack is None or not lower or response.blocking + response.slack <= section:
        return
    worst = max(lower, key=lambda one: delays.under_way(one) + one.halt_and_dump)
    left = response.blocking + response.slack
    yield (
        f"blocking of {left:,} cycles at the most instead of {response.blocking:,}: {worst.name} takes "
        f"{delays.under_way(worst):,} to begin or to come back, and {worst.halt_and_dump:,} to stop and to be dumped; "
        "compile it with a shorter --cancel-interval, or for less of LV2"
    )


def _period(
    streams: Sequence[RequestStream], section: int, stream: RequestStream, changed: RequestStream
) -> int | None:
    """Return the least period of ``changed`` with which ``stream`` keeps its promise, or None if none does."""
    assert changed.period is not None

    def kept(period: int) -> bool:
        after = [replace(one, period=period) if one is changed else one for one in streams]
        return next(found for found in responses(after, section) if found.stream.name == stream.name).accepted

    return _least(changed.period, _MOST * changed.period, kept)


def _least(low: int, high: int, kept: Callable[[int], bool]) -> int | None:
    """Return the least number in (``low``, ``high``] that is ``kept``, as all above it are; None if there is none."""
    if not kept(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if kept(middle) else (middle, high)
    return high
