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

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from hw.contract.image import CancelPoint, JobInfo
from hw.contract.isa import INSN_BYTES, Insn, Op, Unit
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
from sim.timing.backlog import Backlog, Counts, Step, Steps
from sim.timing.contention import LV1_PORTS, LV2_PORTS, Others, Rivals, WorstDram, lost, rivals_of
from sim.timing.traffic import beside
from sim.timing.walk import Walk

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
    return _PauseBounds(params, others).of(program, loading)


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
    pause_bounds = _PauseBounds(params, others)
    for number, (job, body) in enumerate(zip(jobs, bodies, strict=True)):
        bounds = pause_bounds.of(body, longest > 0)
        job.worst_cycles = bounds.end
        for point, interval in zip(own.get(number, []), bounds.points, strict=True):
            point.worst_interval = interval


@dataclass(frozen=True)
class _Window:
    """What is looked at for a pause between two points: steps issued before it, of which ``unfinished`` (numbers) run,
    steps issued then, ``counts`` of the semaphores before all of them, and ``loads`` of prologues. Equal windows, of
    whatever bodies, have equal bounds."""

    queued: tuple[Step, ...]
    unfinished: frozenset[int]
    issued: tuple[Step, ...]
    counts: tuple[tuple[int, int], ...]
    loads: tuple[Step, ...]

    def running(self) -> list[Step]:
        """Steps that run."""
        return [*(self.queued[number] for number in sorted(self.unfinished)), *self.issued, *self.loads]


class _PauseBounds:
    """Bounds of bodies that run beside ``others``."""

    def __init__(self, params: SocParams, others: Others) -> None:
        self._params, self._others = params, others
        self._steps, self._work = Steps(params), _LongestWork(params)
        self._known: dict[_Window, int] = {}

    def of(self, program: Sequence[Insn], loading: bool) -> Bounds:
        """See :func:`worst_intervals`."""
        cuts = [number for number, insn in enumerate(program) if insn.op is Op.CANCEL]
        end = next((number for number, insn in enumerate(program) if insn.op is Op.END), len(program))
        steps, stretches = self._steps.of(program), [*pairwise([0, *cuts, end])]
        backlog = Backlog(steps, self._params)

        def bounds(loads: Sequence[Step], begun: Mapping[Unit, int]) -> Iterator[int]:
            counts = Counts(steps)
            for start, stop in stretches:
                unfinished = backlog.unfinished(start, begun)
                first = min(unfinished, default=start)
                yield self._bound(
                    _Window(
                        tuple(steps[first:start]),
                        frozenset(number - first for number in unfinished),
                        tuple(steps[start:stop]),
                        tuple(sorted(counts.at(first).items())),
                        tuple(loads),
                    )
                )

        most = [*bounds([], longest.IN_FLIGHT)]
        if loading:  # loads of bodies and of prologues are never in the LD2 unit at once
            loads = self._steps.of([longest.abandoned(self._params)])
            most = [*map(max, most, bounds(loads, longest.IN_FLIGHT | {Unit.LD2: 0}))]
        completion = WorstDram(self._params, Rivals(self._others)).completion
        return Bounds(most[:-1], most[-1] + completion)

    def _bound(self, window: _Window) -> int:
        if window not in self._known:
            rivals = rivals_of([step.insn for step in window.running()], self._others)
            self._known[window] = _least(partial(_walk, window, self._work), rivals)
        return self._known[window]


def _least(walk: Callable[[Rivals], int], rivals: Rivals) -> int:
    """The least of the bounds that the walks with different accounts of the same conflicts prove."""

    def bound(rivals: Rivals) -> int:
        return min(walk(replace(rivals, own_lv1=lv1, own_lv2=lv2)) for lv1, lv2 in _ACCOUNTS)

    least = bound(rivals)  # other engines fetch all the time
    counted = 0
    for span, fetched in rivals.others.fetches:
        if counted > span:  # and no less for a longer span, in which they fetch no less
            continue
        counted = bound(replace(rivals, fetched=fetched))
        if counted <= span:  # so they cannot fetch more before it has passed
            return min(least, counted)
    return least


