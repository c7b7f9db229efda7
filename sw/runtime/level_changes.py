"""Decides which requests have the engines: when more urgent ones take them, and when suspended ones get them back (of
**Cancellation points**)."""

from sw.driver import DeviceFault, DeviceTimeout, NotSuspendable, OutOfMemory
from sw.runtime.preemption_mechanism import Mechanism, Situation, situation
from sw.runtime.priority_level import PriorityLevel
from sw.runtime.recovery import Recovery
from sw.runtime.request import Blamed, Request, blaming
from sw.runtime.request_steps import RequestSteps
from sw.runtime.waiting_requests import RuntimeState


class LevelChanges:
    """Makes the priority level that should have the engines the highest of ``priorities``."""

    def __init__(self, state: RuntimeState, recovery: Recovery, steps: RequestSteps) -> None:
        self._device, self._rules, self._priorities = state.device, state.rules, state.priorities
        self._waiting, self._switching, self._log = state.waiting, state.switching, state.log
        self._recovery, self._steps = recovery, steps
        self.count = 0  #: times that running requests were suspended or killed

    def turn(self) -> None:
        """Take the engines for a more urgent arrival, or give them back to an older level, if it is time to."""
        wanted = self._wanted()
        if wanted is not None:
            self._preempt(wanted)
        best = self._waiting.most_urgent() if self._rules.preemptive else None
        for suspension in self._priorities.leave_empty():
            self._device.abandon(suspension)
        level = self._priorities.top
        if level is not None and level.suspension is not None and (best is None or best <= level.priority):
            self._resume(level)

    def due(self) -> bool:
        """Return whether a more urgent request waits for the decision to stop what runs."""
        level = self._priorities.running
        return level is not None and bool(level.requests) and self._wanted() is not None

    def _wanted(self) -> Request | None:
        """Return the request for which to stop what runs, if the rule agrees: an arrival that is more urgent, or one to
        be switched to ahead of its arrival. It is None if there is none, or it was decided to wait."""
        if not self._rules.preemptive:
            return None
        urgent = self._urgent()
        if urgent is not None and not self._switching.declined(urgent):
            return urgent
        known = self.foreseen()
        return known[0] if known is not None and known[1] <= self._device.bus.cycle else None

    def _urgent(self) -> Request | None:
        """Return the first arrival that is more urgent than what runs."""
        best = next(iter(self._waiting.arrived()), None)
        return best if best is not None and self._priorities.outranked_by(best) else None

    def foreseen(self) -> tuple[Request, int] | None:
        """Return the next announced arrival that is more urgent than what runs, and the cycle at which to switch for
        it."""
        level = self._priorities.running
        if not self._rules.preemptive or level is None:
            return None
        return self._switching.foreseen(
            self._waiting.announced(),
            self._device.bus.cycle,
            level.priority,
            lambda request: self._situation(level, request),
        )

    def _preempt(self, incoming: Request) -> None:
        """Suspend or kill the running level for a more urgent request, unless it is cheaper to wait for it."""
        level = self._priorities.running
        if level is None or not level.requests:
            return
        begin = self._device.bus.cycle
        self._device.bus.advance(self._device.bus.costs.decision)
        with blaming(incoming):  # the rule may be the user's
            choice = self._switching.decide(incoming, self._situation(level, incoming))
        if choice is Mechanism.WAIT:
            return
        self._switching.begin(incoming, begin)
        if choice is Mechanism.DUMP:
            self._suspend(level, incoming)
            return
        self._start_over(level)

    def _start_over(self, level: PriorityLevel) -> None:
        """Take the requests of ``level`` off the engines; they wait to run again from their beginning."""
        self.count += 1
        for request in list(level.requests):
            request.preempted += 1
            request.killed += 1
            self._recovery.restart(request)

    def _suspend(self, level: PriorityLevel, incoming: Request) -> None:
        oldest = level.requests[0]
        try:
            suspension = self._device.suspend(range(self._device.params.engines), incoming.model, level.next_jobs())
        except OutOfMemory:  # nothing was taken off the engines
            self._start_over(level)
            return
        except (DeviceFault, DeviceTimeout):
            raise
        except Exception as error:  # the engines go on; who cannot be suspended ends, so that they are free
            at_fault = [r for r in level.requests if r.model is getattr(error, "model", None)]
            raise Blamed((at_fault or level.requests)[0], error) from error
        self.count += 1
        self._log.paused(oldest, suspension.sent, suspension.halts.values(), self._device.bus.cycle)
        level.suspend(suspension)
        self._steps.advance_all()
        stopped = max((halt.cycle for halt in suspension.halts.values()), default=0) or suspension.sent
        for request in level.requests:
            self._log.stops(request, stopped)
            request.suspend()

    def _resume(self, level: PriorityLevel) -> None:
        begin = self._device.bus.cycle
        try:
            announced, restore = level.resume()
        except (DeviceFault, DeviceTimeout):
            raise
        except NotSuspendable as refusal:  # the next turn tries again, without it
            self._recovery.fail_model(refusal)
            return
        except OutOfMemory:  # for what others have on chip, where it is to come back
            self._recovery.give_way(level) or self._recovery.give_way()
            return
        except Exception as error:
            self._recovery.give_up(list(level.requests), error)
            return
        self._log.moves(level.requests[0], restore)
        self._log.resumed(level.requests[0], begin, announced)
        self._log.runs(level.requests, announced)

    def _situation(self, level: PriorityLevel, incoming: Request) -> Situation:
        models = list({id(request.model): request.model for request in level.requests}.values())
        now, remaining = self._device.bus.cycle, level.remaining()
        notice = max(0, incoming.arrival - now)
        elapsed = now - min((request.started or now for request in level.requests), default=now)
        return situation(
            self._device, models, remaining=remaining, elapsed=elapsed, killable=self._rules.may_kill, notice=notice
        )
