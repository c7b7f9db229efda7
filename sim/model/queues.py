"""Models the queue in front of a unit, and the semaphores: ``hw/control/unit_queue.py``, ``hw/control/semaphores.py``.

Queues are first in, first out, and so are the tokens of a semaphore. So when an instruction starts follows from what is
before it in its unit and from the signals that it waits for, and can be told as soon as these are known, ahead of time.
Only what waits for DRAM must wait here, too.
"""

from bisect import insort
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from hw.contract.isa import Unit
from hw.contract.timing import QUEUED, UNIT_IN_FLIGHT
from sim.cost.exact.program import ProgramTable
from sim.model.agenda import Agenda
from sim.model.commands import Command
from sim.model.memory import Lv2Writes, MemoryModel
from sim.model.memory_units import MemoryUnit
from sim.model.pipes import ChipPipe, MacPipe


class Pipe(Protocol):
    """Is a unit that stays on the chip; :mod:`sim.model.pipes` has those there are."""

    def run(self, valid: int, work: Any, pc: int) -> tuple[int, int]:
        """Take the command at ``pc``, valid from cycle ``valid`` on; return when it is accepted and when it signals,
        less than 0 if it may do so later."""


class SemaphoreModel:
    """Keeps the tokens of one engine: for each semaphore the cycles from which they can be taken, oldest first."""

    def __init__(self, count: int) -> None:
        self.tokens: list[deque[int]] = [deque() for _ in range(count)]
        self.waiters: list[QueueModel | None] = [None] * count

    def clear(self) -> None:
        """Set all semaphores to zero."""
        for tokens in self.tokens:
            tokens.clear()
        self.waiters = [None] * len(self.waiters)

    def count(self, number: int, time: int) -> int:
        """Return the tokens of semaphore ``number`` in cycle ``time``, as far as they have not been promised."""
        return sum(token <= time for token in self.tokens[number]) if number < len(self.tokens) else 0

    def residue(self) -> int:
        """Return a mask of the semaphores that are not zero once all is done."""
        return sum(1 << number for number, tokens in enumerate(self.tokens) if tokens)

    def signal(self, number: int, time: int) -> "QueueModel | None":
        """Add a token that can be taken from ``time`` on, and return the queue that waits for it."""
        tokens = self.tokens[number]
        if tokens and tokens[-1] > time:
            ordered = list(tokens)
            insort(ordered, time)
            tokens.clear()
            tokens.extend(ordered)
        else:
            tokens.append(time)
        waiter = self.waiters[number]
        if waiter is not None:
            self.waiters[number] = None
        return waiter


