"""Walks for the bound on pauses in C: the same numbers as :mod:`sim.timing.worst_walk`, in a tenth of the time."""

import ctypes
from array import array
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from hw.contract.isa import Op
from hw.contract.params import SocParams
from hw.contract.timing import ABANDON, DRAINED, FETCH_AHEAD, GRANT, ISSUE, POINT, TO_HEAD, UNIT_IN_FLIGHT
from sim.c_library import c_library, structure
from sim.timing.backlog import Step
from sim.timing.contention import Rivals, lost
from sim.timing.longest import Work, parameter_words, rivalry
from sim.timing.worst_walk import SIGNALLED_LATE, LongestWork, WaitWindow, fetched_together, same_work

_SEMAPHORES, _UNITS = 32, 7
_NO_UNIT = -1
_UNKNOWN = -1

#: The layouts of ``compiled_walk.c``.
_Machine = structure("_Machine", "depth per_burst in_flight issue to_head grant", "")
_Steps = structure("_Steps", "", "unit waits signals parameters")
_Beside = structure("_Beside", "first fetch debt insn_debt reads_a", "cycles latency")
_Window = structure("_Window", "count queued loaded", "step runs counts space")


class CompiledWalks:
    """Is :class:`sim.timing.worst_walk.WorstWalks` in C. Raises :class:`sim.rtl.toolchain.BuildError` if that cannot be
    compiled."""

    def __init__(self, params: SocParams) -> None:
        self._walk = _library().caesura_walk
        self._work, self._steps = LongestWork(params), _StepColumns(params)
        self._machine = _Machine(
            params.unit_queue_depth + 1, fetched_together(params), UNIT_IN_FLIGHT, ISSUE, TO_HEAD, GRANT
        )
        self._shared: dict[tuple, Work] = {}
        self._durations: dict[Rivals, _Durations] = {}
        self._costs: dict[Rivals, _Costs] = {}
        self._subject: _Subject | None = None

    def __call__(self, window: WaitWindow, rivals: Rivals) -> int:
        """Return the cycles for ``window`` beside ``rivals``."""
        if self._subject is None or self._subject.window is not window:
            self._subject = _Subject(window, self._steps)
        subject, costs = self._subject, self._costs_beside(rivals)
        costs.durations.complete(subject.running, rivals)
        end = self._walk(
            ctypes.byref(self._machine), ctypes.byref(self._steps.columns), ctypes.byref(costs.at_addresses()),
            ctypes.byref(subject.left(costs.durations)),
        )  # fmt: skip
        if end == _UNKNOWN:
            raise ValueError(SIGNALLED_LATE)
        return max(end, costs.retired) + costs.fixed + subject.lost(costs.once)

    def _costs_beside(self, rivals: Rivals) -> "_Costs":
        if rivals not in self._costs:
            alike = same_work(rivals)
            if alike not in self._durations:
                self._durations[alike] = _Durations(self._work, self._steps, self._shared)
            self._costs[rivals] = _Costs(self._work, rivals, self._durations[alike])
        return self._costs[rivals]


class _StepColumns:
    """Holds steps by number: in ``columns`` what C reads of them, in ``accesses`` their words by client of a
    scratchpad."""

    def __init__(self, params: SocParams) -> None:
        self._params = params
        self._numbers: dict[Step, int] = {}
        self._columns = [array("q") for _ in range(4)]
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
        words = parameter_words(step.insn, self._params) if step.insn.op is Op.VEC else 0
        unit = _NO_UNIT if step.unit is None else int(step.unit)
        for column, value in zip(self._columns, (unit, waits, signals, words), strict=True):
            column.append(value)
        self.columns = _Steps(*map(_at, self._columns))
        return number


class _Durations:
    """Holds cycles and latencies of steps by number, :data:`_UNKNOWN` until they are asked for."""

    def __init__(self, work: LongestWork, steps: _StepColumns, shared: dict[tuple, Work]) -> None:
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
            self._steps.accesses[number] = work.accesses
            self._known.add(number)

    def _longest(self, number: int, rivals: Rivals) -> Work:
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
    ``fixed`` cycles at the end; ``once``: clients whose conflicts are added there."""

    def __init__(self, work: LongestWork, rivals: Rivals, durations: _Durations) -> None:
        memory = work.memory(rivals)
        before = memory.job + memory.fetched + FETCH_AHEAD * memory.insn
        self.durations = durations
        self.retired = memory.completion
        self.fixed = memory.few_stores + POINT + DRAINED
        self.once = rivals.once
        self._beside = _Beside(
            memory.latency + memory.job, memory.fetch, memory.debt(before),
            memory.debt(memory.insn), "a" not in rivals.once,
        )  # fmt: skip

    def at_addresses(self) -> ctypes.Structure:
        """Return all of it as C reads it; columns move when they grow."""
        self._beside.cycles, self._beside.latency = _at(self.durations.cycles), _at(self.durations.latency)
        return self._beside


class _Subject:
    """Is a window as C reads it. ``running``: numbers of the steps that run."""

    def __init__(self, window: WaitWindow, steps: _StepColumns) -> None:
        self.window = window
        queued, issued, loads = (steps.numbers(part) for part in (window.queued, window.issued, window.loads))
        executed = [number for number in issued if steps.steps[number].unit is not None]
        self._running = [*(queued[number] for number in window.unfinished), *executed, *loads]
        self.running = set(self._running)
        self._load = loads[-1] if loads else None
        self._accesses = steps.accesses
        self._words: dict[str, int] | None = None
        self._lost: dict[frozenset[str], int] = {}
        counts = [0] * _SEMAPHORES
        for semaphore, count in window.counts:
            counts[semaphore] = count
        step = array("q", queued + issued)
        runs = array("q", [number in window.unfinished for number in range(len(queued))])
        self._kept = step, runs, array("q", counts), _space(len(step) * (_SEMAPHORES + 2 * _UNITS))
        self._left = _Window(len(step), len(queued), 0, *map(_at, self._kept))

    def left(self, durations: _Durations) -> ctypes.Structure:
        """Return what is left to do."""
        if self._load is not None:
            self._left.loaded = durations.cycles[self._load] + durations.latency[self._load] + ABANDON
        return self._left

    def lost(self, once: frozenset[str]) -> int:
        """Return the cycles that conflicts with the clients in ``once`` can cost in all; durations must be known."""
        if once not in self._lost:
            if self._words is None:
                self._words = {}
                for number in self._running:
                    for client, count in self._accesses[number]:
                        self._words[client] = self._words.get(client, 0) + count
            self._lost[once] = lost(self._words, once)
        return self._lost[once]


def _at(numbers: "array[int]") -> int:
    return numbers.buffer_info()[0]


def _space(count: int) -> "array[int]":
    return array("q", bytes(8 * count))


@cache
def _library() -> Any:
    loaded = c_library(Path(__file__).with_suffix(".c"))
    loaded.caesura_walk.argtypes = [ctypes.c_void_p] * 4
    loaded.caesura_walk.restype = ctypes.c_int64
    return loaded
