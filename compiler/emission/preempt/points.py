"""The choice of cancellation points in a job: at intervals, and where all spills have reached DRAM.

This is the choice of positions of the method **Cancellation points**.
"""

from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from compiler.emission.program import Task
from compiler.emission.program.address import JobAddresses
from compiler.emission.program.schedule import TaskSchedule
from compiler.plan.options import Options
from hw.contract.isa import Op, Segment
from hw.contract.params import SocParams
from sim.cost import contended_cycles, issued

_DRAM = (Op.LD2, Op.ST2)
_SPACINGS = 5  #: points lie this part of the interval apart, at most
_WAITING = 2  #: weight of the cycles of loads and stores beside other engines, added to the cycles between points
_FULL = 1.3  #: times the spacing: that sum from one point to the next, at most
_LENGTHS = 14  #: instructions that can be cut take this part of the interval, at most
_SHORTEST = 256  #: cycles of an instruction below which none is cut
_NEAREST = 0.5  #: times the spacing: no point lies sooner after another
_FEW = 1 << 14  #: points of a model, about: their table is a part of the image


@dataclass(frozen=True)
class PointLimits:
    """Says what the cancellation points of a model keep to."""

    interval: int  #: cycles that a pause should wait for HALTED, at most
    max_live: int = 0  #: dirty bytes at a point, at most (0: any)
    spill_bound: int = 0  #: bytes spilled to DRAM after which the next empty buffer is a point (0: none is)
    least: int = 1  #: cycles between points
    intervals: bool = True  #: points at intervals; otherwise at spills alone

    @classmethod
    def of(cls, options: Options) -> "PointLimits | None":
        """Return the limits that ``options`` ask for; None if they ask for no points."""
        if not options.cancel_interval:
            return None
        bound = 0 if options.cancel_at == "intervals" else options.cancel_spill_bound
        return cls(options.cancel_interval, options.cancel_max_live, bound, intervals=options.cancel_at != "spills")

    @property
    def spacing(self) -> int:
        """Return the cycles between points: a part of the interval, because a pause also waits for all that the units'
        queues hold at the point, and engines that halt together wait for the last."""
        return max(self.interval // _SPACINGS, self.least)

    @property
    def longest(self) -> int:
        """Return the cycles of an instruction: a pause waits for several."""
        return max(_SHORTEST, self.interval // _LENGTHS)

    def limited(self, cycles: int) -> "PointLimits":
        """Return the same, with points as far apart as leaves them few in a model whose jobs take about ``cycles``."""
        return replace(self, least=max(self.least, cycles // _FEW))


@dataclass(frozen=True)
class CancelCut:
    """A point ahead of task number ``cut``; ``interval``: cycles from passing the point (or job start) before until the
    engine has halted here, as estimated."""

    cut: int
    interval: int


class Timeline:
    """For each cut from 0 to the number of tasks: when the executor passes it, and when everything before has ended;
    ``dram``: cycles of all loads and stores before it while other engines load, too.

    A pause that comes after the executor has passed a point takes effect at the next.
    """

    def __init__(self, schedule: TaskSchedule, params: SocParams) -> None:
        units = (task.unit for task in schedule.tasks)
        self.passed = np.maximum.accumulate(np.array([0, *issued(units, schedule.starts, params)]))
        self.halted = np.array(list(accumulate(schedule.ends, max, initial=0)))
        self.starts = np.array([*schedule.starts, schedule.cycles])
        self.cycles = schedule.cycles
        self.dram = np.array([0, *accumulate(_dram_cycles(task, params) for task in schedule.tasks)])


def _dram_cycles(task: Task, params: SocParams) -> int:
    """Return the cycles of a load or store while every other engine loads."""
    return contended_cycles(task.largest(JobAddresses()), params) if task.op in _DRAM else 0


def choose(
    timeline: Timeline, tasks: list[Task], dirty: npt.NDArray[np.int64], tensors: npt.NDArray[np.int64],
    spills: npt.NDArray[np.int64], limits: PointLimits, barred: npt.NDArray[np.bool_], dram_bytes: int,
) -> list[CancelCut]:  # fmt: skip
    """Return the points of a job. ``dirty``: live bytes of buffers without a copy, ``tensors``: those of tensors in
    LV2; ``spills``: buffers that wait for their way to DRAM; ``barred``: where no point may stand if any other position
    will do; all for each cut. No point is needed at the end, where the hardware halts as well.

    From one point to the next is half to all of the spacing, where instructions are short enough: the cheapest
    position in between by the time it takes to move the dirty bytes and until the units are idle, in which DRAM could
    move ``dram_bytes`` bytes a cycle. Loads and stores count as long as they take beside other engines that load.
    """
    cost = 2 * dirty + dram_bytes * np.maximum(0, timeline.halted - timeline.starts)
    if limits.max_live:
        cost = cost + np.where(dirty + tensors > limits.max_live, np.int64(1) << 40, 0)
    cost = cost + barred * (np.int64(1) << 50)
    moved = _moved(tasks)
    stored = [number for number, task in enumerate(tasks, 1) if _spills(task) and task.reads]
    emptied = [cut for cut in stored if not spills[cut] and not barred[cut]] if limits.spill_bound else []
    points: list[CancelCut] = []
    last = spilled = 0
    while True:
        cut = _interval_point(timeline, cost, last, limits) if limits.intervals else None
        spill = _spill_point(timeline, emptied, moved, last, spilled, cut, limits)
        if spill is not None:
            cut = spilled = spill
        if cut is None:
            return points
        points.append(CancelCut(cut, int(timeline.halted[cut] - timeline.passed[last])))
        last = cut


def _interval_point(timeline: Timeline, cost: npt.NDArray[np.int64], last: int, limits: PointLimits) -> int | None:
    """Return the next cut after ``last``; None if the end of the job comes soon enough, or no instruction is left to
    cut."""
    count = len(timeline.starts) - 1
    begin = int(timeline.starts[last])
    if timeline.cycles - begin <= limits.spacing or last + 1 >= count:
        return None
    # Only what lies near is looked at: jobs have a hundred thousand instructions and thousands of points.
    low, high = _between(timeline.starts[last + 1 : count], limits.spacing, begin)
    if low == count - last - 1:
        return None
    near = slice(last + 1, min(last + 2 + high, count))
    # A few loads can take long where other engines load, too, and longer yet with much to compute behind them.
    apart, waiting = timeline.starts[near] - begin, timeline.dram[near] - timeline.dram[last]
    first, end = _between((apart + _WAITING * waiting) / _FULL, limits.spacing)
    low, high = min(low, first), min(high, end)
    # Behind instructions that take longer than the spacing comes the first position there is.
    high = max(high, low + 1)
    late = timeline.halted[last + 1 + low : last + 1 + high] - timeline.passed[last] > limits.interval
    price = cost[last + 1 + low : last + 1 + high] + late * (np.int64(1) << 45)
    return last + high - int(np.argmin(price[::-1]))  # the last of the cheapest


def _between(
    starts: npt.NDArray[np.int64] | npt.NDArray[np.float64], spacing: int, begin: int = 0
) -> tuple[int, int]:  # fmt: skip
    """Return the first position, and that behind the last, of ascending ``starts`` at which points may lie behind one
    at ``begin``."""
    return int(starts.searchsorted(begin + _NEAREST * spacing)), int(starts.searchsorted(begin + spacing, "right"))


def _moved(tasks: list[Task]) -> npt.NDArray[np.int64]:
    """Return the bytes spilled to DRAM before each cut."""
    moved = [0]
    for task in tasks:
        size = 0
        if _spills(task):
            f = task.numbers
            size = f.get("n2", 1) * f.get("n1", 1) * f.get("n0", 1) * f.get("len", 1)
        moved.append(moved[-1] + size)
    return np.array(moved)


def _spills(task: Task) -> bool:
    """Return whether a task moves to DRAM what the compiler found no room for on chip; outputs go there in any case."""
    return task.op is Op.ST2 and task.numbers.get("dst_seg", 0) == Segment.SCRATCH


def _spill_point(
    timeline: Timeline, emptied: list[int], moved: npt.NDArray[np.int64], last: int, spilled: int, before: int | None,
    limits: PointLimits,
) -> int | None:  # fmt: skip
    """Return the first cut in ``emptied`` after ``last`` (and before ``before``) that the distance allows, and the
    bound on what has been moved since the point ``spilled``."""
    near = _NEAREST * limits.spacing
    for cut in emptied[bisect_right(emptied, last) :]:
        if before is not None and cut > before:
            return None
        apart = timeline.starts[cut] - timeline.starts[last] >= near and timeline.cycles - timeline.starts[cut] >= near
        if apart and moved[cut] - moved[spilled] >= limits.spill_bound:
            return cut
    return None
