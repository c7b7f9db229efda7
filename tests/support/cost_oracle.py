"""Holds the walks of ``sim/cost`` in Python: what the C of the product is compared with."""

import math
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Generic, TypeVar

from compiler.emission.program.task import Task
from hw.contract.isa import INSN_BYTES, Unit
from hw.contract.params import SocParams
from hw.contract.timing import FETCH_AHEAD, FETCH_BURST_BYTES, UNIT_IN_FLIGHT
from sim.cost.backlog import Step
from sim.cost.dram import WorstDram
from sim.cost.overheads import ABANDON, DRAINED, GRANT, INSN_AROUND, ISSUE, POINT, QUEUE
from sim.cost.region_time import RegionMember, tile_count
from sim.cost.rivals import PORTS, Rivals, all_counted, lost
from sim.cost.units import UnitTime, worst_time
from sim.cost.worst_walk import BetweenPoints

Semaphore = TypeVar("Semaphore", bound=Hashable)


class Walk(Generic[Semaphore]):
    """The state of one engine on a walk, in cycles since it began. ``counts``: of the semaphores at the beginning.

    Units take their instructions in order, and the n-th wait for a semaphore takes what its n-th signal gave. So every
    time follows from earlier ones by maxima and sums (a max-plus system), in whatever order instructions are passed in.
    """

    def __init__(self, counts: Mapping[Semaphore, int] | None = None) -> None:
        self.free = dict.fromkeys(Unit, 0)  #: when each unit has done all that was passed
        self._signalled = {semaphore: deque([0] * count) for semaphore, count in (counts or {}).items()}

    def ready(self, unit: Unit, waits: Iterable[Semaphore]) -> int | None:
        """Return when ``unit`` could start an instruction that waits for ``waits``, or None if one of them has no
        signal yet."""
        start = self.free[unit]
        for semaphore in waits:
            times = self._signalled.get(semaphore)
            if not times:
                return None
            start = max(start, times[0])
        return start

    def take(self, waits: Iterable[Semaphore]) -> int:
        """Take one count of each of ``waits``; return when the last of them was signalled."""
        latest = 0
        for semaphore in waits:
            latest = max(latest, self._signalled[semaphore].popleft())
        return latest

    def occupy(self, unit: Unit, ready: int, cycles: int) -> int:
        """Hold ``unit`` for ``cycles`` as soon as it is free, not before ``ready``; return when it is free again."""
        self.free[unit] = end = max(self.free[unit], ready) + cycles
        return end

    def signal(self, signals: Iterable[Semaphore], time: int) -> None:
        """Give one count to each of ``signals``."""
        for semaphore in signals:
            self._signalled.setdefault(semaphore, deque()).append(time)


def program_order(tasks: Sequence[Task], cycles: Callable[[Task], int]) -> list[tuple[int, int, Task]]:
    """What :func:`compiler.emission.program.schedule.schedule` finds: starts, ends and tasks."""
    queues = {unit: deque((number, task) for number, task in enumerate(tasks) if task.unit is unit) for unit in Unit}
    walk, started = Walk[int](), list[tuple[int, int, int, Task]]()
    while any(queues.values()):
        heads = [(walk.ready(unit, queue[0][1].waits), queue[0][0], unit) for unit, queue in queues.items() if queue]
        start, number, unit = min((start, number, unit) for start, number, unit in heads if start is not None)
        _, task = queues[unit].popleft()
        walk.take(task.waits)
        end = walk.occupy(unit, start, cycles(task))
        walk.signal(task.signals, end)
        started.append((start, number, end, task))
    return [(start, end, task) for start, _, end, task in sorted(started, key=lambda entry: entry[:2])]


