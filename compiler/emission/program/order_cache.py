"""Orders and semaphores of the tasks of regions, found once for jobs whose tasks wait for each other alike.

Regions of one shape, such as the heads of an attention, touch other bytes of LV2 and DRAM, but those bytes meet in the
same way. Bytes outside of an engine are therefore told apart by *islands*: ranges of a memory that nothing reaches
across. Where an island lies says nothing about which of its tasks meet.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from compiler.emission.program.dependencies import CONSTANTS, Place
from compiler.emission.program.extents import boxes_outside
from compiler.emission.program.job import JobProgram
from compiler.emission.program.semaphores import Sem
from compiler.emission.program.task import BufferFill, Task
from hw.contract.isa import Op
from hw.contract.params import SocParams

#: By operation that touches something outside of its engine the addresses there, as if they were 0.
_ADDRESSES = {Op.LD2: {"src": 0, "dst": 0}, Op.ST2: {"src": 0, "dst": 0}, Op.LD1: {"src": 0}, Op.ST1: {"dst": 0}}
_MOST = 32  #: jobs of which the answers are kept


class OrderedTasks(NamedTuple):
    """Holds tasks in program order, with their semaphores, and the ``cycles`` that they take."""

    tasks: list[Task]
    cycles: int


class _Answer(NamedTuple):
    """Holds the numbers of tasks in program order, by place there what they wait for and signal, and the cycles."""

    order: list[int]
    waits: list[frozenset[Sem]]
    signals: list[frozenset[Sem]]
    cycles: int


_ANSWERS: dict[Hashable, _Answer] = {}


def ordered(
    parts: Sequence[JobProgram], params: SocParams, engines: int, order: Callable[[], OrderedTasks]
) -> OrderedTasks:  # fmt: skip
    """Return what ``order`` returns for the tasks of ``parts``, which depends on their instructions, buffers and the
    bytes that they share alone, and give them the semaphores that it gives: it is not asked about equal ones again."""
    tasks = [task for part in parts for task in part.tasks]
    number = {task: at for at, task in enumerate(tasks)}
    islands = _Islands(tasks)
    key = params, engines, *(_content(part, number, islands) for part in parts)
    if key in _ANSWERS:
        answer = _ANSWERS[key]
        in_order = [tasks[at] for at in answer.order]
        for task, waits, signals in zip(in_order, answer.waits, answer.signals, strict=True):
            task.waits, task.signals = set(waits), set(signals)
        return OrderedTasks(in_order, answer.cycles)
    found = order()
    if len(_ANSWERS) == _MOST:
        _ANSWERS.pop(next(iter(_ANSWERS)))
    _ANSWERS[key] = _Answer(
        [number[task] for task in found.tasks],
        [frozenset(task.waits) for task in found.tasks],
        [frozenset(task.signals) for task in found.tasks],
        found.cycles,
    )
    return found


class _Islands:
    """Holds the bytes outside of an engine that ``tasks`` touch, as islands numbered in the order of first touches.
    Constant weights in DRAM, which nothing writes, are none."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._touched: dict[Task, list[tuple[Place, int]]] = {}
        hulls: dict[Place, set[tuple[int, int]]] = defaultdict(set)
        for task in tasks:
            if task.op in _ADDRESSES:
                mine = self._touched[task] = []
                for place, box, write in boxes_outside(task):
                    if write or place != CONSTANTS:
                        low, high = box.bounds()
                        hulls[place].add((low, high))
                        mine.append((place, low))
        self._starts = {place: _starts(sorted(those)) for place, those in hulls.items()}
        self._numbers: dict[tuple[Place, int], int] = {}

    def of(self, task: Task) -> list[int]:
        """Return where each range lies that ``task`` touches: the number of its island, and its place there."""
        where = list[int]()
        for place, low in self._touched[task]:
            starts = self._starts[place]
            start = starts[bisect_right(starts, low) - 1]
            where += [self._numbers.setdefault((place, start), len(self._numbers)), low - start]
        return where


def _starts(hulls: Sequence[tuple[int, int]]) -> list[int]:
    """Return where the islands begin that ``hulls`` make up, which are in order."""
    starts, end = list[int](), -1
    for low, high in hulls:
        if not starts or low >= end:
            starts.append(low)
        end = max(end, high)
    return starts


def _content(part: JobProgram, number: dict[Task, int], islands: _Islands) -> Hashable:
    """Return the instructions of ``part`` with their semaphores and islands, by the ``number`` of tasks what fills each
    buffer that they read, and the loads of constants."""
    fills: dict[BufferFill, int] = {}
    content = list[Hashable]()
    for task in part.tasks:
        numbers, where = task.numbers, tuple[int, ...]()
        if task.op in _ADDRESSES:
            numbers = {**numbers, **_ADDRESSES[task.op]}
            where = tuple(islands.of(task))
        reads = [fills.setdefault(fill, len(fills)) for fill in task.reads]
        semaphores = frozenset(task.waits), frozenset(task.signals)
        content.append((task.op, tuple(numbers), tuple(numbers.values()), where, *semaphores, *reads))
    filled = tuple(tuple(map(number.__getitem__, fill.fillers)) for fill in fills)
    return tuple(content), filled, tuple(map(number.__getitem__, part.constants))
