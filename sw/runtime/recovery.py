"""What becomes of requests when a job faults, hangs, or a dump fails: one fails, those beside it start over."""

from collections.abc import Callable, Iterable

from sw.driver import Device, DeviceFault, DeviceTimeout
from sw.driver.errors import SupervisorFault
from sw.runtime.blame import Blamed
from sw.runtime.priority_level import PriorityLevel
from sw.runtime.request import Request
from sw.runtime.spans import SpanLog
from sw.runtime.waiting_requests import WaitingRequests

_RETRIES = 3  #: attempts at a dump or restore that fails


class Recovery:
    """Recovery of one run time, whose ``levels`` and ``waiting`` requests it changes. ``end``: told of a request that
    failed."""

    def __init__(
        self,
        device: Device,
        levels: list[PriorityLevel],
        waiting: WaitingRequests,
        log: SpanLog,
        end: Callable[[Request, Exception], None],
    ) -> None:
        self._device, self._levels, self._waiting, self._log, self._end = device, levels, waiting, log, end
        self.failures = 0  #: of dumps and restores, since the last event

    def guarded(self, action: Callable[[], object]) -> None:
        """Do it; a fault or a hang fails the request that caused it alone. A dump or restore that fails is tried again;
        one that keeps failing fails the requests that need it."""
        try:
            action()
        except SupervisorFault as fault:
            self.failures += 1
            blocked = [r for level in self._levels[-1:] for r in level.requests] or self._waiting.arrived()[:1]
            self.start_over()
            if self.failures >= _RETRIES:
                self.failures = 0
                self.give_up(blocked, fault)
        except Blamed as blamed:
            self.fail(blamed.request, blamed.error)
        except DeviceFault as fault:
            victim = self.owner(fault.record.job_id)
            if victim is None:
                raise
            self.fail(victim, fault)
        except DeviceTimeout as error:
            victim = self.oldest()
            if victim is None:
                raise
            self.fail(victim, error)

    def owner(self, job_id: int) -> Request | None:
        """The request that a job belongs to; None if it is none of these."""
        runs = [run for level in self._levels for run in level.groups.values()]
        return next((run.request for run in runs if job_id in run.ids), None)

    def oldest(self) -> Request | None:
        """The request whose group has been on the engines longest; None if there is none."""
        groups = self._levels[-1].groups.values() if self._levels else ()
        return next((run.request for run in groups), None)

    def fail(self, victim: Request, error: Exception) -> None:
        """End ``victim``, whether it has started or waits. Requests that had jobs on the engines it used start over."""
        level = next((level for level in self._levels if victim in level.requests), None)
        try:
            if level is not None:
                others = self.on_same_engines(level, victim)
                self._drop(level, victim)
                for request in others:
                    self.restart(level, request)
        finally:  # also if its engines do not come out of reset
            self._end(victim, error)

    def start_over(self) -> None:
        """A dump or restore failed: what was queued behind it starts over, what was to be restored stays suspended."""
        self._device.recover()
        if not self._levels:
            return
        level, suspensions = self._levels[-1], self._device.suspensions
        held = {id(model) for suspension in suspensions for model in suspension.models}
        kept = [s for s in suspensions if any(r.model in s.models for r in level.requests)]
        if kept:
            level.hold(kept[-1])
        for request in [r for r in level.requests if id(r.model) not in held]:
            self.restart(level, request)

    def give_up(self, victims: Iterable[Request], error: Exception) -> None:
        """End requests that wait or are suspended: their dump or restore cannot be done."""
        for victim in victims:
            for level in self._levels:
                if victim in level.requests:
                    self._drop(level, victim)
            self._end(victim, error)

    def give_up_level(self, level: PriorityLevel, victim: Request, error: Exception) -> None:
        """End ``victim`` of a suspended level. What the level holds is given up; its other requests start over."""
        assert level.suspension is not None
        self._device.abandon(level.suspension)
        self._levels.remove(level)
        for request in [request for request in level.requests if request is not victim]:
            self.restart(level, request)
        self._drop(level, victim)
        self._end(victim, error)

    def restart(self, level: PriorityLevel, request: Request) -> None:
        """Take ``request`` off the engines; it waits to run again from its start."""
        self._drop(level, request)
        request.rewind()
        self._waiting.add(request)

    def _drop(self, level: PriorityLevel, request: Request) -> None:
        level.drop(request)
        level.requests.remove(request)
        self._device.abort(request.model)
        self._log.stops(request, self._device.bus.cycle)

    def on_same_engines(self, level: PriorityLevel, victim: Request) -> list[Request]:
        """The requests of ``level`` that would lose jobs if the engines that run jobs of ``victim`` were reset."""
        users: dict[int, set[int]] = {}
        for entry in self._device.outstanding.values():
            users.setdefault(entry.engine, set()).add(id(entry.model))
        hit = {id(victim.model)}
        while True:
            more = hit.union(*(models for models in users.values() if models & hit))
            if more == hit:
                break
            hit = more
        return [r for r in level.requests if id(r.model) in hit and r is not victim]
