"""Finds the worst-case response time of each stream, under fixed priorities with deferred preemption.

The method is that of Bril, Lukkien and Verhaegh (Real-Time Systems 42, 2009), with release jitter, bursts, the costs
of switches, and streams on different sets of engines (:mod:`sw.admission.delays` says what each of these adds). All
requests of the longest busy period count, not the first alone: one that cannot be stopped any more pushes the next one
of its own stream.

For a request of stream i, number q of a busy period, the last piece begins at the latest after ``w``, the least
solution of ::

    w = B_i + (q + 1) C_i - F_i + sum over more urgent j of (floor((w + J_j) / T_j) + 1) E_ij

where ``B`` is the blocking, ``C`` its own time, ``F`` its tail, ``J`` the lateness, ``T`` the period and ``E`` all that
a request of j costs. Its response time, from when it is due, is ``w + F_i - q T_i + J_i``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

from sw.admission.delays import Delays
from sw.admission.streams import RequestStream

MOST = 100_000  #: requests of one busy period, and steps to its end, that are looked at


@dataclass(frozen=True)
class Interference:
    """Says how many requests of a more ``urgent`` stream come first at the worst, and what each of them costs."""

    urgent: RequestStream
    count: int
    each: int

    @property
    def cycles(self) -> int:
        """Return what they cost together."""
        return self.count * self.each


@dataclass(frozen=True)
class Response:
    """Holds the worst case of one stream in cycles, and what it is made of.

    ``response``: from when a request is due to its end, or None if there is no bound; ``reason`` says why then.
    ``number``: of the request in its busy period, from 0. ``utilisation``: what the stream and more urgent ones take of
    their engines.
    """

    stream: RequestStream
    blocking: int
    own: int
    utilisation: Fraction = Fraction(0)
    response: int | None = None
    number: int = 0
    interference: tuple[Interference, ...] = ()
    reason: str = ""

    @property
    def slack(self) -> int | None:
        """Return what is left until the deadline, negative if it is missed."""
        if self.response is None or self.stream.deadline is None:
            return None
        return self.stream.deadline - self.response

    @property
    def accepted(self) -> bool:
        """Return whether the stream keeps its promise: there is a bound, within the deadline."""
        return not self.stream.promised or (self.response is not None and (self.slack is None or self.slack >= 0))


class Admission(Protocol):
    """Says which streams were answered for, and how."""

    @property
    def body_limits(self) -> Mapping[str, Sequence[int]]:
        """Return of each stream's model the most cycles that each body takes."""
        ...

    @property
    def streams(self) -> Sequence[RequestStream]:
        """Return all streams, those without a promise included."""
        ...

    @property
    def refused(self) -> Sequence[Response]:
        """Return the promised streams that may miss their deadlines."""
        ...


def responses(
    streams: Sequence[RequestStream],
    section: int = 0,
    *,
    delays: Callable[[Sequence[RequestStream], int], Delays] = Delays,
) -> list[Response]:
    """Return the worst case of each promised one of ``streams``, in their order. ``section``: cycles for which the host
    may do something else before it looks at an arrival. Raises ValueError for two streams of one name."""
    if len({stream.name for stream in streams}) < len(streams):
        raise ValueError("two streams have the same name; rename one")
    found = delays(streams, section)
    known: dict[str, Response] = {}
    for stream in sorted(streams, key=lambda one: -one.priority):
        if stream.promised:
            known[stream.name] = _Recurrence(stream, found, known).solve()
    return [known[stream.name] for stream in streams if stream.promised]


class _Unbounded(Exception):
    """Says why a stream has no bound."""


