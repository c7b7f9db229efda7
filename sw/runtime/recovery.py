"""Decides what becomes of requests when a job faults, hangs, or a dump fails: one fails, those that lose jobs start
over."""

from collections.abc import Callable, Iterable

from hw.contract.job import Fault
from sw.driver import Device, DeviceFault, DeviceTimeout, NotSuspendable, OutOfMemory
from sw.driver.errors import SupervisorFault, SupervisorTimeout
from sw.driver.preempt.operation import StateTransfer
from sw.runtime.blame import Blamed
from sw.runtime.priority_level import PriorityLevel
from sw.runtime.request import Request
from sw.runtime.spans import SpanLog
from sw.runtime.waiting_requests import WaitingRequests

_TRIES = 3  #: of moving or clearing memories for one request, without a job of it that ended in between


class Recovery:
    """Recovers one run time, whose ``levels`` and ``waiting`` requests it changes. ``end`` is told of a request that
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
        self._dropped = False  #: jobs of others may have been lost with those of a request

    def guarded(self, action: Callable[[], object]) -> None:
        """Do ``action``; a fault or a hang fails the request that caused it alone. A dump, a restore or a clearing job
        that fails is tried again; one that keeps failing fails the requests whose state it moved, or for which it
        was."""
        try:
            action()
        except (SupervisorFault, SupervisorTimeout) as error:
            self._start_over()
            self._set_back(error)
        except Blamed as blamed:
            self.fail(blamed.request, blamed.error)
        except DeviceFault as fault:
            victim = self.owner(fault.record.job_id)
            if victim is None:
                raise
            self.fail(victim, fault)
        except DeviceTimeout as error:
            victim = self._user(error.model) or self.oldest()
            if victim is None:
                raise
            self.fail(victim, error)
        if self._dropped:
            self._restart_robbed()

    def owner(self, job_id: int) -> Request | None:
        """Return the request that a job belongs to, or None if it is none of these."""
        runs = [run for level in self._levels for run in level.groups.values()]
        return next((run.request for run in runs if job_id in run.ids), None)

    def oldest(self) -> Request | None:
        """Return the request whose group has been on the engines longest, or None if there is none."""
        groups = self._levels[-1].groups.values() if self._levels else ()
        return next((run.request for run in groups), None)

    def fail(self, victim: Request, error: Exception) -> None:
        """End ``victim``, whether it has started or waits. Requests that had jobs on the engines it used start over."""
        level = next((level for level in self._levels if victim in level.requests), None)
        try:
            if level is not None:
                self._drop(level, victim)
                self._restart_robbed()
        finally:  # also if its engines do not come out of reset
            self._end(victim, error)

    def _user(self, model: object) -> Request | None:
        """Return the request that has started with ``model``, or will next, or None if there is none."""
        started = [request for level in self._levels for request in level.requests]
        return next((request for request in [*started, *self._waiting.arrived()] if request.model is model), None)

    def _start_over(self) -> None:
        """Start what was queued behind a dump or restore over, as a job of the driver failed; what was to be restored
        stays suspended."""
        transferring = self._device.transferring
        self._device.recover()
        self._dropped = True
        if not transferring or not self._levels:
            return
        level, suspensions = self._levels[-1], self._device.suspensions
        held = {id(model) for suspension in suspensions for model in suspension.models}
        kept = [s for s in suspensions if any(r.model in s.models for r in level.requests)]
        if kept:
            level.hold(kept[-1])
        for request in [r for r in level.requests if id(r.model) not in held]:
            self.restart(level, request)

    def _set_back(self, error: SupervisorFault | SupervisorTimeout) -> None:
        """Fail those whose state cannot be moved, or for whom nothing can be cleared: after so many tries, or at once
        where loads of their own image are wrong."""
        hopeless = error.own and not (isinstance(error, SupervisorFault) and error.record.code == Fault.BUS)
        for request in [self._user(model) for model in error.models]:
            if request is None:
                continue
            request.setbacks += 1
            if hopeless or request.setbacks >= _TRIES:
                self.fail(request, error)

    def _restart_robbed(self) -> None:
        """Start those requests over that have lost jobs because an engine was reset."""
        while robbed := [(level, r) for level in self._levels for r in level.requests if level.robbed(r)]:
            self.restart(*robbed[0])
        self._dropped = False

    def admit(self, incoming: Request) -> StateTransfer | None:
        """Make room on chip for ``incoming``. Suspended requests whose state cannot be moved end, and those for which
        DRAM has no room start over, so that it can always run."""
        while True:
            try:
                return self._device.admit(incoming.model, range(self._device.params.engines))
            except NotSuspendable as refusal:
                self.fail_model(refusal)
            except OutOfMemory:
                if not self.give_way():
                    raise

    def fail_model(self, refusal: NotSuspendable) -> None:
        """End the request whose state cannot be moved; raises ``refusal`` if it has none."""
        loser = self._user(refusal.model)
        if loser is None:
            raise refusal
        self.fail(loser, refusal)

    def give_way(self, keep: PriorityLevel | None = None) -> bool:
        """Let the requests of the most urgent suspended level but ``keep`` start over, as DRAM has no room for what
        they have on chip. Return False if there is no such level."""
        suspended = [level for level in self._levels if level.suspension and level.requests and level is not keep]
        for request in list(suspended[-1].requests) if suspended else ():
            self.restart(suspended[-1], request)
        return bool(suspended)

    def give_up(self, victims: Iterable[Request], error: Exception) -> None:
        """End requests that wait or are suspended: their dump or restore cannot be done."""
        for victim in victims:
            for level in self._levels:
                if victim in level.requests:
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
        self._dropped = True
        if level.suspension is not None:
            self._device.drop(level.suspension, request.model)
        else:
            self._device.abort(request.model)
        self._log.stops(request, self._device.bus.cycle)

    def on_same_engines(self, level: PriorityLevel, victim: Request) -> list[Request]:
        """Return the requests of ``level`` that would lose jobs if the engines that run jobs of ``victim`` were
        reset."""
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
