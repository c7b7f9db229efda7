"""Bounds on the time from a pause to HALTED (the latency of **Cancellation points**), from the program alone.

In-order queues and first-in, first-out semaphores make a max-plus system: what any unit does later makes nothing else
happen earlier. So the time at which every instruction has ended is bounded by a walk through the program in which
each takes its longest (:mod:`sim.timing.longest`), however the units interleave in a real run.

A pause that comes just after the executor has passed a point takes effect at the next one: the longest wait. At that
moment a unit may still owe what its queue holds and what it has begun, the last ``unit_queue_depth + 1 + IN_FLIGHT``
of its instructions before the point. All others are over. The walk starts there with nothing of those done, with an
empty instruction buffer, and with a loader that abandons loads of which all bursts are still to come. Every real state
at a pause, also at a later one, is ahead of this one.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from hw.contract.image import CancelPoint, JobInfo
from hw.contract.isa import INSN_BYTES, UNIT_OF, Insn, Op, Unit
from hw.contract.params import SocParams
from hw.contract.timing import (
    ABANDON,
    DRAINED,
    FETCH_AHEAD,
    FETCH_BURST_BYTES,
    GRANT,
    ISSUE,
    POINT,
    TO_HEAD,
    UNIT_IN_FLIGHT,
)
from sim.timing import longest
from sim.timing.contention import LV1_PORTS, LV2_PORTS, Others, Rivals, WorstDram, lost, rivals_of
from sim.timing.traffic import beside

_DRAM = (Op.LD2, Op.ST2)
#: Whether conflicts with own units at LV1, and at LV2, are charged to each word rather than once at the end.
_ACCOUNTS = ((True, True), (True, False), (False, False))
_PARAMETER_RIVALS = (Op.LD0, Op.ST1)  #: share the LV1 port from which VEC reads its parameters


@dataclass(frozen=True)
class Bounds:
    """Cycles from a pause to HALTED at the worst: ``points``, at each CANCEL of a body for a pause after the one before
    (or after the job's start), and ``end``, the same for the boundary behind the job."""

    points: list[int]
    end: int


def worst_intervals(program: Sequence[Insn], params: SocParams, others: Others, loading: bool = False) -> Bounds:
    """Bounds of one body, with END or without, beside ``others``. ``loading``: loads of prologues may be in the LD2
    unit when a pause comes. ValueError if an instruction waits for nothing."""
    cuts = [number for number, insn in enumerate(program) if insn.op is Op.CANCEL]
    end = next((number for number, insn in enumerate(program) if insn.op is Op.END), len(program))
    order, stretches = _Order(program, params), [*pairwise([0, *cuts, end])]

    def bounds(loads: Sequence[Insn], begun: Mapping[Unit, int]) -> Iterator[int]:
        counts = _Counts(program)
        for start, stop in stretches:
            window = _Window(program, start, stop, order.owed(start, begun))
            walk = partial(_walk, window, params, dict(counts.at(window.first)), loads)
            yield _least(walk, rivals_of([*window.stretch(), *loads], others))

    most = [*bounds([], longest.IN_FLIGHT)]
    if loading:  # loads of bodies and of prologues are never in the LD2 unit at once
        most = [*map(max, most, bounds([longest.abandoned(params)], longest.IN_FLIGHT | {Unit.LD2: 0}))]
    completion = WorstDram(params, Rivals(others)).completion
    return Bounds(most[:-1], most[-1] + completion)


def _least(walk: Callable[[Rivals], int], rivals: Rivals) -> int:
    """The least of the bounds that the walks with different accounts of the same conflicts prove."""

    def bound(rivals: Rivals) -> int:
        return min(walk(replace(rivals, own_lv1=lv1, own_lv2=lv2)) for lv1, lv2 in _ACCOUNTS)

    least = bound(rivals)  # other engines fetch all the time
    for span, fetched in rivals.others.fetches:
        counted = bound(replace(rivals, fetched=fetched))
        if counted <= span:  # so they cannot fetch more before it has passed
            return min(least, counted)
    return least


def set_bounds(
    jobs: Sequence[JobInfo], points: Sequence[CancelPoint], bodies: Sequence[Sequence[Insn]], params: SocParams,
    longest: int, *, placed: bool = False,
) -> None:  # fmt: skip
    """Fill ``worst_interval`` of points and ``worst_cycles`` of jobs, whose programs are ``bodies``. ``longest``:
    bytes that one load of a prologue brings at most (0: there are no prologues). Other engines are taken to run this
    image or others that store no more and fetch no faster; where jobs are ``placed``, in any order: then they may
    fetch all the time.
    """
    engines: dict[int, list[Sequence[Insn]]] = {}
    for job, body in zip(jobs, bodies, strict=True):
        engines.setdefault(job.engine, []).append(body)
    others = beside(list(engines.values()), params, longest)
    others = replace(others, fetches=()) if placed else others
    own: dict[int, list[CancelPoint]] = {}
    for point in points:
        own.setdefault(point.job, []).append(point)
    for number, (job, body) in enumerate(zip(jobs, bodies, strict=True)):
        bounds = worst_intervals(body, params, others, longest > 0)
        job.worst_cycles = bounds.end
        for point, interval in zip(own.get(number, []), bounds.points, strict=True):
            point.worst_interval = interval


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


def _walk(window: _Window, params: SocParams, counts: dict[int, int], loads: Sequence[Insn], rivals: Rivals) -> int:
    walk = _Walk(params, rivals, counts)
    walk.abandon(loads)
    for number in range(window.first, window.start):
        walk.queued(window.program[number], number in window.owed)
    for number in range(window.start, window.stop):
        walk.issue(window.program[number])
    return walk.drained()


class _Order:
    """What a program says about which instructions have ended, from how many the executor has issued.

    All but the last of a unit that its queue has room for have been given to it. What was given has its semaphores: the
    instructions that signalled them have ended, and so have all before those in their units.
    """

    def __init__(self, program: Sequence[Insn], params: SocParams) -> None:
        self._room = params.unit_queue_depth + 1
        self._numbers: dict[Unit, list[int]] = {unit: [] for unit in Unit}  # of the instructions of a unit
        #: By unit and count of instructions given to it: how many of each unit have ended for that.
        self._ended: dict[Unit, list[dict[Unit, int]]] = {unit: [{}] for unit in Unit}
        makers = _makers(program)
        rank = {}
        for number, insn in enumerate(program):
            if insn.op not in UNIT_OF:
                continue
            unit = UNIT_OF[insn.op]
            rank[number] = len(self._numbers[unit])
            self._numbers[unit].append(number)
            ended = dict(self._ended[unit][-1])
            for maker in makers[number]:
                other = UNIT_OF[program[maker].op]
                ended[other] = max(ended.get(other, 0), rank[maker] + 1)
            self._ended[unit].append(ended)

    def owed(self, start: int, begun: Mapping[Unit, int]) -> set[int]:
        """Instructions before ``start`` that may not have ended when the executor gets there; ``begun``: how many a
        unit may have taken of them."""
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


def _makers(program: Sequence[Insn]) -> list[list[int]]:
    """For each instruction the ones that signal what it waits for. Signals that several units give in an order of their
    own are left out, and so are those that come later."""
    signals: dict[int, list[int]] = {}
    for number, insn in enumerate(program):
        for semaphore in _bits(insn.fields.get("signal", 0)):
            signals.setdefault(semaphore, []).append(number)
    lone = {semaphore for semaphore, numbers in signals.items() if len({program[n].op for n in numbers}) == 1}
    taken: dict[int, int] = {}
    makers: list[list[int]] = []
    for number, insn in enumerate(program):
        makers.append([])
        for semaphore in _bits(insn.fields.get("wait", 0)):
            place = taken.get(semaphore, 0)
            taken[semaphore] = place + 1
            if place >= len(signals.get(semaphore, [])):
                raise ValueError(f"instruction {number} ({insn.op.name}) waits for semaphore {semaphore} in vain")
            if semaphore in lone and signals[semaphore][place] < number:
                makers[-1].append(signals[semaphore][place])
    return makers


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

    def __init__(self, params: SocParams, rivals: Rivals, counts: dict[int, int]) -> None:
        self._params, self._rivals = params, rivals
        self._memory = WorstDram(params, rivals)
        self._free = dict.fromkeys(Unit, 0)  # F of the last instruction
        self._done: dict[Unit, list[int]] = {unit: [] for unit in Unit}
        self._taken: dict[Unit, list[int]] = {unit: [] for unit in Unit}
        self._tokens = {number: deque([0] * count) for number, count in counts.items()}
        self._issued = 0
        self._fetched = 0
        self._debt = dict.fromkeys(Op, 0)  # cycles other traffic of this engine may have taken from a unit
        self._accesses: dict[str, int] = {}
        self._loaded = 0  # when the loader rests
        self._charge(self._memory.job + self._memory.fetched + FETCH_AHEAD * self._memory.insn)

    def abandon(self, loads: Sequence[Insn]) -> None:
        """What is left of loads of prologues when the walk begins; the next load starts in an empty unit."""
        for insn in loads:
            work = self._count(insn)
            self._loaded = self._free[Unit.LD2] = work.cycles + work.latency + ABANDON

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
        burst = min(self._params.axi_burst_beats * self._params.dram_word, FETCH_BURST_BYTES) // INSN_BYTES
        bursts = (self._fetched + burst - 1) // burst
        self._fetched += 1
        here = self._memory.latency + self._memory.job + bursts * self._memory.fetch
        self._issued = max(self._issued + ISSUE, here)
        taken = self._taken[unit]
        depth = self._params.unit_queue_depth + 1
        if len(taken) >= depth:
            self._issued = max(self._issued, taken[-depth] + ISSUE)
        self._charge(self._memory.insn)
        self._run(insn, self._issued)

    def drained(self) -> int:
        """When all units are idle and the executor is at the end."""
        ends = [done[-1] for done in self._done.values() if done]
        conflicts = self._memory.few_stores
        conflicts += 0 if self._rivals.own_lv1 else lost(self._accesses, LV1_PORTS)
        conflicts += 0 if self._rivals.own_lv2 else lost(self._accesses, LV2_PORTS)
        retired = self._memory.completion  # that of the job before
        return max([self._issued, self._loaded, retired, *ends]) + conflicts + POINT + DRAINED

    def _charge(self, cycles: int) -> None:
        """Other traffic of this engine may hold its loads and stores up."""
        for op in _DRAM:
            self._debt[op] += int(cycles * self._memory.slowdown) + 1

    def _count(self, insn: Insn) -> longest.Work:
        work = longest.work(insn, self._params, self._rivals, self._memory)
        for client, words in work.accesses:
            self._accesses[client] = self._accesses.get(client, 0) + words
        return work

    def _run(self, insn: Insn, issued: int) -> None:
        unit = UNIT_OF[insn.op]
        done, taken = self._done[unit], self._taken[unit]
        ready = max(issued + TO_HEAD if issued else 0, self._wait(insn)) + GRANT
        if len(done) >= UNIT_IN_FLIGHT:
            ready = max(ready, done[-UNIT_IN_FLIGHT] + ISSUE)
        work = self._count(insn)
        begins = max(ready, self._free[unit])
        self._free[unit] = begins + work.cycles + self._debt[insn.op]
        self._debt[insn.op] = 0
        if insn.op is Op.VEC and self._rivals.own_lv1:
            for op in _PARAMETER_RIVALS:
                self._debt[op] += longest.parameter_words(insn, self._params)
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