class _Recurrence:
    """Solves the recurrence of one stream. ``known``: what was found for more urgent ones."""

    def __init__(self, stream: RequestStream, delays: Delays, known: Mapping[str, Response]) -> None:
        self._stream, self._delays, self._known = stream, delays, known
        self._blocking, self._own = delays.blocking(stream), delays.own(stream)
        self._equals = delays.equals(stream)
        self._each = {other: delays.each(stream, other) for other in delays.together(stream)}
        self._each |= {other: delays.own(other) for other in self._equals}
        self._late: dict[RequestStream, int] = {}

    def solve(self) -> Response:
        """Return the worst case, or why there is none."""
        found = Response(self._stream, self._blocking, self._own)
        try:
            self._check_rates()
            self._late = {other: self._lateness(other) for other in self._each}
            found = replace(found, utilisation=self._utilisation())
            self._check_load(found.utilisation)
            return self._in_common(found) if self._equals else self._worst(found)
        except _Unbounded as error:
            return replace(found, reason=str(error))

    # -- what has no bound -------------------------------------------------------------------------------------
    def _check_rates(self) -> None:
        for other in self._each:
            if other.period is None:
                raise _Unbounded(f"{other.name} is as urgent or more so, and may come as often as it likes")
        if self._equals and not self._delays.alike(self._stream):
            raise _Unbounded(f"{self._equals[0].name} is as urgent, and streams of different engines are concerned")

    def _lateness(self, other: RequestStream) -> int:
        known = self._known.get(other.name)
        response = None if known is None else known.response
        if response is None and not self._delays.alike(self._stream):
            raise _Unbounded(f"{other.name}, which is more urgent, has no bound itself")
        return self._delays.lateness(self._stream, other, response or 0)

    def _utilisation(self) -> Fraction:
        return self._own * self._stream.rate + sum(each * other.rate for other, each in self._each.items())

    def _check_load(self, utilisation: Fraction) -> None:
        """Refuse a load of more than 1; and one of just 1 if anything comes on top, as that is never caught up with."""
        everyone = [self._stream, *self._each]
        more = (
            self._blocking or any(one.burst > 1 for one in everyone) or self._stream.jitter or any(self._late.values())
        )
        if utilisation > 1 or (utilisation == 1 and more):
            raise _Unbounded(f"its engines are asked for {float(utilisation):.1%} of their time")

    # -- the recurrence ----------------------------------------------------------------------------------------
    def _least(self, begin: int, demand: Callable[[int], int]) -> int:
        """Return the least fixed point of ``demand`` from ``begin`` on."""
        for _ in range(MOST):
            after = demand(begin)
            if after == begin:
                return begin
            begin = after
        raise _Unbounded(f"its busy period does not end within {MOST:,} steps")

    def _busy(self) -> int:
        """Return the length of the longest busy period."""
        own, jitter = self._own, self._stream.jitter
        begin = self._blocking + own + sum(self._each.values())
        return self._least(
            begin,
            lambda length: (
                self._blocking
                + self._stream.released_before(length, jitter) * own
                + sum(one.released_before(length, self._late[one]) * each for one, each in self._each.items())
            ),
        )

    def _worst(self, found: Response) -> Response:
        """Return the worst case over all requests of the busy period."""
        stream, tail, last = self._stream, self._stream.uninterrupted, 0
        for number in range(self._requests()):
            own = self._blocking + (number + 1) * self._own - tail
            last = self._least(max(last, own), lambda until, own=own: own + self._interfering(until))  # type: ignore[misc]
            response = last + tail - stream.due(number) + stream.jitter
            if found.response is None or response > found.response:
                found = replace(found, response=response, number=number, interference=self._parts(last))
        return found

    def _requests(self) -> int:
        """Return how many requests of the stream a busy period may have."""
        count = self._stream.released_before(self._busy(), self._stream.jitter)
        if count > MOST:
            raise _Unbounded(f"its busy period has more than {MOST:,} requests")
        return count

    def _interfering(self, until: int) -> int:
        return sum(one.released_until(until, self._late[one]) * each for one, each in self._each.items())

    def _parts(self, until: int) -> tuple[Interference, ...]:
        return tuple(
            Interference(one, one.released_until(until, self._late[one]), each) for one, each in self._each.items()
        )

    def _in_common(self, found: Response) -> Response:
        """Return the length of the busy period, which is a bound whatever the order among equals."""
        busy = self._busy()
        return replace(found, response=busy + self._stream.jitter, interference=self._parts(busy - 1))
