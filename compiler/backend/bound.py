"""Bounds on the time from a pause to HALTED (the latency of **Cancellation points**), from the program alone.

In-order queues and first-in, first-out semaphores make a max-plus system: what any unit does later makes nothing else
happen earlier. So the time at which every instruction has ended is bounded by a walk through the program in which
each takes its longest (:mod:`sim.model.worst`), however the units interleave in a real run.

A pause that comes just after the executor has passed a point takes effect at the next one: the longest wait. At that
moment a unit may still owe what its queue holds and what it has begun, the last ``unit_queue_depth + 1 + IN_FLIGHT``
of its instructions before the point. All others are over. The walk starts there with nothing of those done, with an
empty instruction buffer, and with a loader that has as many loads in the LD2 unit as it can hold. Every real state at
a pause, also at a later one, is ahead of this one.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from hw.isa import UNIT_OF, Insn, Op, Unit
from hw.params import SocParams
from sim.model import worst

_DRAM = (Op.LD2, Op.ST2)
_PARAMETER_RIVALS = (Op.LD0, Op.ST1)  #: share the LV1 port from which VEC reads its parameters


@dataclass(frozen=True)
class Bounds:
    """Cycles from a pause to HALTED at the worst: ``points``, at each CANCEL of a body for a pause after the one before
    (or after the job's start), and ``end``, the same for the boundary behind the job."""

    points: list[int]
    end: int


def worst_intervals(program: Sequence[Insn], params: SocParams, engines: int = 1, loads: Sequence[Insn] = ()) -> Bounds:
    """Bounds of one body, with END or without. ``engines`` may work at the same time; ``loads``: the longest loads of
    prologues that may be in the LD2 unit when a pause comes (as many as it holds)."""
    cuts = [number for number, insn in enumerate(program) if insn.op is Op.CANCEL]
    end = next((number for number, insn in enumerate(program) if insn.op is Op.END), len(program))
    bounds, counts = [], _Counts(program)
    for start, stop in pairwise([0, *cuts, end]):
        window = _Window(program, start, stop, _owed(program, start, params))
        before = dict(counts.at(window.first))
        rivals = worst.rivals_of([*window.stretch(), *loads], engines)
        bounds.append(
            min(_walk(window, params, choice, before, loads) for choice in (rivals, replace(rivals, own=False)))
        )
    return Bounds(bounds[:-1], bounds[-1] + worst.RETIRED)


@dataclass(frozen=True)
class _Window:
    """What is looked at for a pause between two points: ``owed`` and all from ``start`` to ``stop``."""

    program: Sequence[Insn]
    start: int
    stop: int
    owed: set[int]

    @property
    def first(self) -> int:
        return min(self.owed, default=self.start)

    def stretch(self) -> Iterator[Insn]:
        """Instructions that run."""
        yield from (self.program[number] for number in sorted(self.owed))
        yield from self.program[self.start : self.stop]


def _walk(
    window: _Window, params: SocParams, rivals: worst.Rivals, counts: dict[int, int], loads: Sequence[Insn]
) -> int:
    walk = _Walk(params, rivals, counts)
    walk.load(loads)
    for number in range(window.first, window.start):
        walk.queued(window.program[number], number in window.owed)
    for number in range(window.start, window.stop):
        walk.issue(window.program[number])
    return walk.drained()


def _owed(program: Sequence[Insn], start: int, params: SocParams) -> set[int]:
    """The instructions before ``start`` that may not be over when the executor gets there: the last of each unit."""
    most = params.unit_queue_depth + 1 + worst.IN_FLIGHT
    left = dict.fromkeys(Unit, most)
    owed = set[int]()
    for number in range(start - 1, -1, -1):
        insn = program[number]
        if insn.op in UNIT_OF and left[UNIT_OF[insn.op]]:
            left[UNIT_OF[insn.op]] -= 1
            owed.add(number)
            if not any(left.values()):
                break
    return owed


class _Counts:
    """Semaphores of a program once all instructions before a place in it have ended; asked for ascending places."""

    def __init__(self, program: Sequence[Insn]) -> None:
        self._program, self._at = program, 0
        self._counts: dict[int, int] = {}

    def at(self, place: int) -> dict[int, int]:
        for insn in self._program[self._at : place]:
            for number in _bits(insn.fields.get("signal", 0)):
                self._counts[number] = self._counts.get(number, 0) + 1
            for number in _bits(insn.fields.get("wait", 0)):
                self._counts[number] = self._counts.get(number, 0) - 1
        self._at = max(self._at, place)
        return self._counts


def _bits(mask: int) -> Iterator[int]:
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


class _Walk:
    """Times at which instructions have ended at the latest, in cycles since the pause."""

    def __init__(self, params: SocParams, rivals: worst.Rivals, counts: dict[int, int]) -> None:
        self._params, self._rivals = params, rivals
        self._memory = worst.Memory(params, rivals)
        self._free = dict.fromkeys(Unit, 0)  # F of the last instruction
        self._done: dict[Unit, list[int]] = {unit: [] for unit in Unit}
        self._taken: dict[Unit, list[int]] = {unit: [] for unit in Unit}
        self._tokens = {number: deque([0] * count) for number, count in counts.items()}
        self._issued = 0
        self._fetched = 0
        self._debt = dict.fromkeys(Op, 0)  # cycles other traffic of this engine may have taken from a unit
        self._accesses: dict[str, int] = {}
        self._charge_fetch(worst.FETCH_AHEAD)

    def load(self, loads: Sequence[Insn]) -> None:
        """Loads of prologues that hold the LD2 unit when the walk begins."""
        for insn in loads:
            self._free[Unit.LD2] += self._count(insn).cycles

    def queued(self, insn: Insn, owed: bool) -> None:
        """An instruction that was issued before the walk begins, and ended before it unless ``owed``."""
        if owed:
            self._run(insn, 0)
        else:
            self._signal(insn, 0)
            self._wait(insn)

    def issue(self, insn: Insn) -> None:
        """The next instruction of the executor."""
        if insn.op not in UNIT_OF:  # a CANCEL
            return
        unit = UNIT_OF[insn.op]
        burst = max(1, worst.FETCH_BYTES // 64)
        group = (self._fetched + burst - 1) // burst
        self._fetched += 1
        here = self._memory.latency + int(group * burst * self._memory.insn * self._memory.slowdown)
        self._issued = max(self._issued + worst.ISSUE, here)
        taken = self._taken[unit]
        depth = self._params.unit_queue_depth + 1
        if len(taken) >= depth:
            self._issued = max(self._issued, taken[-depth] + worst.ISSUE)
        self._charge_fetch(1)
        self._run(insn, self._issued)

    def drained(self) -> int:
        """When all units are idle and the executor is at the end."""
        ends = [done[-1] for done in self._done.values() if done]
        lost = 0 if self._rivals.own else worst.lost(self._accesses)
        return max([self._issued, *ends]) + lost + worst.POINT + worst.DRAINED

    def _charge_fetch(self, insns: int) -> None:
        for op in _DRAM:
            self._debt[op] += int(insns * self._memory.insn * self._memory.slowdown)

    def _count(self, insn: Insn) -> worst.Work:
        work = worst.work(insn, self._params, self._rivals, self._memory)
        for client, words in work.accesses:
            self._accesses[client] = self._accesses.get(client, 0) + words
        return work

    def _run(self, insn: Insn, issued: int) -> None:
        unit = UNIT_OF[insn.op]
        done, taken = self._done[unit], self._taken[unit]
        ready = max(issued + worst.TO_HEAD if issued else 0, self._wait(insn)) + worst.GRANT
        if len(done) >= worst.IN_FLIGHT:
            ready = max(ready, done[-worst.IN_FLIGHT] + worst.ISSUE)
        work = self._count(insn)
        begins = max(ready, self._free[unit])
        self._free[unit] = begins + work.cycles + self._debt[insn.op]
        self._debt[insn.op] = 0
        if insn.op is Op.VEC and self._rivals.own:
            for op in _PARAMETER_RIVALS:
                self._debt[op] += worst.parameter_words(insn, self._params)
        taken.append(begins + work.latency)
        done.append(self._free[unit] + work.latency)
        self._signal(insn, done[-1])

    def _wait(self, insn: Insn) -> int:
        """When its semaphores are there; takes them."""
        latest = 0
        for number in _bits(insn.fields.get("wait", 0)):
            latest = max(latest, self._tokens[number].popleft())
        return latest

    def _signal(self, insn: Insn, time: int) -> None:
        for number in _bits(insn.fields.get("signal", 0)):
            self._tokens.setdefault(number, deque()).append(time)
