"""Dispatches the instructions of a body to the queues of their units, ahead of time; :mod:`sim.model.queues` says why
it can."""

from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple

import numpy as np

from hw.contract.isa import INSN_BYTES, Segment, Unit
from hw.contract.job import SEMAPHORES, Fault, JobFlag
from hw.contract.timing import PARAMETERS_TOO, RESTORED
from sim.cost.exact.program import ProgramTable
from sim.functional.state import FunctionalFault
from sim.model.commands import READ_PORTS
from sim.model.fetch import FetchModel
from sim.model.jobs import Job, JobFault, executor_fault
from sim.model.pipes import ON_CHIP, MacPipe
from sim.model.queues import QueueModel, SemaphoreModel, unit_queue
from sim.model.surroundings import Surroundings

_UNITS = len(Unit)


class Why(Enum):
    """Names what ends dispatch for now."""

    SPECIAL = auto()  #: an instruction that no unit executes
    BLOCKED = auto()  #: a queue without room
    FAULT = auto()  #: a fault of the instruction at hand


class Stop(NamedTuple):
    """Says why dispatch ended, in which cycle, and what is wrong."""

    why: Why
    at: int
    fault: JobFault | None = None


_BLOCKED = Stop(Why.BLOCKED, 0)


class DispatchModel:
    """Models fetch, queues and semaphores of one engine, and the instruction at hand.

    ``pc``: the next instruction; ``latest``: when the last was dispatched; ``soonest``: when the next may be. ``wake``
    is called when instructions have come, ``progress`` when LD2 or ST2 has begun or ended one.
    """

    def __init__(
        self, engine: Surroundings, wake: Callable[[int], None], progress: Callable[[int, list[QueueModel]], None]
    ) -> None:
        self._engine, self._progress = engine, progress
        self.fetch = FetchModel(engine.params, engine.memory, engine.agenda, wake, READ_PORTS * engine.number)
        self.semaphores = SemaphoreModel(engine.params.semaphores)
        self._depth = engine.params.unit_room
        self._pipes = {unit: engine.memory.bank_ports.pipe(engine.number, unit) for unit in ON_CHIP}
        self.queues: list[QueueModel] = []
        self.reset()

    def reset(self) -> None:
        """Go to the state after a reset of the engine."""
        self.fetch.stop()
        self.clear()  # what is on offer at a unit may still be accepted, and is nobody's then
        self.program = ProgramTable(np.empty(0, np.uint8), self._engine.params)
        engine, semaphores, pipes, mac = self._engine, self.semaphores, self._pipes, MacPipe(self._engine.params.rows)
        for pipe in pipes.values():
            pipe.clear()
        self.queues = [
            unit_queue(unit, semaphores, self.program, engine.number, pipes.get(unit, mac), engine.memory,
                       {Unit.LD2: engine.ld2, Unit.ST2: engine.st2}, self._bases, self._progress) for unit in Unit
        ]  # fmt: skip
        self.pc = self._end_pc = self._first = self._decoded = 0
        self.latest = self.soonest = 0
        self.starved = 0  #: cycles in which the next instruction had not come whole

    def _bases(self, pc: int) -> tuple[int, int]:
        return self._engine.bases(self.program, pc, self._segments)

    def clear(self) -> None:
        """Empty the queues as a job begins."""
        self.semaphores.clear()
        for queue in self.queues:
            queue.clear()

    def begin(self, time: int, job: Job, program: ProgramTable) -> None:
        """Begin the body of ``job``."""
        self.program, self._job, self._segments = program, job, job.segments
        self._patience = job.members["cycle_limit"]
        self.pc = self._first = self._decoded = job.members["body_pc"]
        self._end_pc = min(len(program), job.segments[Segment.CODE][1] // INSN_BYTES)
        for queue in self.queues:
            queue.program = program
        for pipe in self._pipes.values():
            pipe.begin(program, job.segments)
        self.soonest = time + 2
        self.starved = 0
        if job.has(JobFlag.RESUME) or job.parameters:
            self.soonest += RESTORED
        if job.has(JobFlag.RESUME):
            self.soonest += PARAMETERS_TOO if job.parameters else 0
            for number in range(min(SEMAPHORES, self._engine.params.semaphores)):
                self.semaphores.tokens[number].extend([time] * job.members[f"sem{number}"])
        self.latest = time - self.fetch.per_insn

    def run(self) -> Stop | None:
        """Dispatch what is there and has room; return None where the next instruction has not come."""
        program, queues, fetch, depth = self.program, self.queues, self.fetch, self._depth
        units, per_insn, executes = program.units, fetch.per_insn, self._engine.data
        resolving = program.resolving
        whole, assembled, first, soonest = fetch.whole, fetch.assembled, self._first, self.soonest
        pc, latest, come = self.pc, self.latest, len(whole)
        if 0 <= fetch.failed < come:
            come = fetch.failed
        if first + come > self._decoded:
            self._decoded = program.decode(self._decoded, first + come)
        work: list[QueueModel] = []
        while True:
            number = pc - first
            if number >= come:
                if pc >= self._end_pc:
                    return Stop(Why.FAULT, latest + 2, executor_fault(Fault.LIMIT, pc))
                if number >= len(whole):
                    return None
                unread = max(latest + per_insn + 1, whole[number] + 1, soonest)
                return Stop(Why.FAULT, unread, executor_fault(Fault.BUS, pc))
            at = latest + per_insn
            if whole[number] > at:
                at = whole[number]
            if number == len(assembled):
                assembled.append(at)
                self.starved += at - latest - 1
                if number >= fetch.gate:
                    fetch.make_room()
            elif not number:
                self.starved = max(0, whole[0] - soonest + 1)
            at += 1
            if at < soonest:
                at = soonest
            if resolving:
                at += resolving.get(pc, 0)
            unit = units[pc]
            if not 0 <= unit < _UNITS:
                return Stop(Why.SPECIAL, at)
            queue = queues[unit]
            pcs = queue.pcs
            over = len(pcs) - depth
            if over >= 0:
                taken = queue.taken
                if over >= len(taken):
                    return _BLOCKED
                if taken[over] >= at:
                    at = taken[over] + 1
            pcs.append(pc)
            queue.issued.append(at)
            self.latest = latest = at
            self.pc = pc = pc + 1
            if executes:
                try:
                    self._engine.execute(program, pc - 1, self._job, self._patience)
                except FunctionalFault as refused:
                    begun = queue.taken[-1] if queue.taken else at
                    fault = JobFault(refused.code, refused.unit, refused.pc, refused.addr)
                    return Stop(Why.FAULT, max(at, begun) + 8, fault)
            queue.advance(work)
            while work:
                work.pop().advance(work)

    # -- what has been dispatched ----------------------------------------------------------------------------
    def next_pc(self, time: int) -> int:
        """Return the first instruction that has not been dispatched before cycle ``time``."""
        return self.pc - sum(issued >= time for queue in self.queues for issued in queue.issued)

    @property
    def idle(self) -> bool:
        """Return whether the end of all that was dispatched is known."""
        return all(queue.idle for queue in self.queues)

    @property
    def last_signal(self) -> int:
        """Return when the last instruction of the body has signalled, as far as is known; 0 before the first."""
        return max((queue.done[-1] for queue in self.queues if queue.done), default=0)

    def deadlock(self) -> tuple[Unit, int, int] | None:
        """Return a wait that nothing can satisfy any more: its unit, its instruction, and its semaphores."""
        stuck = [queue for queue in self.queues if queue.stuck]
        if not stuck or not all(queue.stuck or queue.idle for queue in self.queues):
            return None
        pc = stuck[0].pcs[len(stuck[0].taken)]
        missing = sum(1 << number for number in self.program.waits[pc] if not self.semaphores.tokens[number])
        return stuck[0].unit, pc, missing