class _LongestWork:
    """The longest durations of steps by rivals, each computed once."""

    def __init__(self, params: SocParams) -> None:
        self.params = params
        self._known: dict[Rivals, tuple[WorstDram, dict[Step, longest.Work]]] = {}

    def beside(self, rivals: Rivals) -> tuple[WorstDram, dict[Step, longest.Work]]:
        """DRAM at the worst, and what is known already."""
        if rivals not in self._known:
            self._known[rivals] = WorstDram(self.params, rivals), {}
        return self._known[rivals]


def _walk(window: _Window, work: _LongestWork, rivals: Rivals) -> int:
    walk = _WorstWalk(work, rivals, dict(window.counts))
    walk.abandon(window.loads)
    for number, step in enumerate(window.queued):
        walk.queued(step, number in window.unfinished)
    for step in window.issued:
        walk.issue(step)
    return walk.drained()


class _WorstWalk:
    """Times at which instructions have ended at the latest, in cycles since the pause."""

    def __init__(self, work: _LongestWork, rivals: Rivals, counts: dict[int, int]) -> None:
        self._params, self._rivals = work.params, rivals
        self._memory, self._works = work.beside(rivals)
        self._walk = Walk[int](counts)
        self._done: dict[Unit, list[int]] = {unit: [] for unit in Unit}
        self._taken: dict[Unit, list[int]] = {unit: [] for unit in Unit}
        self._issued = 0
        self._fetched = 0
        self._debt = dict.fromkeys(Op, 0)  # cycles other traffic of this engine may have taken from a unit
        self._accesses: dict[str, int] = {}
        self._loaded = 0  # when the loader rests
        self._charge(self._memory.job + self._memory.fetched + FETCH_AHEAD * self._memory.insn)

    def abandon(self, loads: Sequence[Step]) -> None:
        """What is left of loads of prologues when the walk begins; the next load starts in an empty unit."""
        for load in loads:
            work = self._count(load)
            self._loaded = self._walk.free[Unit.LD2] = work.cycles + work.latency + ABANDON

    def queued(self, step: Step, unfinished: bool) -> None:
        """An instruction that was issued before the walk begins, and ended before it unless ``unfinished``."""
        if step.unit is None:
            return
        if unfinished:
            self._run(step, step.unit, 0)
        else:
            self._walk.signal(step.signals, 0)
            self._walk.take(step.waits)

    def issue(self, step: Step) -> None:
        """The next instruction of the executor."""
        if step.unit is None:  # a CANCEL
            return
        burst = min(self._params.axi_burst_beats * self._params.dram_word, FETCH_BURST_BYTES) // INSN_BYTES
        bursts = (self._fetched + burst - 1) // burst
        self._fetched += 1
        here = self._memory.latency + self._memory.job + bursts * self._memory.fetch
        self._issued = max(self._issued + ISSUE, here)
        taken = self._taken[step.unit]
        depth = self._params.unit_queue_depth + 1
        if len(taken) >= depth:
            self._issued = max(self._issued, taken[-depth] + ISSUE)
        self._charge(self._memory.insn)
        self._run(step, step.unit, self._issued)

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

    def _count(self, step: Step) -> longest.Work:
        work = self._works.get(step)
        if work is None:
            work = self._works[step] = longest.work(step.insn, self._params, self._rivals, self._memory)
        for client, words in work.accesses:
            self._accesses[client] = self._accesses.get(client, 0) + words
        return work

    def _run(self, step: Step, unit: Unit, issued: int) -> None:
        op, done = step.insn.op, self._done[unit]
        ready = max(issued + TO_HEAD if issued else 0, self._walk.take(step.waits)) + GRANT
        if len(done) >= UNIT_IN_FLIGHT:
            ready = max(ready, done[-UNIT_IN_FLIGHT] + ISSUE)
        work = self._count(step)
        begins = max(ready, self._walk.free[unit])
        free = self._walk.occupy(unit, ready, work.cycles + self._debt[op])
        self._debt[op] = 0
        if op is Op.VEC and self._rivals.own_lv1:
            for rival in _PARAMETER_RIVALS:
                self._debt[rival] += longest.parameter_words(step.insn, self._params)
        self._taken[unit].append(begins + work.latency)
        done.append(free + work.latency)
        self._walk.signal(step.signals, done[-1])
