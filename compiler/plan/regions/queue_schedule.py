"""What the steps of a placed model take on several engines: list scheduling, as queues are balanced at run time."""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class QueuedStep:
    """Is a step that one engine runs: ``cycles`` that it takes there, and the steps that it reads, by number. One of no
    cycles, such as a concatenation in place, has no job, and has ended when those that it reads have."""

    cycles: float
    reads: tuple[int, ...]


def makespan(
    steps: Mapping[int, QueuedStep], order: Sequence[int], engines: int, waits: Sequence[float] = ()
) -> float:  # fmt: skip
    """Return the cycles until the last of ``steps`` has ended if they are queued in ``order``, each on the one of
    ``engines`` that is free first once its inputs exist (**Queue-time balancing**). ``waits``: by engine how long it
    has to do with something else, by default not at all."""
    ends, free = dict[int, float](), [*waits] or [0.0] * engines
    for number in order:
        step = steps[number]
        ready = max((ends[other] for other in step.reads), default=0.0)
        ends[number] = ready
        if step.cycles:
            engine = min(range(engines), key=lambda one: max(ready, free[one]))
            ends[number] = free[engine] = max(ready, free[engine]) + step.cycles
    return max(ends.values(), default=0.0)


def by_critical_path(steps: Mapping[int, QueuedStep], engines: int) -> tuple[int, ...]:
    """Return the numbers of ``steps`` in the order in which they would begin: of those whose inputs exist when one of
    ``engines`` is free, the one with the most cycles on the way to the end goes first. ``steps`` holds readers behind
    what they read."""
    path, missing = dict.fromkeys(steps, 0.0), {number: len(step.reads) for number, step in steps.items()}
    readers: dict[int, list[int]] = {number: [] for number in steps}
    for number, step in reversed([*steps.items()]):
        path[number] += step.cycles
        for other in step.reads:
            path[other] = max(path[other], path[number])
            readers[other].append(number)
    order, now, free = list[int](), 0.0, engines
    ready = [(-path[number], number) for number in steps if not missing[number]]
    heapq.heapify(ready)
    running = list[tuple[float, int]]()
    while ready or running:
        if ready and free:
            number = heapq.heappop(ready)[1]
            order.append(number)
            heapq.heappush(running, (now + steps[number].cycles, number))
            free -= 1
            continue
        now, ended = heapq.heappop(running)
        free += 1
        for reader in readers[ended]:
            missing[reader] -= 1
            if not missing[reader]:
                heapq.heappush(ready, (-path[reader], reader))
    return tuple(order)
