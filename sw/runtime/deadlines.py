"""Aborts requests that have not ended by their deadline, wherever they stand, while others stay exact."""

import math

from sw.driver import Device
from sw.driver.limits import AFTER_DEADLINE
from sw.runtime.priorities import Priorities
from sw.runtime.recovery import Recovery
from sw.runtime.request import DeadlineMissed, Request
from sw.runtime.waiting_requests import WaitingRequests


class Deadlines:
    """Watches the deadlines of the requests of one run time, started (``priorities``) and ``waiting``."""

    def __init__(self, device: Device, priorities: Priorities, waiting: WaitingRequests, recovery: Recovery) -> None:
        self._device, self._priorities, self._waiting, self._recovery = device, priorities, waiting, recovery

    def next_cycle(self) -> int | None:
        """Return the first cycle at which a request will be too late, or at which what is queued of one that is
        ends."""
        started = [r.last_cycle if r.missed is None else _last(r.missed) for r in self._priorities.requests]
        first = min([self._waiting.next_last_cycle(), *started])
        return math.floor(first) + 1 if first < math.inf else None

    def turn(self) -> None:
        """Abort what is too late now."""
        now = self._device.bus.cycle
        started = self._priorities.requests
        late = [*self._waiting.too_late(), *(request for request in started if request.last_cycle < now)]
        for request in late:
            if not request.done():  # with another, or in a callback
                self._abort(request)

    def _abort(self, request: Request) -> None:
        """End ``request``, at once if none loses by it. Where jobs of others stand on its engines nothing more is
        queued for it, and it ends with the last of its jobs there; if these take too long, the others start over."""
        error = request.miss(self._device.bus.cycle)
        level = self._priorities.level_of(request)
        if level is not None and self._device.bus.cycle <= _last(error) and self._recovery.shares_engines(request):
            level.close(request)
        else:
            self._recovery.fail(request, error)


def _last(missed: DeadlineMissed) -> int:
    """Return the last cycle at which jobs of a request that is aborted may end."""
    return missed.cycle + AFTER_DEADLINE