def list_schedule(
    queues: Sequence[tuple[int, int]], cycles: Sequence[float], needs: Sequence[Sequence[int]], rank: Sequence[float],
    patience: Sequence[float],
) -> tuple[list[float], list[int]]:  # fmt: skip
    """What :class:`sim.cost.schedule.QueuedTasks` finds: ends by task, and the tasks in the order in which they are
    taken."""
    stops = list(accumulate(count for _, count in queues))
    heads = [stop - count for stop, (_, count) in zip(stops, queues, strict=True)]
    ends, taken, free = {}, list[int](), dict.fromkeys(Unit, 0.0)
    while True:
        ready = []
        for queue, (task, stop) in enumerate(zip(heads, stops, strict=True)):
            if task < stop and all(need in ends for need in needs[task]):
                start = max([ends[need] for need in needs[task]], default=0.0)
                start = max(start, free[queues[queue][0]]) if cycles[task] else start
                ready.append((start + patience[task], rank[task], start, queue))
        if not ready:
            return [ends.get(task, -1.0) for task in range(len(cycles))], taken
        _, _, start, queue = min(ready)
        task, unit = heads[queue], queues[queue][0]
        heads[queue] += 1
        ends[task] = start + cycles[task]
        free[unit] = max(free[unit], ends[task])
        taken.append(task)


_LOAD, _ARRAYS, _VECTOR, _STORE = range(4)
_DRAM = (Unit.LD2, Unit.ST2)
_EVERYBODY = {client for clients in PORTS for client in clients}
_DRAM_CLIENTS = {"lv2_ld2", "lv2_st2"}

#: The longest chains of events up to a moment, by what is to be added at the end: whether any unit may lose conflicts
#: (else MAC and those of the DRAM alone), and whether traffic at the DRAM is in it already.
Chains = dict[tuple[bool, bool], int]


def _at(time: int, waited: int | None = None) -> Chains:
    chains = {(any_unit, False): time for any_unit in (False, True)}
    return chains | ({} if waited is None else {(any_unit, True): waited for any_unit in (False, True)})


def _later(*moments: Chains) -> Chains:
    return {kind: max(m[kind] for m in moments if kind in m) for kind in set().union(*moments)}


def _after(moment: Chains, cycles: int) -> Chains:
    return {kind: time + cycles for kind, time in moment.items()}


class WorstWalkOracle:
    """What :class:`sim.cost.worst_walk.WorstWalks` is."""

    def __init__(self, params: SocParams) -> None:
        self._params = params

    def __call__(self, between: BetweenPoints, rivals: Rivals) -> int:
        """Return the cycles for ``between`` beside ``rivals``."""
        walk = _WorstWalk(self._params, rivals, between)
        for number, step in enumerate(between.queued):
            walk.queued(step, number in between.unfinished)
        for step in between.issued:
            walk.issue(step)
        return walk.drained()


