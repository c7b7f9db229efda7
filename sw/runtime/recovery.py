"""Decides what becomes of requests when a job faults, hangs, or a dump fails: one fails, those that lose jobs start
over,
and those that are too late are aborted while others stay exact."""

import math
from collections.abc import Callable, Iterable

from hw.contract.job import Fault
from sw.driver import DeviceFault, DeviceTimeout, NotSuspendable, OutOfMemory
from sw.driver.errors import SupervisorFault, SupervisorTimeout
from sw.driver.limits import AFTER_DEADLINE
from sw.driver.preempt.state_transfer import StateTransfer
from sw.runtime.priorities import SuspendedRequests
from sw.runtime.request import Blamed, DeadlineMissed, Request
from sw.runtime.waiting_requests import RuntimeState

_TRIES = 3  #: of moving or clearing memories for one request, without a job of it that ended in between


class Recovery:
    """Recovers one run time, and aborts requests that have not ended by their deadline, wherever they stand. ``end`` is
    told of a request that failed."""

    def __init__(self, state: RuntimeState, end: Callable[[Request, Exception], None]) -> None:
        self._device, self._started, self._priorities, self._waiting, self._log = (
            state.device, state.started, state.priorities, state.waiting, state.log,
        )  # fmt: skip
        self._end = end
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
            victim = self._started.owner_of(fault.record.job_id)
            if victim is None:
                raise
            self.fail(victim, fault)
        except DeviceTimeout as error:
            victim = self._user(error.model) or self._started.oldest()
            if victim is None:
                raise
            self.fail(victim, error)
        if self._dropped:
            self._restart_robbed()

    def ending_all(self, action: Callable[[], object]) -> None:
        """Do ``action``; any error ends all requests, of which there is no other to be spared."""
        try:
            action()
        except Exception as error:
            left = [*self._priorities.requests, *self._waiting]
            if not left:
                raise
            for request in left:
                if request in self._priorities.requests:
                    self._started.drop(request)
                self._priorities.ended(request)
                self._end(request, error.error if isinstance(error, Blamed) else error)

    def fail(self, victim: Request, error: Exception) -> None:
        """End ``victim``, whether it has started or waits. Requests that had jobs on the engines it used start over."""
        try:
            if self._drop(victim):
                self._restart_robbed()
        finally:  # also if its engines do not come out of reset
            self._end(victim, error)

    def _user(self, model: object) -> Request | None:
        """Return the request that has started with ``model``, or will next, or None if there is none."""
        started = self._priorities.user_of(model)
        return started or next((request for request in self._waiting.arrived() if request.model is model), None)

    def _start_over(self) -> None:
        """Start what was queued behind a dump or restore over, as a job of the driver failed; what was to be restored
        stays suspended."""
        transferring, engines = self._device.transferring, frozenset(self._device.recover())
        self._dropped = True
        if not transferring:
            return
        for suspension in self._device.suspensions:
            held = [r for r in self._priorities.running if r.model in suspension.models]
            if held:
                self._priorities.suspend(held, suspension)
                self._started.hold(held)
        for request in self._priorities.running:
            if self._priorities.engines(request) & engines:
                self.restart(request)

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
        while (robbed := self._started.robbed()) is not None:
            self.restart(robbed)
        self._dropped = False

    def admit(self, incoming: Request) -> StateTransfer | None:
        """Make room on chip for ``incoming``. Suspended requests whose state cannot be moved end, and those for which
        DRAM has no room start over, so that it can always run."""
        while True:
            try:
                engines = sorted(self._priorities.engines(incoming))
                return self._device.admit(incoming.model, engines, self._priorities.beside(incoming))
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

    def give_way(self, keep: SuspendedRequests | None = None) -> bool:
        """Let the most urgent suspended requests but those that ``keep`` has start over, as DRAM has no room for what
        they have on chip. Return False if there are none."""
        suspended = [group for group in self._priorities.suspended if group is not keep]
        for request in list(suspended[-1].requests) if suspended else ():
            self.restart(request)
        return bool(suspended)

    def give_up(self, victims: Iterable[Request], error: Exception) -> None:
        """End requests that wait or are suspended: their dump or restore cannot be done."""
        for victim in victims:
            self._drop(victim)
            self._end(victim, error)

    def restart(self, request: Request) -> None:
        """Take ``request`` off the engines; it waits to run again from its start."""
        self._drop(request)
        request.rewind()
        self._waiting.add(request)

    def _drop(self, request: Request) -> bool:
        """Take ``request`` off the engines; return False if it has not started."""
        if request not in self._priorities.requests:
            return False
        group = self._priorities.group_of(request)
        self._started.drop(request)
        self._priorities.ended(request)
        self._dropped = True
        if group is not None:
            self._device.drop(group.suspension, request.model)
        else:
            self._device.abort(request.model)
        self._log.stops(request, self._device.bus.cycle)
        return True

    def shares_engines(self, victim: Request) -> bool:
        """Return whether others would lose jobs if the engines that run jobs of ``victim`` were reset."""
        users: dict[int, set[int]] = {}
        for job in self._device.outstanding:
            users.setdefault(job.engine, set()).add(id(job.model))
        hit = {id(victim.model)}
        while True:
            more = hit.union(*(models for models in users.values() if models & hit))
            if more == hit:
                break
            hit = more
        return any(id(r.model) in hit and r is not victim for r in self._priorities.running)

    # -- deadlines -------------------------------------------------------------------------------------------
    def next_deadline(self) -> int | None:
        """Return the first cycle at which a request will be too late, or at which what is queued of one that is
        ends."""
        started = [r.last_cycle if r.missed is None else _last(r.missed) for r in self._priorities.requests]
        first = min([self._waiting.next_last_cycle(), *started])
        return math.floor(first) + 1 if first < math.inf else None

    def abort_late(self) -> None:
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
        running = request in self._priorities.running
        if running and self._device.bus.cycle <= _last(error) and self.shares_engines(request):
            self._started.close(request)
        else:
            self.fail(request, error)


def _last(missed: DeadlineMissed) -> int:
    """Return the last cycle at which jobs of a request that is aborted may end."""
    return missed.cycle + AFTER_DEADLINE
