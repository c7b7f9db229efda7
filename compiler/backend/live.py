"""What the rings of a job hold at a cut through its program order, and which loads bring it again.

A cut ``c`` lies between instructions c - 1 and c: those before have completed, those behind have not started. A buffer
is live there if an instruction before fills it and one behind reads it. Buffers of loaded data are clean: their loads
run again, in program order, after those that brought *their* source, if that is no longer in place. As the loads of
older contents of a buffer come earlier, what is there in the end is what was there at the cut.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from compiler.backend.extents import Extent, overwrites, source, written
from compiler.backend.job import WINDOW, Job
from compiler.backend.tasks import Fill, Task
from hw.isa import Op
from hw.params import SocParams

_COMPUTED = (Op.MAC, Op.VEC, Op.ST1)  #: what fills a buffer with data that exists nowhere else
_LV0 = ("lv0_act", "lv0_wgt")
_LEVELS = {Op.LD2: 0, Op.LD1: 1, Op.LD0: 2}


@dataclass
class Held:
    """What rings hold at a cut: extents to dump and to load again, and the loads that do, in program order."""

    dirty: list[Extent]
    clean: list[Extent]
    reload: list[Task]


class Buffers:
    """The buffers of one job whose tasks run in ``order``."""

    def __init__(self, job: Job, order: list[Task], params: SocParams) -> None:
        self._order, self._params = order, params
        self._position = {task: number for number, task in enumerate(order)}
        self._constants = sorted(job.constants, key=self._position.__getitem__)
        self._last_vec = max((i for i, task in enumerate(order) if task.op is Op.VEC), default=-1)
        self._resident = job.resident
        constants = set(job.constants)
        self._fillers: dict[Fill, list[Task]] = {}
        for task in order:
            fill = task.fills
            if fill and fill not in self._fillers and not self._stays(task):
                self._fillers[fill] = [task for task in fill.fillers if task not in constants]
        self._life = {fill: self._cuts(fill) for fill in self._fillers}

    def _stays(self, task: Task) -> bool:
        """The task loads what is not passed through a ring: weights into their window, a tensor kept in LV2."""
        if task.op is not Op.LD2:
            return False
        kept = self._resident
        inside = kept is not None and kept.base <= task.fields["dst"] < kept.base + kept.size
        return inside or task.fields["dst_seg"] == WINDOW

    def _cuts(self, fill: Fill) -> tuple[int, int]:
        """First and last cut at which a buffer is live; the first is behind the last if none."""
        first = min(self._position[task] for task in self._fillers[fill])
        return first + 1, max((self._position[task] for task in fill.readers), default=-1)

    def dirty_bytes(self) -> npt.NDArray[np.int64]:
        """Bytes of computed data that are live, for each cut from 0 to the number of tasks (at its end)."""
        change = np.zeros(len(self._order) + 2, np.int64)
        for fill, (first, last) in self._life.items():
            if fill.fillers[0].op in _COMPUTED and first <= last:
                extent = self._extent(self._fillers[fill])
                change[first] += extent.high - extent.low
                change[last + 1] -= extent.high - extent.low
        return np.cumsum(change)[:-1]

    def spills_held(self) -> npt.NDArray[np.int64]:
        """How many buffers of LV2 wait for their way to DRAM, for each cut."""
        change = np.zeros(len(self._order) + 2, np.int64)
        for fill, (first, last) in self._life.items():
            if fill.fillers[0].op is Op.ST1 and first <= last:
                change[first] += 1
                change[last + 1] -= 1
        return np.cumsum(change)[:-1]

    def at(self, cut: int) -> Held | None:
        """What is live at ``cut``; None if that can neither be dumped nor loaded again."""
        live = [fill for fill, (first, last) in self._life.items() if first <= cut <= last]
        held, kept = Held([], [], []), set[Fill]()
        reload: set[Task] = set()
        for fill in sorted(live, key=lambda fill: _LEVELS.get(fill.fillers[0].op, -1)):
            present = [task for task in self._fillers[fill] if self._position[task] < cut]
            extent = self._extent(present)
            loads = None if fill.fillers[0].op in _COMPUTED else self._bring(present, cut, kept)
            if loads is not None:
                reload.update(loads)
                held.clean.append(extent)
            elif extent.space in _LV0:
                return None
            else:
                held.dirty.append(extent)
                kept.add(fill)
        constants = [task for task in self._constants if self._position[task] < cut <= self._last_vec]
        reload.update(constants)
        held.clean += [written(task, self._params) for task in constants]
        held.reload = sorted(reload, key=self._position.__getitem__)
        # A load that runs again only as a source must not hit what the dump brings back.
        again = [written(task, self._params) for task in held.reload]
        return None if any(a.meets(b) for a in again for b in held.dirty) else held

    def _bring(self, tasks: Iterable[Task], cut: int, kept: set[Fill]) -> list[Task] | None:
        """``tasks`` and the loads of their sources; None if a source has been overwritten since. ``kept``: buffers that
        the dump brings back."""
        loads: list[Task] = []
        for task in tasks:
            loads.append(task)
            sources = [fill for fill in task.reads if fill in self._fillers]
            if not sources and self._overwritten(task, cut):
                return None
            for fill in sources:
                above = [] if fill in kept else self._bring(self._fillers[fill], cut, kept)
                if above is None:
                    return None
                loads += above
        return loads

    def _overwritten(self, load: Task, cut: int) -> bool:
        """A store between ``load`` and ``cut`` may have changed what it read."""
        origin = source(load)
        if origin is None or load.op is Op.LD0 or not self._stores_to(origin):
            return False
        first = self._position[load]
        stores = [task for at, task in self._stores[origin.segment] if first < at < cut]
        return any(overwrites(task, load, self._params) for task in stores)

    def _stores_to(self, origin: Extent) -> bool:
        hull = self._stored.get(origin.segment)
        return hull is not None and hull.meets(origin)

    @cached_property
    def _stores(self) -> dict[int, list[tuple[int, Task]]]:
        """Stores to the homes of tensors, with their positions, by segment."""
        stores: dict[int, list[tuple[int, Task]]] = defaultdict(list)
        for at, task in enumerate(self._order):
            if task.op is Op.ST2 or (task.op is Op.ST1 and task.fills is None):
                stores[task.fields.get("dst_seg", 0)].append((at, task))
        return stores

    @cached_property
    def _stored(self) -> dict[int, Extent]:
        return {segment: self._extent([task for _, task in tasks]) for segment, tasks in self._stores.items()}

    def _extent(self, tasks: list[Task]) -> Extent:
        extent = written(tasks[0], self._params)
        for task in tasks[1:]:
            extent = extent.joined(written(task, self._params))
        return extent
