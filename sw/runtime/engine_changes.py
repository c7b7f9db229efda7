"""Decides when more urgent requests take engines, and when suspended ones get them back (of **Cancellation
points**)."""

from collections.abc import Collection, Iterable
from functools import partial

from sw.driver import DeviceFault, DeviceTimeout, NotSuspendable, OutOfMemory, Suspension
from sw.runtime.engine_sets import apart
from sw.runtime.preemption_mechanism import Mechanism, Situation, situation
from sw.runtime.priorities import SuspendedRequests
from sw.runtime.recovery import Recovery
from sw.runtime.request import Blamed, Request, blaming
from sw.runtime.request_steps import RequestSteps
from sw.runtime.waiting_requests import RuntimeState


class EngineChanges:
    """Gives engines to the most urgent requests that use them. Who uses others is left alone."""

    def __init__(self, state: RuntimeState, recovery: Recovery, steps: RequestSteps) -> None:
        self._device, self._rules, self._priorities = state.device, state.rules, state.priorities
        self._started, self._waiting, self._switching, self._log = (
            state.started, state.waiting, state.switching, state.log,
        )  # fmt: skip
        self._recovery, self._steps = recovery, steps
        self.count = 0  #: times that running requests were suspended or killed

    def turn(self) -> None:
        """Take engines for more urgent arrivals, and give them back to who was suspended, if it is time to."""
        if not self._rules.preemptive:
            return
        while (wanted := self._wanted()) is not None:
            self._preempt(wanted)
        for suspension in self._priorities.left_empty():
            self._device.abandon(suspension)
        while self._priorities.suspended and (group := self._priorities.resumable(self._waiting.arrived())) is not None:
            if not self._resume(group):
                break

    def due(self) -> bool:
        """Return whether a more urgent request waits for the decision to stop what runs."""
        return self._rules.preemptive and self._wanted() is not None

    def idle(self) -> bool:
        """Return whether nothing is to be done on the engines: who has some is on the CPU, and nobody is free to get
        some back."""
        on_cpu = all(request.on_cpu is not None for request in self._priorities.running)
        return on_cpu and self._priorities.resumable(self._waiting.arrived()) is None

    def _wanted(self) -> Request | None:
        """Return the request for which to stop what runs, if the rule agrees: an arrival that is more urgent, or one to
        be switched to ahead of its arrival. It is None if there is none, or it was decided to wait."""
        if not self._priorities.running:
            return None
        for request in self._waiting.arrived():
            if not self._switching.declined(request) and self._priorities.in_way(request):
                return request
        known = self.foreseen()
        return known[0] if known is not None and known[1] <= self._device.bus.cycle else None

    def foreseen(self) -> tuple[Request, int] | None:
        """Return the next announced arrival that is more urgent than what runs on its engines, and the cycle at which
        to switch for it."""
        if not self._rules.preemptive or not self._priorities.running:
            return None
        announced = (request for request in self._waiting.announced() if self._priorities.in_way(request))
        return self._switching.foreseen(announced, self._device.bus.cycle, partial(self._situation, later=True))

    def _preempt(self, incoming: Request) -> None:
        """Suspend or kill what is in the way of a more urgent request, unless it is cheaper to wait for it."""
        begin = self._device.bus.cycle
        self._device.bus.advance(self._device.bus.costs.decision)
        victims = self._priorities.in_way(incoming)
        with blaming(incoming):  # the rule may be the user's
            choice = self._switching.decide(incoming, self._situation(incoming))
        if choice is Mechanism.WAIT:
            return
        self._switching.begin(incoming, begin)
        if choice is Mechanism.DUMP:
            self._suspend(victims, incoming)
        else:
            self._start_over(victims)

    def _start_over(self, victims: Iterable[Request]) -> None:
        """Take ``victims`` off the engines; they wait to run again from their beginning."""
        self.count += 1
        for request in victims:
            request.preempted += 1
            request.killed += 1
            self._recovery.restart(request)

    def _suspend(self, victims: Collection[Request], incoming: Request) -> None:
        engines = self._closure(victims)
        models = [job.model for job in self._device.outstanding if job.engine in engines]
        bystanders = [r for r in self._priorities.running if r.model in models and r not in victims]
        halted = [*victims, *bystanders]
        try:
            suspension = self._device.suspend(engines, incoming.model, self._started.next_jobs(halted))
        except OutOfMemory:  # nothing was taken off the engines
            self._start_over(victims)
            return
        except (DeviceFault, DeviceTimeout):
            raise
        except Exception as error:  # the engines go on; who cannot be suspended ends, so that they are free
            at_fault = [r for r in halted if r.model is getattr(error, "model", None)]
            raise Blamed((at_fault or halted)[0], error) from error
        self.count += 1
        engines_of = self._priorities.engines
        taken = self._divide(suspension, [*apart(victims, engines_of), *apart(bystanders, engines_of)])
        self._steps.advance_all()
        for group in taken:
            self._stop(group)

    def _divide(self, suspension: Suspension, groups: list[list[Request]]) -> list[SuspendedRequests]:
        """Let each of ``groups`` wait for its engines with its part of ``suspension``."""
        parts = [self._device.divide(suspension, [request.model for request in group]) for group in groups]
        for group, part in zip(groups, parts, strict=True):
            self._log.paused(group[0], part.sent, part.halts.values(), self._device.bus.cycle)
        return [self._priorities.suspend(group, part) for group, part in zip(groups, parts, strict=True)]

    def _closure(self, victims: Iterable[Request]) -> list[int]:
        """Return the engines that have to stop so that all jobs of ``victims`` leave their queues: a queue is emptied
        whole, so they are also those of others' jobs that stand there."""
        models, engines = {request.model.number for request in victims}, set[int]()
        while True:
            found = {job.engine for job in self._device.outstanding if job.model.number in models}
            if found == engines:
                return sorted(engines)
            engines = found
            models |= {job.model.number for job in self._device.outstanding if job.engine in engines}

    def _stop(self, group: SuspendedRequests) -> None:
        """Note where the requests of ``group`` that have not ended were stopped."""
        halts = group.suspension.halts.values()
        stopped = max((halt.cycle for halt in halts), default=0) or group.suspension.sent
        for request in group.requests:
            self._log.stops(request, stopped)
        self._started.suspend(group.requests, halts)

    def _resume(self, group: SuspendedRequests) -> bool:
        """Bring ``group`` back to its engines; return False if that is to be tried again, without others."""
        begin = self._device.bus.cycle
        try:
            restore = self._device.resume(group.suspension)
        except (DeviceFault, DeviceTimeout):
            raise
        except NotSuspendable as refusal:  # the next turn tries again, without it
            self._recovery.fail_model(refusal)
            return False
        except OutOfMemory:  # for what others have on chip, where it is to come back
            self._recovery.give_way(group) or self._recovery.give_way()
            return False
        except Exception as error:
            self._recovery.give_up(list(group.requests), error)
            return False
        announced = group.suspension.announced
        self._priorities.resumed(group)
        self._started.resume(group.requests, group.suspension.engines, announced)
        if group.requests:
            self._log.moves(group.requests[0], restore)
            self._log.resumed(group.requests[0], begin, announced)
            self._log.runs(group.requests, announced)
        return True

    def _situation(self, incoming: Request, *, later: bool = False) -> Situation:
        victims = self._priorities.in_way(incoming)
        models = list({id(request.model): request.model for request in victims}.values())
        now, remaining = self._device.bus.cycle, self._started.remaining(victims)
        notice = max(0, incoming.arrival - now)
        elapsed = now - min((request.started or now for request in victims), default=now)
        return situation(
            self._device, models, incoming.model, self._priorities.beside(incoming, victims), remaining=remaining,
            elapsed=elapsed, killable=self._rules.may_kill, notice=notice, later=later,
        )  # fmt: skip
