"""Walks for the bound on pauses (:mod:`sim.timing.bound`) through what a pause leaves to do, in Python.

It is the reference of the same in C (:mod:`sim.timing.compiled_walk`), and stands in for it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hw.contract.isa import INSN_BYTES, Op, Unit
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
from sim.timing.backlog import Step
from sim.timing.contention import Rivals, WorstDram, lost
from sim.timing.walk import Walk

_DRAM = (Op.LD2, Op.ST2)
_PARAMETER_RIVALS = (Op.LD0, Op.ST1)  #: share the LV1 port from which VEC reads its parameters
SIGNALLED_LATE = "an instruction waits for a semaphore that only an instruction behind it signals"


@dataclass(frozen=True)
class WaitWindow:
    """Holds what is looked at for a pause between two points: steps issued before it, of which ``unfinished`` (numbers)
    run, steps issued then, ``counts`` of the semaphores before all of them, and ``loads`` of prologues. Equal windows,
    of whatever bodies, have equal bounds."""

    queued: tuple[Step, ...]
    unfinished: frozenset[int]
    issued: tuple[Step, ...]
    counts: tuple[tuple[int, int], ...]
    loads: tuple[Step, ...]

    def running(self) -> list[Step]:
        """Return the steps that run."""
        return [*(self.queued[number] for number in sorted(self.unfinished)), *self.issued, *self.loads]


class LongestWork:
    """Computes DRAM at the worst, and the longest durations of steps, by rivals; each once."""

    def __init__(self, params: SocParams) -> None:
        self.params = params
        self._memory: dict[Rivals, WorstDram] = {}
        self._known: dict[Rivals, dict[Step, longest.Work]] = {}

    def memory(self, rivals: Rivals) -> WorstDram:
        """Return what DRAM costs beside ``rivals``."""
        if rivals not in self._memory:
            self._memory[rivals] = WorstDram(self.params, rivals)
        return self._memory[rivals]

    def works(self, rivals: Rivals) -> dict[Step, longest.Work]:
        """Return what is known of durations beside ``rivals``."""
        return self._known.setdefault(same_work(rivals), {})

    def of(self, step: Step, rivals: Rivals) -> longest.Work:
        """Return the longest that ``step`` takes beside ``rivals``."""
        return longest.work(step.insn, self.params, rivals, self.memory(rivals))


def same_work(rivals: Rivals) -> Rivals:
    """Return rivals beside whom every instruction takes as long as beside ``rivals``: it matters whether other engines
    fetch a known number of instructions, not which."""
    return replace(rivals, fetched=0) if rivals.fetched else rivals


def fetched_together(params: SocParams) -> int:
    """Return how many instructions a burst of the executor's fetch brings."""
    return min(params.axi_burst_beats * params.dram_word, FETCH_BURST_BYTES) // INSN_BYTES


class WorstWalks:
    """Finds the time from a pause to HALTED at the worst, without the completion of the job itself, from what is left
    to do and the rivals."""

    def __init__(self, params: SocParams) -> None:
        self._work = LongestWork(params)

    def __call__(self, window: WaitWindow, rivals: Rivals) -> int:
        """Return the cycles for ``window`` beside ``rivals``."""
        walk = _WorstWalk(self._work, rivals, dict(window.counts))
        walk.abandon(window.loads)
        for number, step in enumerate(window.queued):
            walk.queued(step, number in window.unfinished)
        for step in window.issued:
            walk.issue(step)
        return walk.drained()


class _WorstWalk:
    """Holds the times at which instructions have ended at the latest, in cycles since the pause."""

    def __init__(self, work: LongestWork, rivals: Rivals, counts: dict[int, int]) -> None:
        self._params, self._rivals, self._work = work.params, rivals, work
        self._memory, self._works = work.memory(rivals), work.works(rivals)
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
        """Begin the walk with what is left of loads of prologues; the next load starts in an empty unit."""
        for load in loads:
            work = self._count(load)
            self._loaded = self._walk.free[Unit.LD2] = work.cycles + work.latency + ABANDON

    def queued(self, step: Step, unfinished: bool) -> None:
        """Take an instruction that was issued before the walk begins, and ended before it unless ``unfinished``."""
        if step.unit is None:
            return
        if unfinished:
            self._run(step, step.unit, 0)
        else:
            self._walk.signal(step.signals, 0)
            self._take(step.waits)

    def issue(self, step: Step) -> None:
        """Take the next instruction of the executor."""
        if step.unit is None:  # a CANCEL
            return
        burst = fetched_together(self._params)
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
        """Return when all units are idle and the executor is at the end."""
        ends = [done[-1] for done in self._done.values() if done]
        conflicts = self._memory.few_stores + lost(self._accesses, self._rivals.once)
        retired = self._memory.completion  # that of the job before
        return max([self._issued, self._loaded, retired, *ends]) + conflicts + POINT + DRAINED

    def _charge(self, cycles: int) -> None:
        """Add other traffic of this engine, which may hold its loads and stores up."""
        for op in _DRAM:
            self._debt[op] += self._memory.debt(cycles)

    def _count(self, step: Step) -> longest.Work:
        work = self._works.get(step)
        if work is None:
            work = self._works[step] = self._work.of(step, self._rivals)
        for client, words in work.accesses:
            self._accesses[client] = self._accesses.get(client, 0) + words
        return work

    def _run(self, step: Step, unit: Unit, issued: int) -> None:
        op, done = step.insn.op, self._done[unit]
        ready = max(issued + TO_HEAD if issued else 0, self._take(step.waits)) + GRANT
        if len(done) >= UNIT_IN_FLIGHT:
            ready = max(ready, done[-UNIT_IN_FLIGHT] + ISSUE)
        work = self._count(step)
        begins = max(ready, self._walk.free[unit])
        free = self._walk.occupy(unit, ready, work.cycles + self._debt[op])
        self._debt[op] = 0
        if op is Op.VEC and "a" not in self._rivals.once:
            for rival in _PARAMETER_RIVALS:
                self._debt[rival] += longest.parameter_words(step.insn, self._params)
        taken = self._taken[unit]
        taken.append(max(begins + work.latency, taken[-1] if taken else 0))
        # Behind an instruction with a longer latency this one ends no sooner.
        done.append(max(free + work.latency, done[-1] + work.cycles if done else 0))
        self._walk.signal(step.signals, done[-1])

    def _take(self, waits: Iterable[int]) -> int:
        try:
            return self._walk.take(waits)
        except LookupError:
            raise ValueError(SIGNALLED_LATE) from None
