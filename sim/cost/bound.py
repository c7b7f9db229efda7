"""Bounds the time from a pause to HALTED (the latency of **Cancellation points**), from the program alone.

In-order queues and first-in, first-out semaphores make a max-plus system: what any unit does later makes nothing else
happen earlier. So the time at which every instruction has ended is bounded by a walk through the program in which
each takes its longest (:mod:`sim.cost.units`), however the units interleave in a real run.

A pause that comes just after the executor has passed a point takes effect at the next one: the longest wait. At that
moment a unit may still owe what its queue holds and what it has begun, the last ``unit_queue_depth + 1 + IN_FLIGHT``
of its instructions before the point. All others are over. The walk starts there with nothing of those done, with an
empty instruction buffer, and with a loader that abandons loads of which all bursts are still to come. Every real state
at a pause, also at a later one, is ahead of this one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import pairwise

from hw.contract.isa import Insn, Op, Unit
from hw.contract.params import SocParams
from hw.image import CancelPoint, JobInfo
from sim.cost.backlog import Backlog, Counts, Step, Steps
from sim.cost.dram import WorstDram
from sim.cost.rivals import PORTS, Others, Rivals, rivals_of
from sim.cost.traffic import beside
from sim.cost.units import IN_FLIGHT
from sim.cost.worst_walk import BetweenPoints, WorstWalks

#: Clients of scratchpads whose conflicts with own units are charged once at the end rather than to each word: none,
#: those that seldom take as many words as what they hold up would lose, and all.
_ACCOUNTS: tuple[frozenset[str], ...] = (
    frozenset(),
    frozenset({"lv2_ld1", "lv2_st1"}),
    frozenset({"lv2_ld1", "lv2_st1", "ld0", "st1"}),
    frozenset(client for clients in PORTS for client in clients),
)


@dataclass(frozen=True)
class Bounds:
    """Holds cycles from a pause to HALTED at the worst: ``points`` at each CANCEL of a body for a pause after the one
    before (or after the job's start), and ``end`` at the boundary behind the job."""

    points: list[int]
    end: int


def worst_intervals(program: Sequence[Insn], params: SocParams, others: Others, loading: bool = False) -> Bounds:
    """Return the bounds of one body, with END or without, beside ``others``. With ``loading``, loads of prologues may
    be in the LD2 unit when a pause comes. Raises ValueError if an instruction waits for nothing."""
    return PauseBounds(params, others, WorstWalks(params)).of(program, loading)


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
    pause_bounds = PauseBounds(params, others, WorstWalks(params))
    for number, (job, body) in enumerate(zip(jobs, bodies, strict=True)):
        bounds = pause_bounds.of(body, longest > 0)
        job.worst_cycles = bounds.end
        for point, interval in zip(own.get(number, []), bounds.points, strict=True):
            point.worst_interval = interval


Walks = Callable[[BetweenPoints, Rivals], int]  #: the time from a pause to HALTED: see :class:`WorstWalks`


class PauseBounds:
    """Finds bounds of bodies that run beside ``others``, by ``walks``."""

    def __init__(self, params: SocParams, others: Others, walks: Walks) -> None:
        self._params, self._others, self._walks = params, others, walks
        self._steps = Steps(params)
        self._known: dict[BetweenPoints, int] = {}
        self._bodies: dict[tuple[bool, tuple[Step, ...]], Bounds] = {}

    def of(self, program: Sequence[Insn], loading: bool) -> Bounds:
        """Return what :func:`worst_intervals` returns."""
        steps = tuple(self._steps.of(program))
        if (loading, steps) not in self._bodies:
            self._bodies[loading, steps] = self._of_steps(steps, loading)
        return self._bodies[loading, steps]

    def _of_steps(self, steps: Sequence[Step], loading: bool) -> Bounds:
        cuts = [number for number, step in enumerate(steps) if step.insn.op is Op.CANCEL]
        end = next((number for number, step in enumerate(steps) if step.insn.op is Op.END), len(steps))
        stretches = [*pairwise([0, *cuts, end])]
        backlog = Backlog(steps, self._params)

        def bounds(loading: bool, begun: Mapping[Unit, int]) -> Iterator[int]:
            counts = Counts(steps)
            for start, stop in stretches:
                unfinished = backlog.unfinished(start, begun)
                first = min(unfinished, default=start)
                yield self._bound(
                    BetweenPoints(
                        tuple(steps[first:start]),
                        frozenset(number - first for number in unfinished),
                        tuple(steps[start:stop]),
                        tuple(sorted(counts.at(first).items())),
                        loading,
                    )
                )

        most = [*bounds(False, IN_FLIGHT)]
        if loading:  # loads of bodies and of prologues are never in the LD2 unit at once
            most = [*map(max, most, bounds(True, IN_FLIGHT | {Unit.LD2: 0}))]
        completion = WorstDram(self._params, Rivals(self._others)).completion
        return Bounds(most[:-1], most[-1] + completion)

    def _bound(self, between: BetweenPoints) -> int:
        if between not in self._known:
            insns = [step.insn for step in between.running()]
            rivals = rivals_of([*insns, Insn(Op.LD2)] if between.loading else insns, self._others)
            self._known[between] = _least(partial(self._walks, between), rivals)
        return self._known[between]


def _least(walk: Callable[[Rivals], int], rivals: Rivals) -> int:
    """Return the least of the bounds that the walks with different accounts of the same conflicts prove."""
    fetching, *spans = _accounts(rivals)
    least = min(map(walk, fetching))  # other engines fetch all the time
    counted = 0
    for (span, _), accounts in zip(rivals.others.fetches, spans, strict=True):
        if counted > span:  # and no less for a longer span, in which they fetch no less
            continue
        counted = min(map(walk, accounts))
        if counted <= span:  # so they cannot fetch more before it has passed
            return min(least, counted)
    return least


@lru_cache
def _accounts(rivals: Rivals) -> list[list[Rivals]]:
    """Return ``rivals`` with each account of conflicts, if other engines fetch all the time, and then what they can
    fetch in each of the spans."""
    fetched = [None, *(count for _, count in rivals.others.fetches)]
    return [[replace(rivals, once=once, fetched=count) for once in _ACCOUNTS] for count in fetched]
