"""Waits between two turns for whatever comes next: an interrupt, or a cycle at which something is due."""

from collections.abc import Iterator

from sw.driver import Device
from sw.driver.queues.interrupt_wait import LOOK_AFTER
from sw.runtime.deadlines import Deadlines
from sw.runtime.level_changes import LevelChanges
from sw.runtime.priorities import Priorities
from sw.runtime.request_steps import RequestSteps
from sw.runtime.rules import Rules
from sw.runtime.waiting_requests import WaitingRequests

_TICK = 1000  #: cycles between two looks at the loaders while there is something to decide on


class WakeUps:
    """Waits for what one run time waits for; its parts are those of the run time.

    Time passes while the host works. So what has become due since the turn began is looked at before anything is waited
    for, whatever it is and wherever it comes from: nothing but an interrupt would end the wait otherwise.
    """

    def __init__(
        self, device: Device, priorities: Priorities, waiting: WaitingRequests, deadlines: Deadlines,
        changes: LevelChanges, steps: RequestSteps, rules: Rules,
    ) -> None:  # fmt: skip
        self._device, self._priorities, self._waiting = device, priorities, waiting
        self._deadlines, self._changes, self._steps = deadlines, changes, steps
        self._rules = rules

    def interrupted(self) -> bool:
        """Return whether the host has to leave what it does: for a more urgent request, or one that is too late."""
        late = self._deadlines.next_cycle()
        return self._changes.due() or (late is not None and late <= self._device.bus.cycle)

    def wait(self) -> None:
        """Let time pass until something is to be done, and take what has ended on the device. Raises ``DeviceTimeout``
        if a job has kept its engine longer than it may."""
        if self._rules.whole:
            self._wait_for_all()
            return
        if self._waiting.unseen() and (self._waiting.startable() is not None or self._changes.due()):
            return
        now = self._device.bus.cycle
        ahead = [max(0, cycle - now) for cycle in self._due()]
        if not self._device.outstanding and self._device.transferring:
            if not self._device.poll(min([_TICK, *ahead])):  # a dump or restore may fill the rings
                self._device.refuse_overdue()
            self._steps.advance_all()
        elif not self._device.outstanding:
            self._steps.advance_all()  # what ended together with a fault has not been looked at
            top = self._priorities.top
            if ahead and (top is None or all(request.on_cpu is not None for request in top.requests)):
                self._device.bus.advance(min(ahead))
        else:
            self._wait_for_jobs(ahead)

    def _wait_for_all(self) -> None:
        """Wait until all that was begun has ended."""
        for request in self._priorities.requests:
            if request.on_cpu is not None:
                self._device.bus.advance(request.on_cpu.end - self._device.bus.cycle)
        jobs = [job for level in self._priorities for run in level.groups.values() for job in run.jobs]
        self._device.collect(jobs, self._rules.limit)
        self._steps.advance_all()

    def _wait_for_jobs(self, ahead: list[int]) -> None:
        top = self._priorities.top
        ticks = [_TICK] if top is not None and top.starved and not self._rules.at_arrival else []
        patience = self._device.patience()
        if self._device.poll(min([LOOK_AFTER if patience is None else patience, *ahead, *ticks]), self._changes.due):
            self._steps.advance_all()
        else:
            self._device.refuse_overdue()

    def _due(self) -> Iterator[int]:
        """Yield the cycles at which something is to be done, the next of each kind; some may have passed."""
        for cycle in (self._waiting.next_arrival(), self._deadlines.next_cycle()):
            if cycle is not None:
                yield cycle
        if (known := self._changes.foreseen()) is not None:
            yield known[1]
        yield from (request.on_cpu.end for request in self._priorities.requests if request.on_cpu is not None)
