"""Program order of a job: the order in which a simulation of the units would start its instructions.

Every unit keeps the order in which the generator emitted its tasks. Sorting by simulated start keeps all waits behind
their signals in program order (an instruction starts only after those it waits for have ended), and puts each
instruction just ahead of the moment its unit can take it, so the shallow unit queues do not hold up the others.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from compiler.emission.program.semaphores import Sem
from compiler.emission.program.task import Task
from hw.contract.isa import Unit
from hw.contract.params import SocParams
from sim.cost import QueuedTasks


@dataclass
class TaskSchedule:
    """Holds tasks in program order, the estimated duration of the job, and when each task starts and ends, in
    cycles."""

    tasks: list[Task]
    cycles: int
    starts: list[int]
    ends: list[int]


def schedule(
    tasks: list[Task], params: SocParams, duration: Callable[[Task], int] | None = None, engines: int = 1
) -> TaskSchedule:  # fmt: skip
    """Order ``tasks``, for ``engines`` that share DRAM; raises ValueError if their semaphores do not balance or wait in
    a circle."""
    by_unit: dict[Unit, list[int]] = {unit: [] for unit in Unit}
    for number, task in enumerate(tasks):
        by_unit[task.unit].append(number)
    queues = [(unit, len(numbers)) for unit, numbers in by_unit.items()]
    queued = [number for numbers in by_unit.values() for number in numbers]
    in_queues = [tasks[number] for number in queued]
    needs, left = _needs(in_queues)
    if duration:
        cycles = [duration(task) for task in in_queues]
    else:
        cycles = [task.cycles(params, engines) for task in in_queues]
    found = QueuedTasks(queues, cycles, needs).schedule(queued)
    if len(found.taken) < len(tasks):
        taken = {queued[place] for place in found.taken}
        stuck: dict[str, str] = {}
        for number in queued:
            if number not in taken:
                stuck.setdefault(tasks[number].unit.name, tasks[number].op.name)
        raise ValueError(f"tasks wait for semaphores that nothing signals: {stuck}")
    if left:
        raise ValueError(f"semaphores {', '.join(sem.name for sem in left)} are signalled more often than waited for")
    places = [place for *_, place in sorted(zip(found.starts, queued, range(len(tasks)), strict=True))]
    starts, ends = ([int(times[place]) for place in places] for times in (found.starts, found.ends))
    return TaskSchedule([tasks[queued[place]] for place in places], max(ends, default=0), starts, ends)


def _needs(tasks: list[Task]) -> tuple[list[list[int]], list[Sem]]:
    """Return by task the numbers of those whose signals it takes, as each wait for a semaphore takes the next signal,
    or its own number where there is none; and the semaphores with signals that nothing takes."""
    signals: dict[Sem, list[int]] = defaultdict(list)
    for number, task in enumerate(tasks):
        for sem in task.signals:
            signals[sem].append(number)
    waiting: dict[Sem, Iterator[int]] = {sem: iter(numbers) for sem, numbers in signals.items()}
    nothing: Iterator[int] = iter(())
    needs = [[next(waiting.get(sem, nothing), number) for sem in task.waits] for number, task in enumerate(tasks)]
    return needs, sorted(sem for sem, numbers in waiting.items() if next(numbers, None) is not None)