class _WorstWalk:
    """Holds the times at which instructions have ended at the latest, in cycles since the pause."""

    def __init__(self, params: SocParams, rivals: Rivals, between: BetweenPoints) -> None:
        self._params, self._rivals, self._memory = params, rivals, WorstDram(params, rivals)
        self._signalled = {semaphore: deque([_at(0)] * count) for semaphore, count in between.counts}
        self._done: dict[Unit, list[Chains]] = {unit: [] for unit in Unit}
        self._taken: dict[Unit, list[Chains]] = {unit: [] for unit in Unit}
        self._free = {unit: _at(0) for unit in Unit}
        self._issued = _at(0)
        self._fetched = 0
        memory = self._memory
        self._traffic = memory.debt(memory.job + memory.fetched + FETCH_AHEAD * memory.insn)
        self._accesses: dict[str, int] = {}
        for step in between.running():
            for client, words in self._work(step).accesses if step.unit is not None else ():
                self._accesses[client] = self._accesses.get(client, 0) + words
        self._spared = set(all_counted(self._accesses, rivals.in_all, _EVERYBODY - _DRAM_CLIENTS))
        self._ends = [_at(memory.completion)]  # of the job before
        if between.loading:
            self._free[Unit.LD2] = self._through(Unit.LD2, _at(memory.abandoned + ABANDON))
            self._ends.append(self._free[Unit.LD2])

    def queued(self, step: Step, unfinished: bool) -> None:
        """Take an instruction that was issued before the walk begins, and ended before it unless ``unfinished``."""
        if step.unit is None:
            return
        if unfinished:
            self._run(step, step.unit, _at(0))
        else:
            self._signal(step, _at(0))
            self._take(step.waits)

    def issue(self, step: Step) -> None:
        """Take the next instruction of the executor."""
        if step.unit is None:  # a CANCEL
            return
        burst, memory = _fetched_together(self._params), self._memory
        here = memory.latency + (self._fetched + burst - 1) // burst * memory.fetch
        self._fetched += 1
        self._issued = _later(_after(self._issued, ISSUE.worst), _at(here, here + memory.job))
        taken = self._taken[step.unit]
        depth = self._params.unit_queue_depth + 1
        if len(taken) >= depth:
            self._issued = _later(self._issued, _after(taken[-depth], ISSUE.worst))
        self._traffic += memory.debt(memory.insn)
        self._run(step, step.unit, _after(self._issued, QUEUE.worst))

    def drained(self) -> int:
        """Return when all units are idle and the executor is at the end."""
        end = _later(self._issued, *self._ends, *(done[-1] for done in self._done.values() if done))
        once = self._rivals.in_all
        conflicts = {
            (False, False): 0,
            (True, False): lost(self._accesses, once, _EVERYBODY - _DRAM_CLIENTS),
            (False, True): lost(self._accesses, once, _DRAM_CLIENTS),
            (True, True): lost(self._accesses, once),
        }
        last = max(time + conflicts[kind] for kind, time in end.items())
        return max(last, self._memory.completion) + self._memory.few_stores + POINT + DRAINED

    def _through(self, unit: Unit, moment: Chains) -> Chains:
        """Return the chains through ``unit`` up to ``moment``."""
        if unit in _DRAM:
            held = {(any_unit, True): time + self._traffic for (any_unit, waited), time in moment.items() if not waited}
            return moment | held
        return moment if unit is Unit.MAC else {kind: time for kind, time in moment.items() if kind[0]}

    def _run(self, step: Step, unit: Unit, issued: Chains) -> None:
        done, taken = self._done[unit], self._taken[unit]
        ready = _after(_later(issued, *self._take(step.waits)), GRANT.worst)
        if len(done) >= UNIT_IN_FLIGHT:
            ready = _later(ready, _after(done[-UNIT_IN_FLIGHT], ISSUE.worst))
        work = self._work(step)
        begins = _later(ready, self._free[unit])
        self._free[unit] = self._through(unit, self._worked(begins, work))
        takes, ends = self._through(unit, _after(begins, work.latency)), _after(self._free[unit], work.latency)
        # Behind an instruction with a longer latency this one ends no sooner.
        taken.append(_later(takes, taken[-1]) if taken else takes)
        done.append(_later(ends, self._through(unit, self._worked(done[-1], work))) if done else ends)
        self._signal(step, done[-1])

    def _work(self, step: Step) -> UnitTime:
        return worst_time(step.insn, self._params, self._rivals, self._memory)

    def _worked(self, moment: Chains, work: UnitTime) -> Chains:
        """Return ``moment`` after ``work``; its own words hold up no chain of which it is a part."""
        own = sum(words for client, words in work.accesses if client in self._spared)
        return {kind: time + work.cycles - own * kind[0] for kind, time in moment.items()}

    def _signal(self, step: Step, moment: Chains) -> None:
        for semaphore in step.signals:
            self._signalled.setdefault(semaphore, deque()).append(moment)

    def _take(self, waits: Iterable[int]) -> list[Chains]:
        try:
            return [self._signalled[semaphore].popleft() for semaphore in waits]
        except LookupError:
            raise ValueError("a semaphore that only an instruction behind it signals") from None


def _fetched_together(params: SocParams) -> int:
    """Return how many instructions a burst of the executor's fetch brings."""
    return min(params.axi_burst_beats * params.dram_word, FETCH_BURST_BYTES) // INSN_BYTES


def side_by_side_cycles(members: Sequence[RegionMember]) -> float:
    """What :func:`sim.cost.region_time.side_by_side_cycles` is."""
    return min(_in_turns(members, 0.0), _in_turns(members, 0.5))


