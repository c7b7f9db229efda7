"""What LV2 holds at a cut apart from the buffers of rings: homes of tensors, a tensor kept in staging, weights.

A home is live from the layer that first writes to it to the last that reads it. In the first of these layers only what
has been written so far is, in the last only what is still to be read. With several engines both layers count in full,
because the parts that the other engines write and read are not known here.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence

from compiler.backend.memory.tensor_placement import TensorBuffer, TensorPlacement
from compiler.backend.preempt.extents import Extent, source, written
from compiler.backend.program.job import JobProgram
from compiler.backend.program.task import Task
from hw.contract.image import LiveRange
from hw.contract.isa import Op, Segment
from hw.contract.params import SocParams
from hw.contract.spaces import Space

Bounds = tuple[int, int]  #: first byte and one past the last; equal if there is none
_NOTHING = (0, 0)


def hull(bounds: Iterable[Bounds]) -> Bounds:
    """The smallest bounds around all."""
    filled = [pair for pair in bounds if pair[0] < pair[1]]
    return (min(low for low, _ in filled), max(high for _, high in filled)) if filled else _NOTHING


class AccessHulls:
    """Bounds of accesses to one place by their position in program order; positions must rise."""

    def __init__(self) -> None:
        self._at: list[int] = []
        self._bounds: list[Bounds] = []
        self._before: list[Bounds] = [_NOTHING]
        self._after: list[Bounds] | None = None

    def add(self, position: int, bounds: Bounds) -> None:
        """Note an access."""
        self._at.append(position)
        self._bounds.append(bounds)
        self._before.append(hull((self._before[-1], bounds)))

    def before(self, cut: int) -> Bounds:
        """Hull of the accesses before ``cut``."""
        return self._before[bisect_left(self._at, cut)]

    def after(self, cut: int) -> Bounds:
        """Hull of the others."""
        if self._after is None:
            after = [_NOTHING]
            for bounds in reversed(self._bounds):
                after.append(hull((after[-1], bounds)))
            self._after = after[::-1]
        return self._after[bisect_left(self._at, cut)]

    @property
    def all(self) -> Bounds:
        """Hull of all accesses."""
        return self._before[-1]


class JobLv2Accesses:
    """Where one job reads and writes LV2 outside its rings."""

    def __init__(
        self, job: JobProgram, order: Sequence[Task], homes: Sequence[TensorBuffer], params: SocParams
    ) -> None:
        self.job = job
        self.reads: dict[int, AccessHulls] = defaultdict(AccessHulls)  # by index of the home
        self.writes: dict[int, AccessHulls] = defaultdict(AccessHulls)
        self.kept_reads, self.kept_loads = AccessHulls(), AccessHulls()
        self.weight_reads, self.weight_loads = AccessHulls(), AccessHulls()
        for position, task in enumerate(order):
            read, write = source(task) if task.op in (Op.LD1, Op.ST2) else None, None
            if task.op in (Op.LD2, Op.ST1):
                write = written(task, params)
            for extent, homes_of, kept, weights in (
                (read, self.reads, self.kept_reads, self.weight_reads),
                (write, self.writes, self.kept_loads, self.weight_loads),
            ):
                if extent is not None:
                    self._note(position, extent, homes, homes_of, kept, weights)

    def _note(
        self, position: int, extent: Extent, homes: Sequence[TensorBuffer], homes_of: dict[int, AccessHulls],
        kept: AccessHulls,
        weights: AccessHulls,
    ) -> None:  # fmt: skip
        bounds, resident = (extent.low, extent.high), self.job.resident
        if extent.segment == Segment.WINDOWS:
            weights.add(position, bounds)
        elif resident and resident.base <= extent.low < resident.base + resident.size:
            kept.add(position, bounds)
        else:
            for number, home in enumerate(homes):
                if home.offset <= extent.low < home.offset + home.size:
                    homes_of[number].add(position, bounds)


class LayerLv2:
    """LV2 while one layer runs. ``jobs``: its jobs with their program order."""

    def __init__(
        self, homes: TensorPlacement, layer: int, jobs: Sequence[tuple[JobProgram, Sequence[Task]]], params: SocParams,
        engines: int,
    ) -> None:  # fmt: skip
        unique = {id(home): home for home in homes.by_tensor.values()}.values()
        on_chip = (home for home in unique if home.segment == Segment.LV2 and home.size)
        self._homes = [home for home in on_chip if home.start <= layer <= home.end]
        self._layer, self._alone = layer, engines == 1
        self._jobs = [JobLv2Accesses(job, order, self._homes, params) for job, order in jobs]

    def at(self, number: int, cut: int, reload: Sequence[Task]) -> list[LiveRange]:
        """Live ranges at ``cut`` of the layer's job ``number`` (once its addresses are fixed); ``reload`` will run
        again and needs its sources."""
        again = [(task.fields.get("src_seg", 0), source(task)) for task in reload if task.op is Op.LD1]
        sources = [(segment, (extent.low, extent.high)) for segment, extent in again if extent]
        ranges = self._homes_at(number, cut, [bounds for segment, bounds in sources if segment == Segment.LV2])
        ranges += self._kept_at(number, cut, [bounds for segment, bounds in sources if segment == Segment.LV2])
        return ranges + self._weights_at(
            number, cut, [bounds for segment, bounds in sources if segment == Segment.WINDOWS]
        )

    def before(self, number: int) -> list[LiveRange]:
        """Live ranges before job ``number`` starts, its weight window left out."""
        return self._homes_at(number, 0, []) + self._kept_at(number, 0, [])

    def _homes_at(self, number: int, cut: int, again: list[Bounds]) -> list[LiveRange]:
        ranges = []
        for index, home in enumerate(self._homes):
            low, high = home.offset, home.offset + home.size
            if self._alone and home.start == self._layer:
                past = [job.writes[index].all for job in self._jobs[:number]]
                low, high = _common((low, high), hull([*past, self._jobs[number].writes[index].before(cut)]))
            if self._alone and home.end == self._layer:
                own = [b for b in again if home.offset <= b[0] < home.offset + home.size]
                later = self._later(number, cut, index)
                low, high = _common((low, high), hull([*own, *later]))
            if low < high:
                ranges.append(LiveRange(Space.LV2, Segment.LV2, low, high - low, dirty=True))
        return ranges

    def _later(self, number: int, cut: int, home: int) -> list[Bounds]:
        """Reads of a home behind ``cut``."""
        return [self._jobs[number].reads[home].after(cut), *(job.reads[home].all for job in self._jobs[number + 1 :])]

    def _kept_at(self, number: int, cut: int, again: list[Bounds]) -> list[LiveRange]:
        """The tensor that stays in staging: what has been loaded of it and will be read."""
        accesses = self._jobs[number]
        kept = accesses.job.resident
        if kept is None:
            return []
        present = hull([(kept.base, kept.base + accesses.job.resident_bytes), accesses.kept_loads.before(cut)])
        own = [bounds for bounds in again if kept.base <= bounds[0] < kept.base + kept.size]
        later = [job.kept_reads.all for job in self._jobs[number + 1 :] if job.job.resident is kept]
        low, high = _common(present, hull([*own, accesses.kept_reads.after(cut), *later]))
        offset = kept.source.offset + kept.first + low - kept.base
        if low >= high:
            return []
        return [LiveRange(Space.LV2, Segment.LV2, low, high - low, False, kept.source.segment, offset)]

    def _weights_at(self, number: int, cut: int, again: list[Bounds]) -> list[LiveRange]:
        """The job's weights in its window. Reads were noted relative to the window."""
        accesses = self._jobs[number]
        job = accesses.job
        own = [(low - job.window_at, high - job.window_at) for low, high in again]
        low, high = hull([accesses.weight_reads.after(cut), *own])
        if job.own_loads:
            low, high = _common((low, high), accesses.weight_loads.before(cut))
        if low >= high:
            return []
        return [
            LiveRange(
                Space.LV2, Segment.WINDOWS, job.window_at + low, high - low, False, Segment.WEIGHTS, job.blob_at + low
            )
        ]


def _common(a: Bounds, b: Bounds) -> Bounds:
    low, high = max(a[0], b[0]), min(a[1], b[1])
    return (low, high) if low < high else _NOTHING
