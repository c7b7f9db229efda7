"""Walks for the bound on pauses (:mod:`sim.cost.bound`) through what a pause leaves to do, in C.

``worst_walk.c`` says how; ``tests/support/cost_oracle.py`` has the same in Python.
"""

import ctypes
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from hw.contract.isa import Op
from hw.contract.params import SocParams
from hw.contract.timing import FETCH_AHEAD, UNIT_IN_FLIGHT
from sim.c_library import structure
from sim.cost.backlog import Step
from sim.cost.c_walks import address, c_walk, integers
from sim.cost.dram import WorstDram, fetched_together
from sim.cost.overheads import ABANDON, DRAINED, GRANT, ISSUE, POINT, QUEUE
from sim.cost.rivals import PORTS, Rivals, all_counted, lost
from sim.cost.units import UnitTime, rivalry, worst_time

_SIGNALLED_LATE = "an instruction waits for a semaphore that only an instruction behind it signals"
_SEMAPHORES, _UNITS, _CHAINS = 32, 7, 4
_CLIENTS = {client: number for number, client in enumerate(client for clients in PORTS for client in clients)}
_BY_DRAM = frozenset({"lv2_ld2", "lv2_st2"})
_ON_CHIP = frozenset(_CLIENTS) - _BY_DRAM
_NO_UNIT = -1
_UNKNOWN = -1

#: The layouts of ``worst_walk.c``.
_Machine = structure("_Machine", "depth per_burst in_flight issue to_head grant", "")
_Steps = structure("_Steps", "", "unit waits signals words")
_Beside = structure(
    "_Beside", "first late fetch debt insn_debt lost_on_chip lost_by_dram lost spared", "cycles latency"
)
_Between = structure("_Between", "count queued loaded", "step runs counts space")


@dataclass(frozen=True)
class BetweenPoints:
    """Holds what is looked at for a pause between two points: steps issued before it, of which ``unfinished`` (numbers)
    run, steps issued then, ``counts`` of the semaphores before all of them, and whether a prologue is ``loading`` when
    the pause comes. Equal ones, of whatever bodies, have equal bounds."""

    queued: tuple[Step, ...]
    unfinished: frozenset[int]
    issued: tuple[Step, ...]
    counts: tuple[tuple[int, int], ...]
    loading: bool

    def running(self) -> list[Step]:
        """Return the steps that run."""
        return [*(self.queued[number] for number in sorted(self.unfinished)), *self.issued]


class _LongestWork:
    """Computes DRAM at the worst by rivals, once for each, and the longest durations of steps."""

    def __init__(self, params: SocParams) -> None:
        self.params = params
        self._memory: dict[Rivals, WorstDram] = {}

    def memory(self, rivals: Rivals) -> WorstDram:
        """Return what DRAM costs beside ``rivals``."""
        if rivals not in self._memory:
            self._memory[rivals] = WorstDram(self.params, rivals)
        return self._memory[rivals]

    def of(self, step: Step, rivals: Rivals) -> UnitTime:
        """Return the longest that ``step`` takes beside ``rivals``."""
        return worst_time(step.insn, self.params, rivals, self.memory(rivals))


def _same_work(rivals: Rivals) -> Rivals:
    """Return rivals beside whom every instruction takes as long as beside ``rivals``: it matters whether other engines
    fetch a known number of instructions, not which."""
    return replace(rivals, fetched=0) if rivals.fetched else rivals


class WorstWalks:
    """Finds the time from a pause to HALTED at the worst, without the completion of the job itself, from what is left
    to do and the rivals. Raises :class:`sim.toolchain.compilers.BuildError` if the C of it cannot be compiled."""

    def __init__(self, params: SocParams) -> None:
        self._walk = c_walk("walk")
        self._work, self._steps = _LongestWork(params), _StepColumns()
        self._machine = _Machine(
            params.unit_room, fetched_together(params), UNIT_IN_FLIGHT, ISSUE.worst, QUEUE.worst, GRANT.worst
        )
        self._shared: dict[tuple, UnitTime] = {}
        self._durations: dict[Rivals, _Durations] = {}
        self._costs: dict[Rivals, _Costs] = {}
        self._subject: _Subject | None = None

    def __call__(self, between: BetweenPoints, rivals: Rivals) -> int:
        """Return the cycles for ``between`` beside ``rivals``."""
        if self._subject is None or self._subject.between is not between:
            self._subject = _Subject(between, self._steps)
        subject, costs = self._subject, self._costs_beside(rivals)
        costs.durations.complete(subject.running, rivals)
        end = self._walk(
            ctypes.byref(self._machine), ctypes.byref(self._steps.columns),
            ctypes.byref(costs.beside(subject.lost(rivals.in_all))), ctypes.byref(subject.left(costs.abandoned)),
        )  # fmt: skip
        if end == _UNKNOWN:
            raise ValueError(_SIGNALLED_LATE)
        return max(end, costs.retired) + costs.fixed

    def _costs_beside(self, rivals: Rivals) -> "_Costs":
        if rivals not in self._costs:
            alike = _same_work(rivals)
            if alike not in self._durations:
                self._durations[alike] = _Durations(self._work, self._steps, self._shared)
            self._costs[rivals] = _Costs(self._work, rivals, self._durations[alike])
        return self._costs[rivals]


