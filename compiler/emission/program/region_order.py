"""Program order and semaphores of a region: the operators of one engine whose units run side by side.

Every unit still takes its tasks in one order, but that order is now a *list schedule* over all operators: whenever a
unit is free it takes, of the next tasks of each operator, the one that can start first. Of several that can it takes
the one that has most behind it: a convolution's tile leaves the accumulators ahead of a window of a long pool.

Between two units that both work in order, one semaphore says all there is to say: the consumer takes a count where it
needs a later task of the producer than ever before, and that task gives one. So operators of a region share semaphores,
one for each pair of units, and nothing waits for more than it needs.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from compiler.emission.program.dependencies import Needs
from compiler.emission.program.job import JobProgram
from compiler.emission.program.semaphores import BETWEEN, MOST_COUNTS, Sem
from compiler.emission.program.task import Task
from compiler.ir import CompileError
from hw.contract.isa import Lv0Space, Op, Segment, Unit
from hw.contract.params import SocParams
from sim.cost import QueuedTasks

_WEIGHTS = (Lv0Space.WGT, Lv0Space.INT4)


class RegionError(CompileError):
    """Operators that cannot run, or do not gain by running, side by side."""


def order_tasks(
    parts: Sequence[JobProgram], needs: Needs, params: SocParams, engines: int
) -> tuple[list[Task], int]:  # fmt: skip
    """Return the tasks of ``parts`` by the time at which they would start, and the cycles until all have ended: the
    best of three list schedules. Of tasks that could start at the same time one takes that of the longest chain of
    tasks behind it, another that of the part which stands first; the third waits for a short task, up to half of the
    time of a long one that could start before it. All take loads of weights and parameters before loads of tensors,
    which would keep a part waiting that needs but a few bytes of them."""
    tasks, queues, late = list[Task](), list[tuple[Unit, int]](), list[tuple[bool, int]]()
    for unit in Unit:
        for number, part in enumerate(parts):
            mine = [task for task in part.tasks if task.unit is unit]
            queues += [(unit, len(mine))]
            tasks += mine
            late += [(_late(task), number) for task in mine]
    place = {task: number for number, task in enumerate(tasks)}
    cycles = [task.cycles(params, engines) for task in tasks]
    behind = [[place[need] for need in needs[task]] for task in tasks]
    queued, levels = QueuedTasks(queues, cycles, behind), _levels(queues, behind, cycles)
    by_chain = _ranks([(after, -level, number) for (after, number), level in zip(late, levels, strict=True)])
    halves = [length // 2 for length in cycles]
    found = [queued.schedule(by_chain), queued.schedule(_ranks(late)), queued.schedule(by_chain, halves)]
    best = min(found, key=lambda one: max(one.ends))
    return [tasks[number] for number in sorted(best.taken, key=best.starts.__getitem__)], int(max(best.ends))


def _late(task: Task) -> bool:
    """Whether a task is none that brings weights or parameters into their window."""
    return task.op is not Op.LD2 or task.numbers["dst_seg"] != Segment.WINDOWS


def _levels(queues: Sequence[tuple[Unit, int]], needs: Sequence[Sequence[int]], cycles: Sequence[int]) -> list[int]:
    """Return by task the cycles from its start to the end of the longest chain of tasks that must follow each other.
    Raises :class:`RegionError` if some wait for each other in a circle."""
    behind = [list(those) for those in needs]
    for end, (_, count) in zip(itertools.accumulate(count for _, count in queues), queues, strict=True):
        for following in range(end - count + 1, end):
            behind[following].append(following - 1)
    waiting = Counter(itertools.chain.from_iterable(behind))
    ready = [task for task in range(len(cycles)) if not waiting[task]]
    levels = list(cycles)
    for task in ready:  # grows
        for earlier in behind[task]:
            levels[earlier] = max(levels[earlier], cycles[earlier] + levels[task])
            waiting[earlier] -= 1
            if not waiting[earlier]:
                ready.append(earlier)
    if len(ready) < len(cycles):
        raise RegionError("tasks wait for each other in a circle")
    return levels


def _ranks(priorities: Sequence[tuple[int, ...]]) -> list[int]:
    """Return by task the number of its priority among all that there are."""
    number = {priority: i for i, priority in enumerate(sorted(set(priorities)))}
    return [number[priority] for priority in priorities]


def synchronise(order: Sequence[Task], needs: Needs) -> None:
    """Give the tasks in program ``order`` semaphores by which each waits for what it needs. Raises
    :class:`RegionError` where a semaphore could count too far."""
    number: dict[Task, int] = {}
    by_unit: dict[Unit, list[Task]] = defaultdict(list)
    own = {task for task in order if Sem.OWN_READY in task.waits}
    for task in order:
        task.waits, task.signals = set(), set()
        number[task] = len(by_unit[task.unit])
        by_unit[task.unit].append(task)
    done: dict[Sem, int] = {}
    for task in order:
        wanted: dict[Sem, int] = {}
        for need in needs[task]:
            sem = _semaphore(need, task, task in own)
            if sem is not None:
                wanted[sem] = max(wanted.get(sem, -1), number[need])
        for sem, last in wanted.items():
            if last > done.get(sem, -1):
                done[sem] = last
                task.waits.add(sem)
                by_unit[PRODUCERS[sem]][last].signals.add(sem)
    counts: dict[Sem, int] = defaultdict(int)
    for task in order:
        for sem in task.signals:
            counts[sem] += 1
            if counts[sem] > MOST_COUNTS:
                raise RegionError(f"semaphore {sem.name} would count beyond {MOST_COUNTS}")
        for sem in task.waits:
            counts[sem] -= 1


PRODUCERS: Mapping[Sem, Unit] = {sem: producer for (producer, _), sem in BETWEEN.items()} | {
    Sem.WEIGHT0_FULL: Unit.LD0,
    Sem.OWN_READY: Unit.VEC,
}


def _semaphore(need: Task, task: Task, own: bool) -> Sem | None:
    """Return which semaphore orders ``task`` behind ``need``; None if their unit does so. ``own``: ``task`` reads what
    its unit wrote."""
    if need.unit is task.unit:
        return Sem.OWN_READY if own else None
    if task.op is Op.MAC and need.op is Op.LD0 and need.numbers.get("space", 0) in _WEIGHTS:
        return Sem.WEIGHT0_FULL
    sem = BETWEEN.get((need.unit, task.unit))
    if sem is None:
        raise RegionError(f"{task.unit.name} would have to wait for {need.unit.name}, for which there is no semaphore")
    return sem
