"""What the tasks of a region wait for: within an operator by its rings, between operators by the bytes they touch.

The operators of a region have an order, and their tasks run as if one operator followed the other. A task must wait for
tasks of earlier operators that wrote a byte it reads or writes, or that read a byte it writes. Bytes in LV2 and DRAM
are told apart exactly, so that an operator may read the rows of a tensor that are there while others are being made.
"""

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from compiler.emission.program.extents import Extent, boxes_outside, source, written, written_box
from compiler.emission.program.grains import grain_of, in_grains, merged
from compiler.emission.program.job import JobProgram
from compiler.emission.program.task import BufferFill, Task
from compiler.plan.memory.tensor_view import PixelBox, TensorView
from hw.contract.isa import Op, Segment, Unit
from hw.contract.params import SocParams
from hw.contract.spaces import Space
from sim.functional import Box

Place = tuple[Space, int]  #: a memory, or a segment of one
CONSTANTS: Place = (Space.DRAM, Segment.WEIGHTS)  #: which nothing writes
_INSIDE = (Op.LD0, Op.MAC, Op.VEC)  #: touch memories of their engine alone


class TaskAccess(NamedTuple):
    """Bytes (rows of accumulators count as bytes) that a task reads or writes."""

    place: Place
    box: Box
    write: bool


class _Touched(NamedTuple):
    """Is what tasks touch: different ``accesses``, and by task the numbers of its own."""

    accesses: list[TaskAccess]
    by_task: list[list[int]]

    @classmethod
    def of(cls, accesses: Iterable[Iterable[TaskAccess]]) -> "_Touched":
        """Return the accesses of tasks, of which many are the same: all that read a buffer read what filled it."""
        numbers: dict[TaskAccess, int] = {}
        by_task = [[numbers.setdefault(one, len(numbers)) for one in task] for task in accesses]
        return cls(list(numbers), by_task)


@dataclass
class _Log:
    """For each grain from ``first`` on the latest task, by its number, of one unit of one operator that touched it."""

    numbers: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    first: int = 0
    low: int = 1 << 62
    high: int = 0

    def note(self, box: Box, number: int) -> None:
        low, high = box.bounds()
        self.low, self.high = min(self.low, low), max(self.high, high)
        self._view(box, low, high)[...] = number

    def latest(self, box: Box) -> int:
        """Return the highest number among the grains of ``box``; 0 if none was touched."""
        low, high = box.bounds()
        if low >= self.high or high <= self.low:
            return 0
        return int(self._view(box, low, high).max())

    def _view(self, box: Box, low: int, high: int) -> npt.NDArray[np.int32]:
        """Return the numbers of ``box``, which reaches from ``low`` to ``high``. There is room for what was asked
        for and as much again, and none for all of memory before it."""
        if not len(self.numbers):
            self.first = low
        end = self.first + len(self.numbers)
        if low < self.first or high > end:
            least, most = min(low, self.first), max(high, end)
            begin = max(0, 2 * least - most) if low < self.first else least
            grown = np.zeros((2 * most - least if high > end else most) - begin, np.int32)
            grown[self.first - begin : end - begin] = self.numbers
            self.numbers, self.first = grown, begin
        if box.strides == (1,):
            return self.numbers[low - self.first : high - self.first]
        return box._replace(offset=box.offset - self.first).view(self.numbers)


Needs = dict[Task, set[Task]]


