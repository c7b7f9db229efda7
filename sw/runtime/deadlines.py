"""Aborts requests that have not ended by their deadline, wherever they stand, while others stay exact."""

import math
from collections.abc import Callable

from sw.driver import Device
from sw.driver.limits import AFTER_DEADLINE
from sw.runtime.priority_level import PriorityLevel
from sw.runtime.recovery import Recovery
from sw.runtime.request import DeadlineMissed, Request
from sw.runtime.waiting_requests import WaitingRequests


class Deadlines:
    """Watches the deadlines of the requests of one run time, whose ``levels`` and ``waiting`` requests it looks at.
    ``end`` is told of a waiting request that ends with an error."""

    def __init__(
        self, device: Device, levels: list[PriorityLevel], waiting: WaitingRequests, recovery: Recovery,
        end: Callable[[Request, Exception], None],
    ) -> None:  # fmt: skip
        self._device, self._levels, self._waiting, self._recovery = device, levels, waiting, recovery
        self._end = end

    def next_cycle(self) -> int | None:
        """Return the first cycle at which a request will be too late, or at which what is queued of one that is
        ends."""
        started = [r.last_cycle if r.missed is None else _last(r.missed) for r in self._started()]
        first = min([self._waiting.next_last_cycle(), *started])
        return math.floor(first) + 1 if first < math.inf else None

    def turn(self) -> None:
        """Abort what is too late now."""
        now = self._device.bus.cycle
        late = [*self._waiting.too_late(), *(request for request in self._started() if request.last_cycle < now)]
        for request in late:
            if not request.done():  # with another, or in a callback
                self._abort(request)

    def _abort(self, request: Request) -> None:
        """End ``request``, at once if none loses by it. Where jobs of others stand on its engines nothing more is
        queued for it, and it ends with the last of its jobs there; if these take too long, the others start over."""
        error = request.miss(self._device.bus.cycle)
        level = next((level for level in self._levels if request in level.requests), None)
        if level is None:
            self._end(request, error)
        elif self._device.bus.cycle <= _last(error) and self._recovery.on_same_engines(level, request):
            level.close(request)
        else:
            self._recovery.fail(request, error)

    def _started(self) -> list[Request]:
        return [request for level in self._levels for request in level.requests]


def _last(missed: DeadlineMissed) -> int:
    """Return the last cycle at which jobs of a request that is aborted may end."""
    return missed.cycle + AFTER_DEADLINE
