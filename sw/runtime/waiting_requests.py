"""Keeps requests that have not started, and tells which of them may start now."""

import heapq
import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Protocol

from sw.driver import Device
from sw.runtime.priorities import Priorities
from sw.runtime.request import Request
from sw.runtime.rules import Rules
from sw.runtime.spans import SpanLog
from sw.runtime.started_requests import StartedRequests
from sw.runtime.switching import Switching


class RequestSource(Protocol):
    """Is work outside the accelerator, in simulated time, that submits requests: arrivals, a simulated CPU, closed
    loops.

    The run time asks whenever it looks at what has arrived. So each request arrives at its own cycle, also at one that
    passed while the host was busy, and no sooner does the run time know of it.
    """

    def next_cycle(self) -> int | None:
        """Return when the source next does something by itself, or None if only after a request has ended."""
        ...

    def run_until(self, cycle: int) -> None:
        """Do what is due by ``cycle``, submissions included."""
        ...


class FirstRequests:
    """Holds requests of which only the oldest of each model and priority may be next.

    ``find``: the request of a number as long as it belongs here, otherwise None. It is asked about the oldest ones
    alone, and those that do not belong here any more are forgotten then.
    """

    def __init__(self, find: Callable[[int], Request | None]) -> None:
        self._find = find
        self._waiting: dict[int, dict[int, list[tuple[int, int]]]] = {}  #: heaps of (arrival, number)

    def add(self, request: Request) -> None:
        """Add ``request``, which belongs here from now on."""
        by_priority = self._waiting.setdefault(request.model.number, {})
        heapq.heappush(by_priority.setdefault(request.priority, []), (request.arrival, request.number))

    def of_models_not(self, used: Collection[int]) -> Iterator[Request]:
        """Yield the oldest request of each priority and of each model whose number is not among those ``used``."""
        for model, by_priority in list(self._waiting.items()):
            if model in used:
                continue
            for priority, heap in list(by_priority.items()):
                first = self._first(heap)
                if first is not None:
                    yield first
                else:
                    del by_priority[priority]
            if not by_priority:
                del self._waiting[model]

    def _first(self, heap: list[tuple[int, int]]) -> Request | None:
        while heap:
            found = self._find(heap[0][1])
            if found is not None:
                return found
            heapq.heappop(heap)
        return None