class _StepColumns:
    """Holds steps by number: in ``columns`` what C reads of them, in ``accesses`` their words by client of a
    scratchpad."""

    def __init__(self) -> None:
        self._numbers: dict[Step, int] = {}
        self._columns = [array("q") for _ in range(3)]
        self._words = array("q")
        self.columns = _Steps()
        self.steps: list[Step] = []
        self.accesses: dict[int, tuple[tuple[str, int], ...]] = {}

    def numbers(self, steps: Iterable[Step]) -> list[int]:
        """Return the numbers of ``steps``, of which some may be new."""
        known = self._numbers
        return [known[step] if step in known else self._add(step) for step in steps]

    def _add(self, step: Step) -> int:
        number = self._numbers[step] = len(self.steps)
        self.steps.append(step)
        waits, signals = (sum(1 << semaphore for semaphore in mask) for mask in (step.waits, step.signals))
        unit = _NO_UNIT if step.unit is None else int(step.unit)
        for column, value in zip(self._columns, (unit, waits, signals), strict=True):
            column.append(value)
        self._words.extend([0] * len(_CLIENTS))
        self.columns = _Steps(*map(address, [*self._columns, self._words]))
        return number

    def enter(self, number: int, accesses: tuple[tuple[str, int], ...]) -> None:
        """Enter the words of a step by client."""
        self.accesses[number] = accesses
        for client, words in accesses:
            if client in _CLIENTS:
                self._words[len(_CLIENTS) * number + _CLIENTS[client]] = words


class _Durations:
    """Holds cycles and latencies of steps by number, :data:`_UNKNOWN` until they are asked for."""

    def __init__(self, work: _LongestWork, steps: _StepColumns, shared: dict[tuple, UnitTime]) -> None:
        self._work, self._steps = work, steps
        self._shared = shared  # works by step, and by what they depend on
        self._rivalry: dict[Op, tuple[int, ...] | None] = {}
        self._known: set[int] = set()
        self.cycles, self.latency = array("q"), array("q")

    def complete(self, numbers: set[int], rivals: Rivals) -> None:
        """Work out the durations of the steps ``numbers``."""
        for number in numbers - self._known:
            work = self._longest(number, rivals)
            for column, value in ((self.cycles, work.cycles), (self.latency, work.latency)):
                column.extend([_UNKNOWN] * (number + 1 - len(column)))
                column[number] = value
            self._steps.enter(number, work.accesses)
            self._known.add(number)

    def _longest(self, number: int, rivals: Rivals) -> UnitTime:
        step = self._steps.steps[number]
        op = step.insn.op
        if op not in self._rivalry:
            self._rivalry[op] = rivalry(op, rivals)
        alike = self._rivalry[op]
        if alike is None:
            return self._work.of(step, rivals)
        key = number, alike
        if key not in self._shared:
            self._shared[key] = self._work.of(step, rivals)
        return self._shared[key]


class _Costs:
    """Holds what rivals cost beside the ``durations`` of steps: ``retired``, when the job before is written down;
    ``fixed`` cycles at the end; ``abandoned``: when loads of a prologue have gone."""

    def __init__(self, work: _LongestWork, rivals: Rivals, durations: _Durations) -> None:
        memory = work.memory(rivals)
        before = memory.job + memory.fetched + FETCH_AHEAD * memory.insn
        self.durations = durations
        self.retired = memory.completion
        self.fixed = memory.few_stores + POINT + DRAINED
        self.abandoned = memory.abandoned + ABANDON
        self._beside = _Beside(
            memory.latency, memory.latency + memory.job, memory.fetch, memory.debt(before), memory.debt(memory.insn)
        )

    def beside(self, lost: "_Lost") -> ctypes.Structure:
        """Return all of it as C reads it; columns move when they grow."""
        beside = self._beside
        beside.lost_on_chip, beside.lost_by_dram, beside.lost, beside.spared = lost
        self._beside.cycles, self._beside.latency = address(self.durations.cycles), address(self.durations.latency)
        return self._beside


class _Lost(NamedTuple):
    """Holds the cycles that conflicts can cost a chain without loads and stores of DRAM, one of these alone, and any;
    and the clients, a bit each, all of whose words are counted in it."""

    on_chip: int
    by_dram: int
    any: int
    spared: int


class _Subject:
    """Is the time between two points as C reads it. ``running``: numbers of the steps that run."""

    def __init__(self, between: BetweenPoints, steps: _StepColumns) -> None:
        self.between = between
        queued, issued = (steps.numbers(part) for part in (between.queued, between.issued))
        executed = [number for number in issued if steps.steps[number].unit is not None]
        self._running = [*(queued[number] for number in between.unfinished), *executed]
        self.running = set(self._running)
        self._accesses = steps.accesses
        self._words: dict[str, int] | None = None
        self._lost: dict[frozenset[str], _Lost] = {}
        counts = [0] * _SEMAPHORES
        for semaphore, count in between.counts:
            counts[semaphore] = count
        step = array("q", queued + issued)
        runs = array("q", [number in between.unfinished for number in range(len(queued))])
        self._kept = step, runs, array("q", counts), integers(len(step) * (_SEMAPHORES + 2 * _UNITS) * _CHAINS)
        self._left = _Between(len(step), len(queued), 0, *map(address, self._kept))

    def left(self, abandoned: int) -> ctypes.Structure:
        """Return what is left to do; ``abandoned``: when loads of a prologue have gone, if there are any."""
        self._left.loaded = abandoned if self.between.loading else 0
        return self._left

    def lost(self, once: frozenset[str]) -> _Lost:
        """Return what conflicts with the clients in ``once`` can cost; durations must be known."""
        if once not in self._lost:
            if self._words is None:
                self._words = {}
                for number in self._running:
                    for client, count in self._accesses[number]:
                        self._words[client] = self._words.get(client, 0) + count
            words = self._words
            spared = sum(1 << _CLIENTS[client] for client in all_counted(words, once, _ON_CHIP))
            self._lost[once] = _Lost(
                lost(words, once, _ON_CHIP), lost(words, once, _BY_DRAM), lost(words, once), spared
            )
        return self._lost[once]
