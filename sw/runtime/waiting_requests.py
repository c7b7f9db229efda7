"""Requests that have not started, and which of them may start now."""

from collections.abc import Iterator

from sw.driver import Device
from sw.runtime.priority_level import PriorityLevel
from sw.runtime.request import Request
from sw.runtime.request_source import RequestSource
from sw.runtime.switching import Switching


class WaitingRequests:
    """Requests of one run time that wait: for their arrival, for their model, or for others to end.

    ``levels``: those of the run time, the last of which has the engines. ``preemptive``: the most urgent go first.
    ``source``: brings requests meanwhile, if there is one.
    """

    def __init__(self, device: Device, levels: list[PriorityLevel], switching: Switching, preemptive: bool) -> None:
        self._device, self._levels, self._switching, self._preemptive = device, levels, switching, preemptive
        self.source: RequestSource | None = None
        self._requests: list[Request] = []
        self._known_until = 0  #: cycle until which the source has brought requests

    def __bool__(self) -> bool:
        """Whether there are any, or may be later without the end of another."""
        return bool(self._requests) or self._next_cycle() is not None

    def __iter__(self) -> Iterator[Request]:
        return iter(self._requests)

    def serve(self, source: RequestSource | None) -> None:
        """Take requests from ``source`` from now on, or from none any more."""
        self.source, self._known_until = source, self._device.bus.cycle

    def present(self) -> int:
        """The earliest cycle at which a request that is submitted now can arrive."""
        return self._device.bus.cycle if self.source is None else self._known_until

    def add(self, request: Request) -> None:
        """``request`` waits from now on."""
        self._requests.append(request)

    def discard(self, request: Request) -> None:
        """``request`` does not wait any more, if it did."""
        if request in self._requests:
            self._requests.remove(request)

    def arrived(self) -> list[Request]:
        """Requests that could start as far as their model goes, most urgent and oldest first."""
        now = self._catch_up()
        top = self._levels[-1].requests if self._levels else []
        ready = [r for r in self.without_model() if self._switching.here(r, now)]
        if not self._preemptive:
            ready = [r for r in ready if not any(r.model.overlaps(other.model) for other in top)]
        return sorted(ready, key=lambda r: (-r.priority if self._preemptive else 0, r.arrival, r.number))

    def most_urgent(self) -> int | None:
        """The highest priority among those that have arrived; None if there are none."""
        return max((request.priority for request in self.arrived()), default=None)

    def later(self) -> list[int]:
        """Cycles after this one at which requests arrive, or at which the source goes on."""
        now = self._catch_up()
        goes_on = self._next_cycle()
        arrivals = [request.arrival for request in self._requests if request.arrival > now]
        return arrivals if goes_on is None else [*arrivals, goes_on]

    def without_model(self) -> list[Request]:
        """Requests whose model no started request uses."""
        used = [request.model for level in self._levels for request in level.requests]
        return [request for request in self._requests if request.model not in used]

    def startable(self) -> Request | None:
        """The next request to start now."""
        for request in self.arrived():
            if not self._levels or self._levels[-1].suspension is not None:
                if not self._levels or request.priority > self._levels[-1].priority:
                    return request
                continue
            level = self._levels[-1]
            if request.arrival > self._device.bus.cycle or (self._preemptive and request.priority != level.priority):
                continue
            crowded = len(self._levels) > 1 and level.requests
            if not crowded and not any(request.model.overlaps(other.model) for other in level.requests):
                return request
        return None

    def _catch_up(self) -> int:
        """Let the source bring what has arrived by now; returns the cycle."""
        now = self._device.bus.cycle
        if self.source is not None:
            self.source.run_until(now)
        self._known_until = now
        return now

    def _next_cycle(self) -> int | None:
        return None if self.source is None else self.source.next_cycle()
