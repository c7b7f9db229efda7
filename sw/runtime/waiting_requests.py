"""Requests that have not started, and which of them may start now."""

from sw.driver import Device
from sw.runtime.priority_level import PriorityLevel
from sw.runtime.request import Request
from sw.runtime.switching import Switching


class WaitingRequests:
    """Requests of one run time that wait: for their arrival, for their model, or for others to end.

    ``levels``: those of the run time, the last of which has the engines. ``preemptive``: the most urgent go first.
    """

    def __init__(self, device: Device, levels: list[PriorityLevel], switching: Switching, preemptive: bool) -> None:
        self._device, self._levels, self._switching, self._preemptive = device, levels, switching, preemptive
        self._requests: list[Request] = []

    def all(self) -> list[Request]:
        """All of them, those that have not arrived included."""
        return list(self._requests)

    def add(self, request: Request) -> None:
        """``request`` waits from now on."""
        self._requests.append(request)

    def discard(self, request: Request) -> None:
        """``request`` does not wait any more, if it did."""
        if request in self._requests:
            self._requests.remove(request)

    def arrived(self) -> list[Request]:
        """Requests that could start as far as their model goes, most urgent and oldest first."""
        now = self._device.bus.cycle
        top = self._levels[-1].requests if self._levels else []
        ready = [r for r in self.without_model() if self._switching.here(r, now)]
        if not self._preemptive:
            ready = [r for r in ready if not any(r.model.overlaps(other.model) for other in top)]
        return sorted(ready, key=lambda r: (-r.priority if self._preemptive else 0, r.arrival, r.number))

    def most_urgent(self) -> int | None:
        """The highest priority among those that have arrived; None if there are none."""
        return max((request.priority for request in self.arrived()), default=None)

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