class WaitingRequests:
    """Holds requests of one run time that wait: for their arrival, for their model, or for others to end.

    A turn looks at the next arrival and at the oldest request of each model and priority, and at no others.

    ``priorities``: what has started. ``source``: brings requests meanwhile, if there is one.
    """

    def __init__(self, device: Device, rules: Rules, priorities: Priorities, switching: Switching) -> None:
        self._device, self._rules, self._priorities, self._switching = device, rules, priorities, switching
        self.source: RequestSource | None = None
        self._requests: dict[int, Request] = {}  #: by number
        self._coming: list[tuple[int, int]] = []  #: a heap of (arrival, number) of those that have not arrived
        self._last: list[tuple[float, int]] = []  #: a heap of (last cycle, number) of those with a deadline
        self._here = FirstRequests(self._requests.get)
        self._announced = FirstRequests(self._to_be_announced)
        self._unseen: set[int] = set()  #: those that have arrived since :meth:`see`
        self._known_until = 0  #: cycle until which the source has brought requests

    def __bool__(self) -> bool:
        """Return whether there are any requests, or may be later without the end of another."""
        return bool(self._requests) or self._next_cycle() is not None

    def __iter__(self) -> Iterator[Request]:
        return iter(self._requests.values())

    def __contains__(self, request: Request) -> bool:
        return request.number in self._requests

    def serve(self, source: RequestSource | None) -> None:
        """Take requests from ``source`` from now on, or from none any more."""
        self.source, self._known_until = source, self._device.bus.cycle

    def present(self) -> int:
        """Return the earliest cycle at which a request that is submitted now can arrive."""
        return self._device.bus.cycle if self.source is None else self._known_until

    def add(self, request: Request) -> None:
        """Let ``request`` wait from now on."""
        self._requests[request.number] = request
        heapq.heappush(self._coming, (request.arrival, request.number))
        if request.announced:
            self._announced.add(request)
        if request.last_cycle < math.inf:
            heapq.heappush(self._last, (request.last_cycle, request.number))

    def discard(self, request: Request) -> None:
        """Let ``request`` not wait any more, if it did."""
        self._requests.pop(request.number, None)

    # -- arrivals --------------------------------------------------------------------------------------------
    def see(self) -> None:
        """Note that what has arrived by now is being looked at."""
        self._catch_up()
        self._unseen.clear()

    def unseen(self) -> bool:
        """Return whether any that waits has arrived since :meth:`see`, while the host was at work."""
        self._catch_up()
        return any(number in self._requests for number in self._unseen)

    def next_arrival(self) -> int | None:
        """Return the next cycle after this one at which a request arrives, or at which the source goes on."""
        self._catch_up()
        arrivals = [arrival for arrival, _ in self._coming[:1]]
        goes_on = self._next_cycle()
        return min(arrivals if goes_on is None else [*arrivals, goes_on], default=None)

    def announced(self) -> Iterator[Request]:
        """Return announced requests that are still to come, whose model no started request uses: of each model and
        priority the next on which nothing has been decided."""
        self._catch_up()
        return self._announced.of_models_not(self._priorities.models())

    def _to_be_announced(self, number: int) -> Request | None:
        request = self._requests.get(number)
        if request is None or request.arrival <= self._device.bus.cycle or self._switching.decided(request):
            return None
        return request

    # -- deadlines -------------------------------------------------------------------------------------------
    def next_last_cycle(self) -> float:
        """Return the first of the last cycles at which requests that wait may end, which is infinity if there is
        none."""
        while self._last and self._last[0][1] not in self._requests:
            heapq.heappop(self._last)
        return self._last[0][0] if self._last else math.inf

    def too_late(self) -> list[Request]:
        """Return requests that wait although they should have ended by now, those of the earliest deadlines first."""
        now, late = self._device.bus.cycle, list[Request]()
        while self.next_last_cycle() < now:
            late.append(self._requests[heapq.heappop(self._last)[1]])
        return late

    # -- what may start --------------------------------------------------------------------------------------
    def arrived(self) -> list[Request]:
        """Return requests that could start as far as their model goes, most urgent and oldest first; of each model and
        priority the oldest, and those to which a switch has begun."""
        self._catch_up()
        used = self._priorities.models()
        ready = {request.number: request for request in self._here.of_models_not(used)}
        for number in self._switching.expected:
            request = self._requests.get(number)
            if request is not None and request.model.number not in used:
                ready[number] = request
        preemptive = self._rules.preemptive
        if not preemptive:
            ready = {number: r for number, r in ready.items() if self._priorities.may_start(r, self._known_until)}
        return sorted(ready.values(), key=lambda r: (-r.priority if preemptive else 0, r.arrival, r.number))

    def startable(self) -> Request | None:
        """Return the next request to start now."""
        now = self._device.bus.cycle
        return next((request for request in self.arrived() if self._priorities.may_start(request, now)), None)

    def _catch_up(self) -> None:
        """Let the source bring what has arrived by now, and take what has."""
        now = self._device.bus.cycle
        if self.source is not None:
            self.source.run_until(now)
        self._known_until = now
        while self._coming and (self._coming[0][0] <= now or self._coming[0][1] not in self._requests):
            request = self._requests.get(heapq.heappop(self._coming)[1])
            if request is not None:
                self._here.add(request)
                self._unseen.add(request.number)

    def _next_cycle(self) -> int | None:
        return None if self.source is None else self.source.next_cycle()


@dataclass(frozen=True)
class RuntimeState:
    """Holds what the parts of one run time work on: requests that have ``started`` (and their ``priorities``) and
    ``waiting`` ones, switches between them, and the log of what has happened."""

    device: Device
    rules: Rules
    started: StartedRequests
    priorities: Priorities
    switching: Switching
    waiting: WaitingRequests
    log: SpanLog