def dependencies(parts: Sequence[JobProgram], params: SocParams) -> Needs:
    """Return the tasks that each task must wait for. ``parts``: the operators of one engine, in order."""
    needs: Needs = {}
    logs: list[dict[tuple[Place, bool, Unit], _Log]] = []
    tasks: list[dict[Unit, list[Task]]] = []
    for part, touched in zip(parts, _in_grains([_accesses(part, params) for part in parts]), strict=True):
        needs |= ring_dependencies(part.tasks)
        met = [
            [task for earlier, theirs in zip(logs, tasks, strict=True) for task in _meeting(access, earlier, theirs)]
            for access in touched.accesses
        ]
        by_unit: dict[Unit, list[Task]] = defaultdict(list)
        last: dict[tuple[Unit, int], int] = {}  # by unit and access: number of the last task
        for task, numbers in zip(part.tasks, touched.by_task, strict=True):
            mine = by_unit[task.unit]
            mine.append(task)
            for number in numbers:
                if met[number]:
                    needs[task].update(met[number])
                last[task.unit, number] = len(mine)
        if part is not parts[-1]:  # behind which nothing waits for it
            logs.append(_logged(touched.accesses, last))
            tasks.append(by_unit)
    return needs


def _accesses(part: JobProgram, params: SocParams) -> _Touched:
    known: dict[TaskAccess, int] = {}

    def numbers(accesses: Iterable[TaskAccess]) -> list[int]:
        return [known.setdefault(one, len(known)) for one in accesses]

    filled: dict[BufferFill, list[int]] = {}  # by buffer what loads have written, for all that read it
    constants: list[int] | None = None
    again: dict[Hashable, list[int]] = {}  # by what is inside an engine, where rings repeat themselves
    by_task = list[list[int]]()
    for task in part.tasks:
        if task.op not in _INSIDE:
            by_task.append(numbers(_own_accesses(task, params)))
            continue
        key = (task.op, *task.numbers.items())
        if key not in again:
            again[key] = numbers(_own_accesses(task, params))
        mine = again[key]
        if task.op is not Op.LD0:
            mine = [*mine]
            for fill in task.reads:
                if fill not in filled:
                    filled[fill] = numbers(_filled(load, params) for load in fill.fillers)
                mine += filled[fill]
            if task.op is Op.VEC:
                if constants is None:
                    constants = numbers(_filled(load, params) for load in part.constants)
                mine += constants
        by_task.append(mine)
    return _Touched(list(known), by_task)


def _in_grains(parts: Sequence[_Touched]) -> list[_Touched]:
    """Return the same with as large grains for bytes, in each memory, as all that is touched there consists of: logs
    have a number for each."""
    touched: dict[Place, list[Box]] = defaultdict(list)
    for access in (access for part in parts for access in part.accesses):
        touched[access.place].append(access.box)
    grains = {place: grain_of(boxes) for place, boxes in touched.items()}
    return [
        part._replace(accesses=[one._replace(box=in_grains(one.box, grains[one.place])) for one in part.accesses])
        for part in parts
    ]


def _logged(
    accesses: Sequence[TaskAccess], last: Mapping[tuple[Unit, int], int]
) -> dict[tuple[Place, bool, Unit], _Log]:  # fmt: skip
    """Return the logs of an operator, of whose units the ``last`` task with each access is known."""
    logs: dict[tuple[Place, bool, Unit], _Log] = defaultdict(_Log)
    for (unit, number), task in sorted(last.items(), key=lambda one: one[1]):  # later ones over earlier ones
        access = accesses[number]
        logs[access.place, access.write, unit].note(access.box, task)
    return logs


def _meeting(
    access: TaskAccess, logs: Mapping[tuple[Place, bool, Unit], _Log], tasks: Mapping[Unit, Sequence[Task]]
) -> Iterator[Task]:
    """Yield the latest task of each unit that ``access`` must come after."""
    for (place, wrote, unit), log in logs.items():
        if place == access.place and (wrote or access.write):
            number = log.latest(access.box)
            if number:
                yield tasks[unit][number - 1]


def ring_dependencies(tasks: Sequence[Task]) -> Needs:
    """Return what the semaphores of one operator say: its n-th wait for one is for the task that signals it the n-th
    time."""
    signalled: dict[int, deque[Task]] = defaultdict(deque)
    for task in tasks:
        for sem in task.signals:
            signalled[sem].append(task)
    return {task: {signalled[sem].popleft() for sem in sorted(task.waits)} for task in tasks}