class QueueModel:
    """Models the queue of one unit: the instructions of one body, in order.

    ``issued[k]``, ``taken[k]``, ``granted[k]``, ``done[k]``: cycles in which instruction k was dispatched, accepted by
    the unit, had its semaphores, and signalled, as far as they are known; ``pcs[k]`` which it is.
    """

    __slots__ = ("done", "granted", "issued", "pcs", "program", "run", "semaphores", "taken", "unit")

    def __init__(self, unit: Unit, semaphores: SemaphoreModel, program: ProgramTable, pipe: Pipe) -> None:
        self.unit, self.semaphores, self.program = unit, semaphores, program
        self.run = pipe.run
        self.clear()

    def clear(self) -> None:
        """Empty the queue as a body begins."""
        self.pcs: list[int] = []
        self.issued: list[int] = []
        self.taken: list[int] = []
        self.granted: list[int] = []
        self.done: list[int] = []

    @property
    def idle(self) -> bool:
        """Return whether the end of all that was dispatched is known."""
        return len(self.done) == len(self.pcs)

    @property
    def stuck(self) -> bool:
        """Return whether the head misses a semaphore, and nothing is in flight."""
        return len(self.granted) == len(self.taken) == len(self.done) < len(self.pcs)

    def put_off(self, place: int, end: int) -> None:
        """Look at ``end`` whether instruction ``place`` ends then."""
        raise NotImplementedError

    def grant(self, place: int) -> int:
        """Return when instruction ``place`` is valid at the unit, or -1 if a semaphore is missing."""
        head = self.issued[place] + QUEUED
        if place and self.taken[place - 1] >= head:
            head = self.taken[place - 1] + 1
        needed = self.program.waits[self.pcs[place]]
        if needed:
            tokens = self.semaphores.tokens
            for number in needed:
                if not tokens[number]:
                    self.semaphores.waiters[number] = self
                    return -1
            for number in needed:
                token = tokens[number].popleft()
                if token > head:
                    head = token
            head += 1
        self.granted.append(head)
        return head

    def advance(self, work: list["QueueModel"]) -> None:
        """Start what can start; queues that wait for what it signals are added to ``work``."""
        pcs, issued, done, taken, model = self.pcs, self.issued, self.done, self.taken, self.semaphores
        program, tokens = self.program, model.tokens
        place = len(taken)
        while place < len(pcs):
            # As in `grant`, in place: this is where the model spends its time.
            pc = pcs[place]
            head = issued[place] + QUEUED
            if place and taken[-1] >= head:
                head = taken[-1] + 1
            needed = program.waits[pc]
            if needed:
                for number in needed:
                    if not tokens[number]:
                        model.waiters[number] = self
                        return
                for number in needed:
                    token = tokens[number].popleft()
                    if token > head:
                        head = token
                head += 1
            self.granted.append(head)
            if place >= UNIT_IN_FLIGHT and done[-UNIT_IN_FLIGHT] >= head:
                head = done[-UNIT_IN_FLIGHT] + 1
            work_of = program.work[pc]
            begin, end = self.run(head, program.measured(pc) if work_of is None else work_of, pc)
            taken.append(begin)
            if end < 0:
                self.put_off(place, -end)
                done.append(-end)
                place += 1
                continue
            done.append(end)
            for number in program.signals[pc]:
                waiter = model.signal(number, end + 1)
                if waiter is not None:
                    work.append(waiter)
            place += 1


class CopyQueueModel(QueueModel):
    """Models the queue of LD1 or ST1: what may still lose cycles to others at LV2 is told to end when it does."""

    __slots__ = ("_agenda", "_generation", "_late", "_progress", "pipe")

    def __init__(
        self, unit: Unit, semaphores: SemaphoreModel, program: ProgramTable, pipe: ChipPipe, agenda: Agenda,
        progress: Callable[[int, list[QueueModel]], None],
    ) -> None:  # fmt: skip
        self._agenda, self._progress, self.pipe = agenda, progress, pipe
        self._generation = 0
        super().__init__(unit, semaphores, program, pipe)

    def clear(self) -> None:
        super().clear()
        self._generation += 1
        self._late = 0  # instructions whose end was not told

    @property
    def idle(self) -> bool:
        return not self._late and super().idle

    @property
    def stuck(self) -> bool:
        return not self._late and super().stuck

    def put_off(self, place: int, end: int) -> None:
        self._late += 1
        self._agenda.at(end, self._ended, (place, end, self.pipe.number, self._generation))

    def _ended(self, time: int, subject: tuple[int, int, int, int]) -> None:
        place, end, instruction, generation = subject
        if generation != self._generation:
            return
        end += self.pipe.put_back(instruction)
        if end > time:
            self.done[place] = end
            self._agenda.at(end, self._ended, subject)
            return
        self._late -= 1
        work: list[QueueModel] = [self]
        for number in self.program.signals[self.pcs[place]]:
            waiter = self.semaphores.signal(number, time + 1)
            if waiter is not None:
                work.append(waiter)
        self._progress(time, work)