def _in_turns(members: Sequence[RegionMember], patience: float) -> float:
    """The cycles of ``members`` where a task lets others go first for a share of its own time."""
    tiles = list(map(tile_count, members))
    work = [
        tuple(cycles / count + INSN_AROUND if cycles else 0.0 for cycles in member.busy)
        for member, count in zip(members, tiles, strict=True)
    ]
    before = _same_kind(members)
    levels = _levels(members, before, work, tiles)
    ends: list[list[list[float]]] = [[[] for _ in range(4)] for _ in members]
    follow, free = _followers(members, before), [0.0] * 4
    # Of each member and unit (four for a member): work of a tile, its place among others, tiles done, and when the next
    # can begin as far as others are concerned.
    takes = [cycles for units in work for cycles in units]
    rank = [-level for level in levels for _ in range(4)]
    step = [max(units) for units in work for _ in range(4)]
    waiting = list(range(4 * len(members)))
    begins = [_start(members, tiles, ends, before, *divmod(entry, 4)) for entry in waiting]
    while waiting:
        key, least, first, chosen = math.inf, 0.0, math.inf, waiting[0]
        for entry in waiting:
            start = begins[entry]
            if start < free[entry & 3] and takes[entry]:
                start = free[entry & 3]
            at = start + patience * takes[entry]
            if at < key or (at == key < math.inf and (rank[entry], start) < (least, first)):
                key, least, first, chosen = at, rank[entry], start, entry
        number, stage = divmod(chosen, 4)
        end = first + takes[chosen]
        free[stage] = max(free[stage], end)
        ends[number][stage].append(end)
        rank[chosen] = len(ends[number][stage]) * step[chosen] - levels[number]
        if len(ends[number][stage]) == tiles[number]:
            waiting.remove(chosen)
        else:
            begins[chosen] = _start(members, tiles, ends, before, number, stage)
        for entry in follow[chosen]:
            if begins[entry] == math.inf:
                begins[entry] = _start(members, tiles, ends, before, *divmod(entry, 4))
    return max(free)


def _followers(members: Sequence[RegionMember], before: Sequence[int]) -> list[list[int]]:
    """Return for each member and unit, four for a member, those that may be able to begin when it has done a tile."""
    found = []
    for number, member in enumerate(members):
        computes = _ARRAYS if member.busy[_ARRAYS] else _VECTOR
        for stage in range(4):
            beside = [4 * number + other for other in (stage - 1, stage + 1) if _LOAD <= other <= _STORE]
            for other, reader in enumerate(members):
                reads = stage == _STORE and number in reader.reads
                if reads or (stage == computes and before[other] == number):
                    beside.append(4 * other + _LOAD)
            found.append(beside)
    return found


def _start(
    members: Sequence[RegionMember],
    tiles: Sequence[int],
    ends: list[list[list[float]]],
    before: Sequence[int],
    number: int,
    stage: int,
) -> float:
    """Return when the next tile of a member could begin on a unit, as far as others are concerned; it is infinite while
    that is not known yet."""
    mine = ends[number]
    tile, start = len(mine[stage]), 0.0
    if stage != _STORE and tile >= 2:
        read = mine[stage + 1]
        if len(read) < tile - 1:
            return math.inf
        start = read[tile - 2]
    if stage != _LOAD:
        made = mine[stage - 1]
        return max(start, made[tile]) if len(made) > tile else math.inf
    for source in members[number].reads:
        stored = ends[source][_STORE]
        wanted = math.ceil((tile + 1) * tiles[source] / tiles[number]) - 1
        last = min(tiles[source] - 1, wanted + members[number].around)
        if len(stored) <= last:
            return math.inf
        start = max(start, stored[last])
    if tile < 2 and before[number] >= 0:
        computed = ends[before[number]][_ARRAYS if members[before[number]].busy[_ARRAYS] else _VECTOR]
        if len(computed) < tiles[before[number]] - 1 + tile:
            return math.inf
        start = max(start, computed[tiles[before[number]] - 2 + tile])
    return start


def _same_kind(members: Sequence[RegionMember]) -> list[int]:
    """Return for each member the one ahead of it that uses the same buffers, or -1 if there is none."""
    last: dict[bool, int] = {}
    before = []
    for number, member in enumerate(members):
        kind = member.busy[_ARRAYS] > 0
        before.append(last.get(kind, -1))
        last[kind] = number
    return before


def _levels(
    members: Sequence[RegionMember], before: Sequence[int], work: Sequence[tuple[float, ...]], tiles: Sequence[int]
) -> list[float]:
    """Return for each member the cycles of the longest chain of members from it on."""
    alone = [count * max(cycles) for count, cycles in zip(tiles, work, strict=True)]
    levels = list(alone)
    for number in range(len(members) - 1, -1, -1):
        for source in {*members[number].reads, before[number]} - {-1}:
            levels[source] = max(levels[source], alone[source] + levels[number])
    return levels
