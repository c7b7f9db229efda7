"""Where a job gets its cancellation points (of **Cancellation points**: at intervals, and at spills)."""

from bisect import bisect_right
from collections import deque
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from compiler.backend.schedule import Schedule
from compiler.backend.tasks import Task
from hw.isa import Op, Unit
from hw.params import SocParams

_ISSUE = 3  #: cycles from one instruction to the next as the executor issues them
_TOLERANCE = 0.25  #: by which a distance between points may differ from the even one in favour of fewer live bytes
_LONGEST = 1.25  #: times the wanted interval, which no distance exceeds as long as instructions are shorter
_SHORTEST = 0.25  #: times the wanted interval: a spill sooner after a point adds none


@dataclass(frozen=True)
class Wanted:
    """``interval``: cycles between points; ``max_live``: dirty bytes that a point should not exceed (0: any);
    ``spill_bound``: bytes on their way to DRAM after which the next empty spill buffer is a point (0: none is)."""

    interval: int
    max_live: int = 0
    spill_bound: int = 0


@dataclass(frozen=True)
class Chosen:
    """A point ahead of task number ``cut``; ``interval``: cycles from passing the point (or job start) before until the
    engine has halted here, as estimated."""

    cut: int
    interval: int


class Timeline:
    """For each cut from 0 to the number of tasks: when the executor passes it, and when everything before has ended.

    The executor runs ahead: it stops only at a full queue of the unit it has an instruction for. A pause that comes
    after it has passed a point takes effect at the next.
    """

    def __init__(self, schedule: Schedule, params: SocParams) -> None:
        queues: dict[Unit, deque[int]] = {}
        passed, now = [0], 0
        for task, start in zip(schedule.tasks, schedule.starts, strict=True):
            queue = queues.setdefault(task.unit, deque())
            now += _ISSUE
            if len(queue) == params.unit_queue_depth:
                now = max(now, queue.popleft())
            queue.append(start)
            passed.append(min(now, start))
        self.passed = np.maximum.accumulate(np.array(passed))
        self.halted = np.array(list(accumulate(schedule.ends, max, initial=0)))
        self.starts = np.array([*schedule.starts, schedule.cycles])
        self.cycles = schedule.cycles


def choose(
    timeline: Timeline, tasks: list[Task], dirty: npt.NDArray[np.int64], spills: npt.NDArray[np.int64], wanted: Wanted,
    barred: npt.NDArray[np.bool_], dram_word: int,
) -> list[Chosen]:  # fmt: skip
    """Points of a job. ``dirty``: live bytes without a copy; ``spills``: buffers that wait for their way to DRAM;
    ``barred``: where no point may stand if any other position will do; all for each cut. No point is needed at the end,
    where the hardware halts as well.

    Distances are as even as the cost of the positions allows: that of moving the dirty bytes and of the time until the
    units are idle, in which DRAM could move ``dram_word`` bytes a cycle.
    """
    cost = dirty + dram_word * np.maximum(0, timeline.halted - timeline.starts)
    if wanted.max_live:
        cost = cost + np.where(dirty > wanted.max_live, np.int64(1) << 40, 0)
    cost = cost + barred * (np.int64(1) << 50)
    moved = _moved(tasks)
    stored = [number for number, task in enumerate(tasks, 1) if task.op is Op.ST2 and task.reads]
    emptied = [cut for cut in stored if not spills[cut] and not barred[cut]] if wanted.spill_bound else []
    points: list[Chosen] = []
    last = 0
    while True:
        cut = _interval_point(timeline, cost, last, wanted.interval)
        spill = _spill_point(timeline, emptied, moved, last, cut, wanted)
        cut = spill if spill is not None else cut
        if cut is None:
            return points
        points.append(Chosen(cut, int(timeline.halted[cut] - timeline.passed[last])))
        last = cut


def _interval_point(timeline: Timeline, cost: npt.NDArray[np.int64], last: int, interval: int) -> int | None:
    """The next cut after ``last``; None if the end of the job comes soon enough, or no instruction is left to cut."""
    begin = int(timeline.passed[last])
    rest = timeline.cycles - begin
    count = len(timeline.starts) - 1
    if rest <= interval or last + 1 >= count:
        return None
    even = rest / -(-rest // interval)
    distance = timeline.halted[last + 1 : count] - begin
    # Distances rise, so all windows are slices.
    low, high = np.searchsorted(distance, [even * (1 - _TOLERANCE), min(interval, even * (1 + _TOLERANCE))], "left")
    if low < high:
        return last + 1 + int(low) + int(np.argmin(cost[last + 1 + low : last + 1 + high]))
    if rest <= _LONGEST * interval:
        return None
    # Long instructions wait in queues, so even the next positions are late: the earliest that points may follow at.
    starts = timeline.starts[last + 1 : count] - timeline.starts[last]
    low, high = np.searchsorted(starts, [_SHORTEST * interval, 2 * _SHORTEST * interval], "left")
    high = max(low + 1, min(high, np.searchsorted(distance, _LONGEST * interval, "right")))
    return last + 1 + int(low) + int(np.argmin(cost[last + 1 + low : last + 1 + high])) if low < len(starts) else None


def _moved(tasks: list[Task]) -> npt.NDArray[np.int64]:
    """Bytes stored to DRAM before each cut."""
    moved = [0]
    for task in tasks:
        f = task.fields
        size = f.get("n2", 1) * f.get("n1", 1) * f.get("n0", 1) * f.get("len", 1)
        moved.append(moved[-1] + (size if task.op is Op.ST2 else 0))
    return np.array(moved)


def _spill_point(
    timeline: Timeline, emptied: list[int], moved: npt.NDArray[np.int64], last: int, before: int | None, wanted: Wanted
) -> int | None:
    """The first cut in ``emptied`` after ``last`` (and before ``before``) that the bound and the distance allow."""
    near = _SHORTEST * wanted.interval
    for cut in emptied[bisect_right(emptied, last) :]:
        if before is not None and cut >= before:
            return None
        apart = timeline.halted[cut] - timeline.passed[last] >= near and timeline.cycles - timeline.passed[cut] >= near
        if apart and moved[cut] - moved[last] >= wanted.spill_bound:
            return cut
    return None