class StoreQueueModel(CopyQueueModel):
    """Models the queue of ST1 of an engine, which tells what it ``writes``; ``locate(pc)`` is the byte of LV2 it begins
    at."""

    __slots__ = ("_engine", "_locate", "_writes")

    def __init__(
        self, unit: Unit, semaphores: SemaphoreModel, program: ProgramTable, pipe: ChipPipe, agenda: Agenda,
        progress: Callable[[int, list[QueueModel]], None], engine: int, writes: Lv2Writes, locate: Callable[[int], int],
    ) -> None:  # fmt: skip
        self._engine, self._writes, self._locate = engine, writes, locate
        super().__init__(unit, semaphores, program, pipe, agenda, progress)

    def clear(self) -> None:
        super().clear()
        self._writes.forget(self._engine)

    def advance(self, work: list[QueueModel]) -> None:
        known = len(self.done)
        super().advance(work)
        for place in range(known, len(self.done)):
            pc = self.pcs[place]
            self._writes.store(self._engine, self.done[place], self._locate(pc), self.program.measured(pc))


_NO_PIPE = MacPipe(1)  #: never run


class BusQueueModel(QueueModel):
    """Models the queue of LD2 or ST2, whose ends are known when they have come.

    ``locate(pc)`` are the ``bases`` of a ``Command``; ``progress`` is called when something has begun or ended.
    """

    __slots__ = ("_at_unit", "_carrier", "_generation", "_locate", "_progress")

    def __init__(
        self, unit: Unit, semaphores: SemaphoreModel, program: ProgramTable, carrier: MemoryUnit,
        locate: Callable[[int], tuple[int, int]], progress: Callable[[int, list[QueueModel]], None],
    ) -> None:  # fmt: skip
        self._carrier, self._locate, self._progress = carrier, locate, progress
        self._generation = 0
        super().__init__(unit, semaphores, program, _NO_PIPE)

    def clear(self) -> None:
        super().clear()
        self._generation += 1
        self._at_unit = False  # an instruction is on offer and was not accepted

    def advance(self, work: list[QueueModel]) -> None:
        place = len(self.taken)
        if self._at_unit or place >= len(self.pcs):
            return
        if len(self.granted) > place:
            head = self.granted[place]
        else:
            head = self.grant(place)
            if head < 0:
                return
        if place >= UNIT_IN_FLIGHT:
            if len(self.done) <= place - UNIT_IN_FLIGHT:
                return
            head = max(head, self.done[place - UNIT_IN_FLIGHT] + 1)
        self._at_unit = True
        pc, generation = self.pcs[place], self._generation
        command = Command(
            self.program.measured(pc),
            self._locate(pc),
            lambda time: self._accepted(time, generation),
            lambda time: self._ended(time, generation),
            pc,
        )
        self._carrier.agenda.at(head, self._offer, (command, generation))

    def _offer(self, time: int, subject: tuple[Command, int]) -> None:
        command, generation = subject
        if generation == self._generation:
            self._carrier.offer(time, command)

    def _accepted(self, time: int, generation: int) -> None:
        if generation == self._generation:
            self._at_unit = False
            self.taken.append(time)
            self._progress(time, [self])

    def _ended(self, time: int, generation: int) -> None:
        if generation != self._generation:
            return
        work: list[QueueModel] = [self]
        for number in self.program.signals[self.pcs[len(self.done)]]:
            waiter = self.semaphores.signal(number, time + 1)
            if waiter is not None:
                work.append(waiter)
        self.done.append(time)
        self._progress(time, work)


def unit_queue(
    unit: Unit, semaphores: SemaphoreModel, program: ProgramTable, engine: int, pipe: Pipe, memory: MemoryModel,
    carriers: Mapping[Unit, MemoryUnit], bases: Callable[[int], tuple[int, int]],
    progress: Callable[[int, list[QueueModel]], None],
) -> QueueModel:  # fmt: skip
    """Return the queue of ``unit`` of an engine, which is ``pipe`` if it stays on the chip; ``bases(pc)`` are a
    ``Command``'s."""
    if unit in carriers:
        return BusQueueModel(unit, semaphores, program, carriers[unit], bases, progress)
    if unit in (Unit.ST1, Unit.LD1):
        assert isinstance(pipe, ChipPipe)
        common = (unit, semaphores, program, pipe, memory.agenda, progress)
        if unit is Unit.ST1:
            return StoreQueueModel(*common, engine, memory.lv2_writes, lambda pc: bases(pc)[1])
        return CopyQueueModel(*common)
    return QueueModel(unit, semaphores, program, pipe)
