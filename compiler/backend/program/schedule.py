"""Program order of a job: the order in which a simulation of the units would start its instructions.

Every unit keeps the order in which the generator emitted its tasks. Sorting by simulated start keeps all waits behind
their signals in program order (an instruction starts only after those it waits for have ended), and puts each
instruction just ahead of the moment its unit can take it, so the shallow unit queues do not hold up the others.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from compiler.backend.program.semaphores import Sem
from compiler.backend.program.task import Task
from hw.contract.isa import Unit
from hw.contract.params import SocParams
from sim.timing.typical import insn_cycles
from sim.timing.walk import Walk


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
    cycles = duration or (lambda task: insn_cycles(task.op, task.fields, params, engines))
    queues: dict[Unit, deque[tuple[int, Task]]] = {unit: deque() for unit in Unit}
    for number, task in enumerate(tasks):
        queues[task.unit].append((number, task))
    walk = Walk[Sem]()
    started: list[tuple[int, int, int, Task]] = []
    finish = 0
    while any(queues.values()):
        unit, start = _next(queues, walk)
        number, task = queues[unit].popleft()
        walk.take(task.waits)
        end = walk.occupy(unit, start, cycles(task))
        walk.signal(task.signals, end)
        started.append((start, number, end, task))
        finish = max(finish, end)
    left = sorted(walk.left())
    if left:
        raise ValueError(f"semaphores {', '.join(sem.name for sem in left)} are signalled more often than waited for")
    started.sort(key=lambda entry: entry[:2])
    starts, ends = [entry[0] for entry in started], [entry[2] for entry in started]
    return TaskSchedule([entry[3] for entry in started], finish, starts, ends)


def _next(queues: dict[Unit, deque[tuple[int, Task]]], walk: Walk[Sem]) -> tuple[Unit, int]:
    """Return the unit whose next task can start first, and when."""
    best: tuple[int, int, Unit] | None = None
    for unit, queue in queues.items():
        start = walk.ready(unit, queue[0][1].waits) if queue else None
        if start is not None and (best is None or (start, queue[0][0]) < best[:2]):
            best = (start, queue[0][0], unit)
    if best is None:
        stuck = {unit.name: queue[0][1].op.name for unit, queue in queues.items() if queue}
        raise ValueError(f"tasks wait for semaphores that nothing signals: {stuck}")
    return best[2], best[0]
