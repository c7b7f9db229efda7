"""What the rings of a job hold at a cut through its program order, and which loads bring it again.

A cut ``c`` lies between instructions c - 1 and c: those before have completed, those behind have not started. A buffer
is live there if an instruction before fills it and one behind reads it. Buffers of loaded data are clean. Those in LV2
are copied from DRAM (or dumped, if they consist of many pieces); for those in LV1 and LV0 their loads run again, in
program order, after those that brought *their* source, if that is no longer in place. As the loads of older contents
of a buffer come earlier, what is there in the end is what was there at the cut.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from compiler.emission.preempt.live_bytes import LiveBytes
from compiler.emission.program import BufferFill, JobProgram, Task
from compiler.emission.program.address import Symbol
from compiler.emission.program.extents import Extent, Extents, copied_runs, overwrites
from hw.contract.isa import Op, Segment
from hw.contract.spaces import Space

_LOADED = (Op.LD1, Op.LD0)  #: what fills a buffer with data that loads bring again
_COMPUTED = (Op.MAC, Op.VEC, Op.ST1)  #: what fills a buffer with data that exists nowhere else
_MOST_COPIES = 16  #: runs of one load to LV2 that are listed one by one
_MANY = 64  #: ranges of a buffer above which neighbours are joined
_NEAR = 64  #: cuts in a row for which buffers that may be live are listed
_LV0 = (Space.LV0_ACT, Space.LV0_WGT)
_LEVELS = {Op.LD2: 0, Op.LD1: 1, Op.LD0: 2}


@dataclass
class RingContents:
    """What rings hold at a cut: extents to dump, those to load again by the instructions in ``reload`` (in program
    order), and for each buffer of LV2 the loads of what is to be copied there from DRAM (see
    :class:`StagedRanges`)."""

    dirty: list[Extent] = field(default_factory=list)
    clean: list[Extent] = field(default_factory=list)
    staged: list[list[Task]] = field(default_factory=list)
    reload: list[Task] = field(default_factory=list)


class StagedRanges:
    """The clean ranges of LV2 that buffers of :attr:`RingContents.staged` consist of; each load is looked at once."""

    def __init__(self) -> None:
        self._loads: dict[Task, list[LiveBytes]] = {}
        self._buffers: dict[tuple[Task, int], list[LiveBytes]] = {}  # by first load and how many there are

    def of(self, loads: list[Task]) -> list[LiveBytes]:
        """Those of a buffer that ``loads`` have filled. Neighbours that come from neighbours in DRAM are joined where
        there are many: a strip of a wide image is loaded in hundreds of pieces."""
        key = loads[0], len(loads)
        if key not in self._buffers:
            ranges = [one for load in loads for one in self._of_load(load)]
            self._buffers[key] = ranges if len(ranges) <= _MANY else list(_joined(ranges))
        return self._buffers[key]

    def _of_load(self, load: Task) -> list[LiveBytes]:
        if load not in self._loads:
            source, segment, memory = load.fields["src"], load.numbers["src_seg"], load.numbers["dst_seg"]
            self._loads[load] = [
                LiveBytes(
                    Space.LV2, memory, to, size, False, segment,
                    Symbol(source.anchor, start) if isinstance(source, Symbol) else start,
                )
                for start, to, size in copied_runs(load, _MOST_COPIES) or []
            ]  # fmt: skip
        return self._loads[load]


def _joined(ranges: list[LiveBytes]) -> Iterator[LiveBytes]:
    """Yield the same bytes in fewer ranges; those with symbolic sources stay as they are."""
    first, size = ranges[0], ranges[0].size
    for one in ranges[1:]:
        plain = isinstance(first.source, int) and isinstance(first.address, int)
        if plain and (one.source_segment, one.address, one.source) == (
            first.source_segment, first.address + size, first.source + size,
        ):  # fmt: skip
            size += one.size
        else:
            yield first._replace(size=size)
            first, size = one, one.size
    yield first._replace(size=size)


@dataclass
class _Copy:
    """What brings a buffer again: ``loads``, until cut ``until``, while LV2 has the buffers ``beneath``."""

    loads: list[Task]
    until: int
    beneath: list[BufferFill]


class _Life:
    """The life of a buffer in a job: ``tasks`` fill it, at ``positions``, in program order; it is live from cut
    ``first`` to cut ``last``."""

    __slots__ = ("copy", "extents", "fill", "first", "last", "op", "positions", "tasks", "unchanged")

    def __init__(self, fill: BufferFill, tasks: Iterable[Task], position: Mapping[Task, int]) -> None:
        self.fill, self.op = fill, fill.fillers[0].op
        self.tasks = sorted(tasks, key=position.__getitem__)
        self.positions = [position[task] for task in self.tasks]
        self.first = self.positions[0] + 1
        self.last = max([position[task] for task in fill.readers], default=-1)
        #: What is known of it once so many of its tasks have run: the bytes that the first of them write, one more each
        #: time, and the last cut at which copies of DRAM bring them again.
        self.extents, self.unchanged = list[Extent](), dict[int, int]()
        self.copy: _Copy | None = None

    def count(self, cut: int) -> int:
        """Return how many of its tasks have run at ``cut``."""
        positions = self.positions
        return len(positions) if positions[-1] < cut else bisect_left(positions, cut)


class JobRings:
    """The buffers of one job whose tasks run in ``order``."""

    def __init__(self, job: JobProgram, order: list[Task], extents: Extents) -> None:
        self._order, self._extents = order, extents
        self._position = position = {task: number for number, task in enumerate(order)}
        parts = [(part, self._last_vec(part.tasks)) for part in job.parts or [job]]
        constants = {load: last for part, last in parts for load in part.constants}
        #: Loads of constants in program order, their positions, and those of the last tasks that may read them.
        self._constants = sorted((position[load], last, load) for load, last in constants.items())
        self._kept = job.kept
        self._lives: dict[BufferFill, _Life] = {}
        for task in order:
            fill = task.fills
            if fill and fill not in self._lives and not self._stays(task):
                fillers = [task for task in fill.fillers if task not in constants] if constants else fill.fillers
                self._lives[fill] = _Life(fill, fillers, position)
        #: By stretch of _NEAR cuts in a row the buffers that are live at some of them, by level, and when they are.
        self._near: dict[int, list[tuple[int, int, _Life]]] = defaultdict(list)
        for life in sorted(self._lives.values(), key=lambda life: _LEVELS.get(life.op, -1)):
            for stretch in range(life.first // _NEAR, life.last // _NEAR + 1):
                self._near[stretch].append((life.first, life.last, life))
        #: Of a load: the position of the first store behind it that may change what it read, one past all cuts if none
        #: does; and the last cut at which copies of DRAM bring again what it brought, -1 if they never do.
        self._changes, self._copies = dict[Task, int](), dict[Task, int]()

    def _last_vec(self, tasks: Iterable[Task]) -> int:
        """Return the position of the last of ``tasks`` that may read constants; -1 if there is none."""
        return max((self._position[task] for task in tasks if task.op is Op.VEC), default=-1)

    def _stays(self, task: Task) -> bool:
        """The task loads what is not passed through a ring: weights into their window, a tensor kept in LV2."""
        if task.op is not Op.LD2:
            return False
        kept = self._kept
        inside = kept is not None and kept.base <= task.numbers["dst"] < kept.base + kept.size
        return inside or task.numbers["dst_seg"] == Segment.WINDOWS

    def dirty_bytes(self) -> npt.NDArray[np.int64]:
        """Return the bytes of computed data that are live, for each cut from 0 to the number of tasks (at its end)."""
        change = [0] * (len(self._order) + 2)
        for life in self._lives.values():
            if life.op in _COMPUTED and life.first <= life.last:
                extent = self._extent_of(life, len(life.tasks))
                change[life.first] += extent.high - extent.low
                change[life.last + 1] -= extent.high - extent.low
        return np.cumsum(np.array(change, np.int64))[:-1]

    def spills_held(self) -> npt.NDArray[np.int64]:
        """Return how many buffers of LV2 wait for their way to DRAM, for each cut."""
        change = np.zeros(len(self._order) + 2, np.int64)
        for life in self._lives.values():
            if life.op is Op.ST1 and life.first <= life.last:
                change[life.first] += 1
                change[life.last + 1] -= 1
        return np.cumsum(change)[:-1]

    def at(self, cut: int) -> RingContents | None:
        """Return what is live at ``cut``; None if that can neither be dumped nor loaded again."""
        live = [life for first, last, life in self._near[cut // _NEAR] if first <= cut <= last]
        held, staged, reload = RingContents(), dict[BufferFill, list[Task]](), set[Task]()
        for life in live:
            op, count = life.op, life.count(cut)
            extent = self._extent_of(life, count)
            loads = self._again(life, count, cut, staged) if op in _LOADED else None
            if op is Op.LD2:
                present = life.tasks[:count]
                staged[life.fill] = present
                if self._unchanged_until(life, count) >= cut:
                    held.staged.append(present)
                else:
                    held.dirty.append(extent)
            elif loads is not None:
                reload.update(loads)
                held.clean.append(extent)
            elif extent.space in _LV0:
                return None
            else:
                held.dirty.append(extent)
        constants = [load for at, last, load in self._constants if at < cut <= last]
        reload.update(constants)
        held.clean += [self._extents.written(task) for task in constants]
        return held if self._settle(held, staged, reload, cut) else None

    def _settle(self, held: RingContents, staged: dict[BufferFill, list[Task]], reload: set[Task], cut: int) -> bool:
        """Complete ``held.reload``: a load that runs again as a source only may hit a buffer in LV2 that was brought
        back already, which is then loaded again behind it. False if it may hit what nothing loads."""
        dumped, again = list(held.dirty), dict[tuple[Space, int], list[Extent]]()
        if staged or dumped:
            for task in reload:
                extent = self._extents.written(task)
                again.setdefault((extent.space, extent.segment), []).append(extent)
        for fill, tasks in staged.items():
            extent = self._extent_of(self._lives[fill], len(tasks))
            if _meets(extent, again):
                if any(self._overwritten(task, cut) for task in tasks):
                    return False
                reload.update(tasks)
                dumped = [other for other in dumped if other != extent]
        held.reload = sorted(reload, key=self._position.__getitem__)
        return not any(_meets(extent, again) for extent in dumped)

    def _unchanged_until(self, life: _Life, count: int) -> int:
        """Return the last cut at which copies of DRAM bring again what the first ``count`` loads of a buffer brought;
        -1 if they never do. Answers are kept: a buffer of many loads is asked about at many cuts."""
        if count not in life.unchanged:
            life.unchanged[count] = min(map(self._copied_until, life.tasks[:count]))
        return life.unchanged[count]

    def _copied_until(self, load: Task) -> int:
        if load not in self._copies:
            listed = copied_runs(load, _MOST_COPIES) is not None
            self._copies[load] = self._changed_at(load) if listed else -1
        return self._copies[load]

    def _extent_of(self, life: _Life, count: int) -> Extent:
        """Return the bytes that the first ``count`` of a buffer's tasks write."""
        known = life.extents
        while len(known) < count:
            extent = self._extents.written(life.tasks[len(known)])
            known.append(known[-1].joined(extent) if known else extent)
        return known[count - 1]

    def _again(self, life: _Life, count: int, cut: int, staged: Container[BufferFill]) -> list[Task] | None:
        """Return what brings a buffer again of whose tasks the first ``count`` have run, see :meth:`_bring`."""
        if count == len(life.tasks):
            copy = life.copy or self._copy(life)
            if all([fill in staged for fill in copy.beneath]):
                return copy.loads if cut <= copy.until else None
        return self._bring(life.tasks[:count], cut, staged)

    def _copy(self, life: _Life) -> _Copy:
        """Return what brings all of a buffer again as long as LV2 has what its data pass through there. Answers are
        kept: a buffer is asked about at each cut of its life."""
        if life.copy is None:
            life.copy = copy = _Copy([], len(self._order) + 1, [])
            for task in life.tasks:
                copy.loads.append(task)
                sources = self._buffers_read(task)
                if not sources:
                    copy.until = min(copy.until, self._changed_at(task))
                for source in sources:
                    if source.fillers[0].op is Op.LD2:
                        copy.beneath.append(source)
                        continue
                    above = self._copy(self._lives[source])
                    copy.loads += above.loads
                    copy.beneath += above.beneath
                    copy.until = min(copy.until, above.until)
        return life.copy

    def _bring(self, tasks: Iterable[Task], cut: int, staged: Container[BufferFill]) -> list[Task] | None:
        """``tasks`` and the loads of their sources; None if a source has been overwritten since. ``staged``: buffers in
        LV2 that are brought back before."""
        loads: list[Task] = []
        for task in tasks:
            loads.append(task)
            sources = self._buffers_read(task)
            if not sources and self._overwritten(task, cut):
                return None
            for fill in sources:
                above = [] if fill in staged else self._bring(self._lives[fill].tasks, cut, staged)
                if above is None:
                    return None
                loads += above
        return loads

    def _buffers_read(self, task: Task) -> list[BufferFill]:
        """Return the buffers of rings that ``task`` reads."""
        return [fill for fill in task.reads if fill in self._lives]

    def _overwritten(self, load: Task, cut: int) -> bool:
        """A store between ``load`` and ``cut`` may have changed what it read."""
        return self._changed_at(load) < cut

    def _changed_at(self, load: Task) -> int:
        if load not in self._changes:
            self._changes[load] = self._change(load)
        return self._changes[load]

    def _change(self, load: Task) -> int:
        origin, first = self._extents.source(load), self._position[load]
        if origin is not None and load.op is not Op.LD0 and self._stores_to(origin):
            for at, task in self._stores[origin.segment]:
                near = at > first and self._extents.written(task).meets(origin)
                if near and overwrites(task, load, self._extents.params):
                    return at
        return len(self._order) + 1

    def _stores_to(self, origin: Extent) -> bool:
        hull = self._stored.get(origin.segment)
        return hull is not None and hull.meets(origin)

    @cached_property
    def _stores(self) -> dict[int, list[tuple[int, Task]]]:
        """Stores to tensors, with their positions, by segment."""
        stores: dict[int, list[tuple[int, Task]]] = defaultdict(list)
        for at, task in enumerate(self._order):
            if task.op is Op.ST2 or (task.op is Op.ST1 and task.fills is None):
                stores[task.numbers.get("dst_seg", 0)].append((at, task))
        return stores

    @cached_property
    def _stored(self) -> dict[int, Extent]:
        return {segment: self._extent([task for _, task in tasks]) for segment, tasks in self._stores.items()}

    def _extent(self, tasks: list[Task]) -> Extent:
        if len(tasks) == 1:
            return self._extents.written(tasks[0])
        extents = [self._extents.written(task) for task in tasks]
        low, high = min(extent.low for extent in extents), max(extent.high for extent in extents)
        return extents[0]._replace(low=low, high=high)


def _meets(extent: Extent, others: Mapping[tuple[Space, int], list[Extent]]) -> bool:
    """Return whether an extent shares bytes with any of ``others``, which are listed by where they lie."""
    near = others.get((extent.space, extent.segment))
    return near is not None and any(extent.low < other.high and other.low < extent.high for other in near)
