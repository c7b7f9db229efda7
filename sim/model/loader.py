"""Runs prologues ahead of the bodies as ``hw/control/loader.py`` does."""

from hw.contract.isa import INSN_BYTES, Unit
from hw.contract.job import Fault, FaultUnit, JobFlag
from sim.cost.exact.program import CANCEL, END, ProgramTable
from sim.functional.state import FunctionalFault
from sim.model.commands import LOADER, READ_PORTS, Command
from sim.model.completion import Spans
from sim.model.fetch import FetchModel
from sim.model.jobs import Job, JobFault, no_job
from sim.model.surroundings import Component

LOOK = 4  #: cycles from a stored job until its window is looked at
SAVE = 8  #: words of its counters that are saved
_NOTHING, _WINDOW, _FETCHING, _OFFERED, _DRAIN, _HELD, _ABANDON, _STOPPED = range(8)


class LoaderModel(Component):
    """Takes stored jobs in order. ``loaded``: jobs handed to the executor; ``fault``: why the next will not come."""

    def build(self) -> None:
        engine = self.engine
        self.fetch = FetchModel(
            engine.params, engine.memory, engine.agenda, self._fetched, READ_PORTS * engine.number + 1
        )

    def reset(self) -> None:
        self.generation += 1
        self.fetch.stop()
        self.loaded = 0
        self.fault: JobFault | None = None
        self._state = _NOTHING
        self._looking = False
        self._job = no_job()
        self._unfinished = 0
        self._begun: list[tuple[int, int]] = []  # PCs of the loads of the last prologue, and when LD2 took them
        self._ended: list[int] = []

    @property
    def job(self) -> Job:
        """Return the job at hand."""
        return self._job

    @property
    def busy(self) -> bool:
        """Return STATUS.loader_busy."""
        return self._looking or self._state in (_FETCHING, _OFFERED, _DRAIN, _HELD, _ABANDON)

    @property
    def resting(self) -> bool:
        """Return whether a pause finds the loader between two loads, with nothing in the LD2 unit."""
        if self._looking or not self.engine.paused:
            return False
        if self._state == _STOPPED:
            return not self.engine.ld2.recovering  # loads of a prologue that failed
        if self._state in (_NOTHING, _WINDOW, _HELD):
            return True
        return self._state == _FETCHING and not self._unfinished

    # -- jobs ------------------------------------------------------------------------------------------------
    def consider(self, time: int) -> None:
        """Look at the next job, or at the window that the one at hand waits for."""
        engine = self.engine
        if self._looking or engine.stopped or engine.paused or (not engine.enabled and self._state == _NOTHING):
            return
        if self._state == _NOTHING:
            if engine.ring.stored != self.loaded:
                self._job = engine.ring.jobs[self.loaded]
                self._looking = True
                self._job.times["prologue_start"] = self._job.times["prologue_end"] = 0
                if self._job.has(JobFlag.PROLOGUE):
                    self.later(time + LOOK, self._looked)
                else:
                    self.later(time + 2 + SAVE, self._saved)
            elif engine.ring.bad:
                self._stop(time, engine.ring.bad)
        elif self._state == _WINDOW and self._free():
            self._start(time)

    def _looked(self, time: int, _: None) -> None:
        self._looking = False
        self._state = _WINDOW
        self.consider(time)
        if self.engine.paused:
            self.engine.executor.consider(time)

    def _free(self) -> bool:
        after = self._job.members["window_after"]
        return not after or self.loaded - after < self.engine.retirer.retired

    def _start(self, time: int) -> None:
        job, engine = self._job, self.engine
        job.times["prologue_start"] = time + 1
        self._program: ProgramTable = engine.loads(job)
        self._pc = job.members["prologue_pc"]
        self._done_pc = self._pc  # of the oldest load that has not landed
        self._begun, self._ended = [], []
        self._fetch_from(time + 1)

    def _fetch_from(self, time: int) -> None:
        base, limit = self._job.segments[0]
        self._state = _FETCHING
        self._pc = self._first = self._done_pc
        self._latest = time - self.fetch.per_insn  # the last instruction that was given on
        self._end = limit // INSN_BYTES
        self.fetch.start(time, self._pc, base, limit)
        if self._pc >= self._end:
            self.later(time + 2, self._issue, self.generation)

    # -- instructions ----------------------------------------------------------------------------------------
    def _fetched(self, time: int) -> None:
        if self._state == _FETCHING:
            self._next(time)

    def _next(self, time: int) -> None:
        """Plan the next instruction, if it has come."""
        number = self._pc - self._first
        if number < len(self.fetch.whole):
            whole = max(self._latest + self.fetch.per_insn, self.fetch.whole[number])
            if number == len(self.fetch.assembled):
                self.fetch.taken(whole)
            self._state = _OFFERED
            self.later(max(whole + 1, self._latest + 2), self._issue)
        elif self._pc >= self._end:
            self._state = _OFFERED
            self.later(max(time, self._latest + 2), self._issue)

    def _issue(self, time: int, _: object) -> None:
        if self.engine.paused:
            self._state = _FETCHING
            self.pause(time)
            return
        pc, program = self._pc, self._program
        if pc >= self._end:
            self._stop(time, JobFault(Fault.LIMIT, FaultUnit.LOADER, pc, pc * INSN_BYTES))
            return
        if pc - self._first == self.fetch.failed:
            self._stop(time, JobFault(Fault.BUS, FaultUnit.LOADER, pc, pc * INSN_BYTES))
            return
        program.decode(pc, pc + 1)
        unit = program.units[pc]
        if unit == END:
            self.fetch.stop()
            self._state = _DRAIN
            self._drained(time + 1)
            return
        if unit != Unit.LD2 or unit == CANCEL or program.waits[pc] or program.signals[pc]:
            self._stop(time, JobFault(Fault.ILLEGAL, FaultUnit.LOADER, pc, pc * INSN_BYTES))
            return
        engine, job = self.engine, self._job
        try:
            engine.execute(program, pc, job)
        except FunctionalFault as fault:
            self._stop(time + 8, JobFault(fault.code, FaultUnit.LD2, fault.pc, fault.addr))
            return
        generation = self.generation
        engine.ld2.offer(
            time,
            Command(
                program.measured(pc),
                engine.bases(program, pc, job.segments),
                lambda at: self._accepted(at, pc) if generation == self.generation else None,
                lambda at: self._landed(at, pc) if generation == self.generation else None,
                pc,
                LOADER,
            ),
        )

    def _accepted(self, time: int, pc: int) -> None:
        self._unfinished += 1
        self._begun.append((pc, time))
        self._latest = time
        self._pc = pc + 1
        self._state = _FETCHING
        self._next(time + 1)

    def _landed(self, time: int, pc: int) -> None:
        self._unfinished -= 1
        self._done_pc = pc + 1
        self._ended.append(time)
        if self._state == _DRAIN:
            self._drained(time + 1)

    def _drained(self, time: int) -> None:
        if not self._unfinished:
            self._job.times["prologue_end"] = time
            engine = self.engine
            engine.recorder.prologue(engine.number, self._job, self.counted())
            self._state, self._looking = _NOTHING, True
            self.later(time + 1 + SAVE, self._saved)

    def _saved(self, time: int, _: None) -> None:
        self._looking = False
        self._state = _NOTHING
        self.loaded += 1
        self.engine.prologue_counters(self._job)
        self.engine.executor.preparer.prepare(time)
        self.consider(time)
        if self.engine.paused:
            self.engine.executor.consider(time)

    # -- pause and faults ------------------------------------------------------------------------------------
    def pause(self, time: int) -> None:
        """Abandon the loads of the prologue that runs, as CONTROL.pause was set."""
        if self._state in (_FETCHING, _OFFERED, _DRAIN) and (self._unfinished or self._state != _FETCHING):
            self.generation += 1
            self.fetch.stop()
            self._state = _ABANDON
            generation = self.generation
            recovered = self.engine.ld2.abandon(
                time + 2, lambda at: self._recovered(at) if generation == self.generation else None
            )
            if not recovered:
                self._recovered(time + 2)

    def _recovered(self, time: int) -> None:
        self._unfinished = 0
        del self._begun[len(self._ended) :]
        self._state = _HELD
        if self.engine.paused:
            self.engine.executor.consider(time + 1)
        else:
            self.resume(time)

    def resume(self, time: int) -> None:
        """Go on, as CONTROL.pause was cleared."""
        if self._state == _HELD:
            self._fetch_from(time + 1)
        elif self._state == _FETCHING:
            self._next(time)
        else:
            self.consider(time)

    def stop(self) -> None:
        """Stop for good, or until the engine is reset."""
        self.generation += 1
        self._looking = False
        self._state = _STOPPED

    def struck(self, time: int, fault: JobFault) -> None:
        """A load of the prologue at hand was answered with an error, which is known at ``time``."""
        engine, stopped = self.engine, self._state == _STOPPED
        engine.ld2.abandon(time, lambda at: engine.executor.consider(at + 1) if engine.paused else None)
        if not stopped:
            self._stop(time, fault)

    def _stop(self, time: int, fault: JobFault) -> None:
        self.fetch.stop()
        self.fault = fault
        self.stop()
        self.engine.executor.preparer.prepare(time)
        if self.engine.paused:
            self.engine.executor.consider(time)

    def counted(self) -> Spans:
        """Return the loads of the prologue at hand that have landed."""
        landed = self._begun[: len(self._ended)]
        return Spans([pc for pc, _ in landed], [begin for _, begin in landed], self._ended[:])