def _own_accesses(task: Task, params: SocParams) -> Iterator[TaskAccess]:
    """Yield what the fields of ``task`` say that it touches, constant weights in DRAM left out: not what MAC and VEC
    read, who read buffers of rings, and VEC the constants of its operator."""
    yield from _outside(task)
    if task.op not in (Op.LD2, Op.ST1, Op.ST2):
        yield _access(written(task, params), write=True)
    if task.op in (Op.LD0, Op.ST1) and (origin := source(task)) is not None:
        yield _access(origin, write=False)


def _outside(task: Task) -> Iterator[TaskAccess]:
    """Yield the bytes of LV2 and DRAM among them."""
    for place, box, write in boxes_outside(task):
        if write or place != CONSTANTS:
            yield TaskAccess(place, merged(box), write)


def _access(extent: Extent, *, write: bool) -> TaskAccess:
    return TaskAccess((extent.space, extent.segment), Box(extent.low, (extent.high - extent.low,), (1,)), write)


def _filled(load: Task, params: SocParams) -> TaskAccess:
    """Return the read of all that ``load`` has written."""
    return _access(written(load, params), write=False)


def apart(engines: Sequence[Sequence[JobProgram]]) -> bool:
    """Return whether no engine writes a byte of LV2 or DRAM that another touches, among jobs that run side by side."""
    logs: list[dict[tuple[Place, bool], _Log]] = []
    touched = [
        _Touched.of(
            (one for one in _outside(task) if one.place[1] != Segment.WINDOWS)
            for part in parts
            for task in part.tasks
            if task.op not in _INSIDE
        )
        for parts in engines
    ]
    for number, tasks in enumerate(_in_grains(touched)):
        mine: dict[tuple[Place, bool], _Log] = defaultdict(_Log)
        for access in tasks.accesses:
            for theirs in logs:
                if any(
                    log.latest(access.box)
                    for (place, wrote), log in theirs.items()
                    if place == access.place and (wrote or access.write)
                ):
                    return False
            if number + 1 < len(engines):
                mine[access.place, access.write].note(access.box, 1)
        logs.append(mine)
    return True


class Made:
    """Bytes of segment 6, of ``params.lv2_bytes``."""

    def __init__(self, params: SocParams) -> None:
        self._times = np.zeros(params.lv2_bytes, np.int32)
        self._engines = np.full(params.lv2_bytes, -1, np.int8)

    def add(self, engine: int, tasks: Sequence[Task], ends: Mapping[Task, int]) -> None:
        """Note the stores among ``tasks`` of an engine, which end at ``ends``."""
        for task in tasks:
            if task.op is Op.ST1 and task.numbers["dst_seg"] == Segment.LV2:
                box = written_box(task)
                box.view(self._times)[...] = ends[task]
                box.view(self._engines)[...] = engine

    def ready(self, view: TensorView, box: PixelBox) -> int:
        """When the last byte in LV2 of ``box`` of a tensor is made; 0 if that was before the region, or it has none."""
        return max((int(where.view(self._times).max()) for where in _in_lv2(view, box) if where is not None), default=0)

    def engine(self, view: TensorView, box: PixelBox) -> int | None:
        """Return the engine that makes all of ``box``; None if several do, -1 if it was made before the region, or is
        not in LV2."""
        found = set[int]()
        for where in _in_lv2(view, box):
            engines = where.view(self._engines) if where is not None else np.full(1, -1)
            first = int(engines.flat[0])
            if not (engines == first).all():
                return None
            found.add(first)
        return found.pop() if len(found) == 1 else None


def _in_lv2(view: TensorView, box: PixelBox) -> Iterator[Box | None]:
    """Yield the bytes that each piece of ``view`` has of ``box`` in LV2; None for one that has none there."""
    for _, piece, part in view.parts_of(box):
        yield piece.bytes_of(part) if piece.on_chip else None
