"""Works out what MAC and VEC waited for, cycle by cycle as ``hw/control/monitor.py`` does, from when instructions began
and ended."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from hw.contract.isa import Unit
from hw.contract.job import SEMAPHORE_CLASSES
from sim.model.queues import QueueModel

CycleRange = tuple[int, int]  #: from a cycle to before another


class CycleRanges:
    """Holds cycles in ranges that are apart and in order."""

    def __init__(self, spans: Sequence[CycleRange]) -> None:
        self._begins = [begin for begin, _ in spans]
        self._ends = [end for _, end in spans]
        self._total = [0, *accumulate(end - begin for begin, end in spans)]

    def within(self, begin: int, end: int) -> int:
        """Return how many of the cycles are from ``begin`` to before ``end``."""
        return self._before(end) - self._before(begin) if end > begin else 0

    def _before(self, time: int) -> int:
        place = bisect_right(self._begins, time)
        return self._total[place] - max(0, self._ends[place - 1] - time) if place else 0


def united(spans: Iterable[CycleRange]) -> list[CycleRange]:
    """Return the cycles in any of ``spans``, as spans that are apart and in order."""
    found: list[CycleRange] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        elif end > begin:
            found.append((begin, end))
    return found


def without(spans: Sequence[CycleRange], others: Sequence[CycleRange]) -> list[CycleRange]:
    """Return what is left of ``spans`` without ``others``; both are apart and in order."""
    found, place = [], 0
    for begin, end in spans:
        while place and others[place - 1][1] > begin:
            place -= 1
        while place < len(others) and others[place][0] < end:
            low, high = others[place]
            if begin < low:
                found.append((begin, low))
            begin = max(begin, high)
            place += 1
        if begin < end:
            found.append((begin, end))
    return found


class Waiting(NamedTuple):
    """Describes a range of cycles in which the head of a queue misses semaphores. ``lowest`` is the lowest class of
    these; ``data`` says whether one of them is of an even class."""

    begin: int
    end: int
    lowest: int
    data: bool


def waits_of(queue: QueueModel, tokens: Mapping[int, Sequence[int]], now: int) -> Iterator[Waiting]:
    """Yield the ranges of cycles in which the unit was idle and the head of its queue missed semaphores. ``tokens`` is
    by semaphore the cycles in which it was signalled, in order."""
    used: dict[int, int] = defaultdict(int)
    free = 0
    for place in range(len(queue.granted)):
        arrivals = []
        for number in queue.program.waits[queue.pcs[place]]:
            given = tokens[number]
            arrivals.append((given[min(used[number], len(given) - 1)] if given else 0, number % SEMAPHORE_CLASSES))
            used[number] += 1
        begin = max(queue.issued[place] + 2, queue.taken[place - 1] + 1 if place else 0, free)
        while arrivals := [one for one in arrivals if one[0] > begin]:
            end = min(min(arrivals)[0], now)
            if end > begin:
                classes = [kind for _, kind in arrivals]
                yield Waiting(begin, end, min(classes), any(kind % 2 == 0 for kind in classes))
            if end == now:
                break
            begin = end
        if place < len(queue.done):
            free = queue.done[place] + 1


def tokens_of(queues: Sequence[QueueModel], restored: Mapping[int, int]) -> Mapping[int, Sequence[int]]:
    """Return by semaphore the cycles in which it was signalled; those ``restored`` with the job come first."""
    found: dict[int, list[int]] = defaultdict(list)
    for queue in queues:
        for pc, end in zip(queue.pcs, queue.done, strict=False):
            for number in queue.program.signals[pc]:
                found[number].append(end)
    for number, times in found.items():
        times.sort()
        times[:0] = [0] * restored.get(number, 0)
    return defaultdict(list, found | {n: [0] * count for n, count in restored.items() if n not in found})


def waiting_counters(
    queues: Sequence[QueueModel], restored: Mapping[int, int], loads: Iterable[CycleRange], now: int
) -> dict[str, int]:
    """Return ``*_waiting``, ``*_missing0`` to ``3`` and ``mac_starved`` of a body in cycle ``now``; ``loads`` are spans
    in which LD2 worked for the loader."""
    tokens, counters = tokens_of(queues, restored), dict[str, int]()
    spans = {unit: zip(queues[unit].taken, queues[unit].done, strict=False) for unit in (Unit.LD2, Unit.LD1, Unit.LD0)}
    near = united([*spans[Unit.LD1], *spans[Unit.LD0]])
    alone = CycleRanges(without(united([*spans[Unit.LD2], *loads]), near))
    for unit in (Unit.MAC, Unit.VEC):
        lost, starved = [0] * SEMAPHORE_CLASSES, 0
        for one in waits_of(queues[unit], tokens, now):
            far = alone.within(one.begin, one.end) if unit is Unit.MAC and one.data else 0
            lost[one.lowest] += one.end - one.begin - far
            starved += far
        name = unit.name.lower()
        counters |= {f"{name}_missing{kind}": cycles for kind, cycles in enumerate(lost)}
        counters[f"{name}_waiting"] = sum(lost) + starved
        if unit is Unit.MAC:
            counters["mac_starved"] = starved
    return counters
