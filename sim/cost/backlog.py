"""Tells from a program alone which of its instructions have ended when the executor reaches a place."""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hw.contract.isa import UNIT_OF, Insn, Unit
from hw.contract.params import SocParams
from sim.cost.overheads import ISSUE
from sim.cost.shapes import essence


@dataclass(frozen=True, eq=False)
class Step:
    """Holds what matters of an instruction for times: ``insn`` without what its duration does not depend on, the unit
    that runs it (None: the executor does), and its semaphores as numbers."""

    insn: Insn
    unit: Unit | None
    waits: tuple[int, ...]
    signals: tuple[int, ...]


class Steps:
    """Turns programs into steps: instructions that are equal in what matters are one and the same step."""

    def __init__(self, params: SocParams) -> None:
        self._params = params
        self._known: dict[tuple, Step] = {}
        self._seen: dict[int, tuple[Insn, Step]] = {}  # by identity, as programs hold the same instruction many times

    def of(self, program: Iterable[Insn]) -> list[Step]:
        """Return the instructions of a program as steps."""
        return [self._step(insn) for insn in program]

    def _step(self, insn: Insn) -> Step:
        if id(insn) not in self._seen:
            self._seen[id(insn)] = insn, self._of_content(insn)
        return self._seen[id(insn)][1]

    def _of_content(self, insn: Insn) -> Step:
        short = essence(insn, self._params)
        masks = insn.fields.get("wait", 0), insn.fields.get("signal", 0)
        key = (insn.op, *masks, *short.fields.values())
        if key not in self._known:
            self._known[key] = Step(short, UNIT_OF.get(insn.op), *(tuple(_bits(mask)) for mask in masks))
        return self._known[key]


class Backlog:
    """Tells which instructions of a program have ended, from how many the executor has issued.

    All but the last of a unit that its queue has room for have been given to it. What was given has its semaphores: the
    instructions that signalled them have ended, and so have all before those in their units. ValueError if an
    instruction waits for nothing.
    """

    def __init__(self, steps: Sequence[Step], params: SocParams) -> None:
        self._room = params.unit_room
        self._numbers: dict[Unit, list[int]] = {unit: [] for unit in Unit}  # of the instructions of a unit
        #: By unit and count of instructions given to it: how many of each unit have ended for that.
        self._ended: dict[Unit, list[dict[Unit, int]]] = {unit: [{}] for unit in Unit}
        rank = {}
        for number, (step, makers) in enumerate(zip(steps, _makers(steps), strict=True)):
            if step.unit is None:
                continue
            rank[number] = len(self._numbers[step.unit])
            self._numbers[step.unit].append(number)
            ended = dict(self._ended[step.unit][-1])
            for maker in makers:
                other = steps[maker].unit
                assert other is not None  # it signals
                ended[other] = max(ended.get(other, 0), rank[maker] + 1)
            self._ended[step.unit].append(ended)

    def unfinished(self, start: int, begun: Mapping[Unit, int]) -> set[int]:
        """Return the instructions before ``start`` that may not have ended when the executor gets there; a unit may
        have taken ``begun`` of them."""
        issued = {unit: bisect_left(numbers, start) for unit, numbers in self._numbers.items()}
        given = {unit: max(0, count - self._room) for unit, count in issued.items()}
        ended = {unit: max(0, count - begun[unit]) for unit, count in given.items()}
        todo = set(Unit)
        while todo:
            unit = todo.pop()
            for other, count in self._ended[unit][given[unit]].items():
                if count > ended[other]:
                    ended[other] = count
                    if count > given[other]:  # what has ended was given
                        given[other] = count
                        todo.add(other)
        return {number for unit, numbers in self._numbers.items() for number in numbers[ended[unit] : issued[unit]]}


class Synchronised(Protocol):
    """Is an instruction as far as semaphores go: those that it waits for, and those that it signals."""

    @property
    def waits(self) -> Iterable[int]: ...
    @property
    def signals(self) -> Iterable[int]: ...


class Counts:
    """Counts the semaphores of a program once all instructions before a place in it have ended; asked for ascending
    places."""

    def __init__(self, steps: Sequence[Synchronised]) -> None:
        self._steps, self._at = steps, 0
        self._counts: dict[int, int] = {}

    def at(self, place: int) -> dict[int, int]:
        """Return the counts at instruction ``place``."""
        for step in self._steps[self._at : place]:
            for number in step.signals:
                self._counts[number] = self._counts.get(number, 0) + 1
            for number in step.waits:
                self._counts[number] = self._counts.get(number, 0) - 1
        self._at = max(self._at, place)
        return self._counts


def _makers(steps: Sequence[Step]) -> list[list[int]]:
    """Return for each instruction the ones that signal what it waits for. Signals that several units give in an order
    of their own are left out, and so are those that come later."""
    signals: dict[int, list[int]] = {}
    for number, step in enumerate(steps):
        for semaphore in step.signals:
            signals.setdefault(semaphore, []).append(number)
    lone = {semaphore for semaphore, numbers in signals.items() if len({steps[n].insn.op for n in numbers}) == 1}
    taken: dict[int, int] = {}
    makers: list[list[int]] = []
    for number, step in enumerate(steps):
        makers.append([])
        for semaphore in step.waits:
            place = taken.get(semaphore, 0)
            taken[semaphore] = place + 1
            if place >= len(signals.get(semaphore, [])):
                raise ValueError(f"instruction {number} ({step.insn.op.name}) waits for semaphore {semaphore} in vain")
            if semaphore in lone and signals[semaphore][place] < number:
                makers[-1].append(signals[semaphore][place])
    return makers


def _bits(mask: int) -> Iterator[int]:
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


def issued(units: Iterable[Unit], starts: Iterable[int], params: SocParams) -> Iterator[int]:
    """Yield when the executor is past each instruction, of which ``units`` begin at ``starts``. It runs ahead, and
    stops only at a full queue of the unit that it has an instruction for."""
    queues: dict[Unit, deque[int]] = {unit: deque() for unit in Unit}
    now = 0
    for unit, start in zip(units, starts, strict=True):
        now += ISSUE.typical
        if len(queues[unit]) == params.unit_queue_depth:
            now = max(now, queues[unit].popleft())
        queues[unit].append(start)
        yield min(now, start)
