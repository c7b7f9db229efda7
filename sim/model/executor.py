"""Runs bodies as ``hw/control/executor.py`` does.

What depends on the host, a cancellation point or the end of a body, happens in its own cycle.
"""

from hw.contract.job import Fault, FaultUnit
from hw.contract.regs import EngineState
from hw.contract.timing import SETTLED, STUCK_CYCLES
from sim.cost.exact.program import CANCEL, END, ILLEGAL
from sim.model.completion import completion_of
from sim.model.dispatch import DispatchModel, Why
from sim.model.jobs import Job, JobFault, executor_fault, no_job
from sim.model.prepare import PreparerModel
from sim.model.queues import QueueModel
from sim.model.surroundings import Component

_IDLE, _BODY, _QUIESCE, _HALTED, _BETWEEN, _DRAIN, _RETIRE, _COPY, _REPORT, _DEAD = range(10)


class ExecutorModel(Component):
    """Runs bodies in ring order. ``released``: jobs that have ended; ``job``: the one at hand, or the last."""

    def build(self) -> None:
        engine = self.engine
        self.dispatch = DispatchModel(engine, self._fetched, self._progress)
        self.preparer = PreparerModel(engine)

    def reset(self) -> None:
        self.generation += 1
        self.preparer.reset()
        self.dispatch.reset()
        self.released = 0
        self.job = no_job()
        self.fault: JobFault | None = None
        self.halt_cycle = self.halt_point = self.halt_pc = 0
        self._overdue = 0  #: cycle at which the body has taken too many
        self._state = _IDLE
        self._point = -1  # the cancellation point that waits for its cycle
        self._trapped = False
        self._fails_at = 0  # if it has, or will

    # -- what registers show ---------------------------------------------------------------------------------
    @property
    def dead(self) -> bool:
        """Return whether the engine has stopped on a fault."""
        return self._state == _DEAD

    def fetching(self, time: int) -> bool:
        """Return whether instructions of the body at hand are still to be dispatched."""
        return self._state in (_BODY, _QUIESCE, _HALTED) or (self._state == _DRAIN and time <= self.dispatch.latest)

    @property
    def in_job(self) -> bool:
        """Return whether the engine is HALTED at a cancellation point."""
        return self._state == _HALTED

    def state(self, time: int) -> EngineState:
        """Return STATUS.state."""
        if self._state == _DEAD:
            return EngineState.FAULT
        if self._state in (_HALTED, _BETWEEN):
            return EngineState.HALTED
        if self._state == _BODY or (self._state == _DRAIN and time <= self.dispatch.latest):
            return EngineState.RUNNING
        if self._state != _IDLE:
            return EngineState.DRAINING
        return EngineState.IDLE if self.engine.enabled else EngineState.DISABLED

    def next_pc(self, time: int) -> int:
        """Return CURRENT_PC."""
        if self._state not in (_BODY, _QUIESCE, _HALTED, _DRAIN):
            return self.dispatch.pc
        return self.dispatch.next_pc(time)

    # -- between jobs ----------------------------------------------------------------------------------------
    def consider(self, time: int) -> None:
        """Begin a job or halt, where that is possible now."""
        engine = self.engine
        if self._state == _QUIESCE:
            self._settle(time)
        elif self._state == _IDLE and engine.enabled and not engine.resetting:
            if engine.paused:
                if engine.loader.resting and engine.retirer.free:
                    self._state = _BETWEEN
                    self.halt_cycle = time
                    self.later(time + 2, self._halted)
            elif self.preparer.ready:
                self._begin(time)

    def _halted(self, time: int, _: None) -> None:
        self.engine.interrupt(time, "halted")

    def pause(self, time: int) -> None:
        """Take note that CONTROL.pause was set."""
        self.later(time, lambda at, _: self.consider(at))

    def resume(self, time: int) -> None:
        """Take note that CONTROL.pause was cleared."""
        if self._state == _BETWEEN:
            self._state = _IDLE
            self.later(time + 1, lambda at, _: self.consider(at))
        elif self._state in (_HALTED, _QUIESCE):
            if self._state == _HALTED:
                self._overdue += time - self.halt_cycle
                self._watch(time)
            self._state = _BODY
            self.dispatch.latest = time
            self.later(time + 1, lambda at, _: self._dispatch(at))
        elif self._state == _IDLE:
            self.consider(time)
        self.preparer.fetch(time)
        self.preparer.prepare(time)

    def retirer_free(self, time: int) -> None:
        """Take note that the retirer can take the next job."""
        if self._state == _RETIRE:
            self._retire(time)
        elif self._state == _REPORT:
            self._die(time)
        else:
            self.consider(time)

    # -- a body ----------------------------------------------------------------------------------------------
    def _begin(self, time: int) -> None:
        engine, job = self.engine, self.preparer.take()
        self.job, self.fault = job, None
        job.times["start"] = job.times["end"] = time
        self._state = _BODY
        self._trapped = False
        self.dispatch.clear()
        if job.fault:
            self._trap(time + 1, job.fault)
            return
        self.dispatch.begin(time, job, engine.program(job))
        self._overdue = time + job.members["cycle_limit"] + 1
        self._watch(time)
        self.preparer.prepare(time + 1)
        self._dispatch(time)

    def _watch(self, time: int) -> None:
        """Look when the body has taken the cycles that it may; those in HALTED do not count."""
        assert self.job is not None
        if self.job.members["cycle_limit"]:
            self.later(max(time, self._overdue), self._over_time, self.job)

    def _over_time(self, time: int, job: Job) -> None:
        if job is self.job and self._state in (_BODY, _QUIESCE, _DRAIN) and time >= self._overdue:
            ending = self._state == _DRAIN and time > self.dispatch.latest  # END was the last
            pc = self.dispatch.pc if ending else max(0, self.next_pc(time) - 1)
            self._trap(time, JobFault(Fault.CYCLE_LIMIT, FaultUnit.EXECUTOR, pc))

    def _fetched(self, time: int) -> None:
        if self._state == _BODY:
            self._dispatch(time)

    def _progress(self, time: int, work: list[QueueModel]) -> None:
        """Units have begun or ended something."""
        while work:
            work.pop().advance(work)
        if self._state == _BODY:
            self._dispatch(time)
        elif self._state == _DRAIN:
            self._drained()
        elif self._state == _QUIESCE:
            self._settle(time)

    def _dispatch(self, time: int) -> None:
        """Dispatch what can be, and deal with what ends it."""
        if self._state != _BODY or self._trapped or self._point == self.dispatch.pc:
            return
        stop = self.dispatch.run()
        if stop is None:
            return
        if stop.why is Why.BLOCKED:
            self._look_for_deadlock()
        elif stop.fault:
            own = stop.fault.unit is FaultUnit.EXECUTOR
            self._trap(max(time, stop.at) if own else stop.at, stop.fault)
        else:
            self._special(stop.at, self.dispatch.pc)

    def _special(self, at: int, pc: int) -> None:
        """Carry out an instruction that no unit executes."""
        unit = self.dispatch.program.units[pc]
        if unit == END:
            self.dispatch.latest = at
            self._state = _DRAIN
            self.later(at, lambda time, _: self.dispatch.fetch.stop())
            self.later(at + 1, lambda time, _: self.preparer.fetch(time))
            self._drained()
        elif unit == CANCEL:
            self.dispatch.soonest = at
            self._point = pc
            self.later(at, self._cancel, pc)
        else:
            assert unit == ILLEGAL
            self._trap(at, executor_fault(Fault.ILLEGAL, pc))

    def _cancel(self, time: int, pc: int) -> None:
        if self._state != _BODY or self._trapped or pc != self.dispatch.pc:
            return
        self._point = -1
        self.halt_point, self.halt_pc = self.dispatch.program.points[pc], pc + 1
        self.dispatch.latest = time
        self.dispatch.pc = pc + 1
        if self.engine.paused:
            self._state = _QUIESCE
            self._settle(time + 1)
        else:
            self._dispatch(time)

    def _settle(self, time: int) -> None:
        """Halt at a point once nothing moves any more."""
        engine = self.engine
        if not self.dispatch.idle:
            self._look_for_deadlock()
            return
        if not (engine.loader.resting and engine.retirer.free):
            return
        still = max(time, self.dispatch.last_signal + 1)
        self.later(still + 1, self._settled, still)

    def _settled(self, time: int, _: int) -> None:
        if self._state != _QUIESCE or not self.engine.paused:
            return
        if self.engine.retirer.failed:
            self._die(time)
            return
        self._state = _HALTED
        self.halt_cycle = time
        self.later(time + 2, self._halted)

    def _drained(self) -> None:
        """End the body once the end of its last instruction is known."""
        if not self.dispatch.idle:
            self._look_for_deadlock()
            return
        self.later(max(self.dispatch.latest, self.dispatch.last_signal) + 2, self._checked)

    def _checked(self, time: int, _: None) -> None:
        if self._state != _DRAIN or self._trapped:
            return
        residue = self.dispatch.semaphores.residue()
        if residue:
            self._trap(time, JobFault(Fault.SEMAPHORE_RESIDUE, FaultUnit.EXECUTOR, self.dispatch.pc, residue))
            return
        self._ended(time)

    def _ended(self, time: int) -> None:
        job = self.job
        job.times["end"] = time
        self.engine.record(job, self.dispatch.queues)
        self._state = _RETIRE
        if self.engine.retirer.free:
            self.later(time + 1, lambda at, _: self._retire(at))

    def _retire(self, time: int) -> None:
        if self._state != _RETIRE:
            return
        engine, job = self.engine, self.job
        if engine.retirer.failed:
            self._die(time)
            return
        self._state = _COPY
        raw = completion_of(job, self.fault, engine.counters(job, self.dispatch.queues, job.times["end"]))
        self.later(engine.retirer.take(time, job, raw) + 1, self._copied)

    def _copied(self, time: int, _: None) -> None:
        engine = self.engine
        engine.ring.jobs.pop(self.released - 2, None)
        self.released += 1
        if self.fault:
            self._state = _REPORT
            if engine.retirer.free:
                self._die(time)
            return
        self._state = _IDLE
        engine.ring.consider(time)
        self.consider(time)

    # -- faults ----------------------------------------------------------------------------------------------
    def struck(self, time: int, fault: JobFault) -> None:
        """Take note that the memory answered an instruction of the body with an error, which is known at ``time``."""
        if self._state in (_BODY, _QUIESCE, _DRAIN):
            self._trap(time, fault)

    def _trap(self, time: int, fault: JobFault) -> None:
        """The body fails at ``time``, unless it fails before."""
        if self._trapped and self._fails_at <= time:
            return
        self._trapped, self._fails_at = True, time
        self.later(time, self._abort, fault)

    def _abort(self, time: int, fault: JobFault) -> None:
        if time != self._fails_at:
            return  # it failed before
        self.fault = fault
        self._state = _DRAIN
        self.dispatch.fetch.stop()
        self.engine.ld2.stop()
        self.engine.st2.stop()
        generation = self.generation
        self.engine.poll(time, lambda at: self._aborted(at) if generation == self.generation else None)

    def _aborted(self, time: int) -> None:
        self._ended(time + SETTLED + 1)

    def _die(self, time: int) -> None:
        self._state = _DEAD
        self.engine.stop()
        self.engine.interrupt(time + 1, "fault")

    def completion_failed(self, time: int, code: Fault, unit: FaultUnit) -> None:
        """The retirer could not write: nothing goes on."""
        if self._state in (_IDLE, _RETIRE, _REPORT):
            self._die(time)

    def _look_for_deadlock(self) -> None:
        """Fail if an instruction waits for what nothing can satisfy any more."""
        if self._trapped:
            return
        deadlock = self.dispatch.deadlock()
        if deadlock is not None:
            last = max(self.dispatch.latest, self.dispatch.last_signal)
            unit, pc, missing = deadlock
            self._trap(last + STUCK_CYCLES + 3, JobFault(Fault.SEMAPHORE_UNDERFLOW, unit, pc, missing))
