"""What LV2 holds at a cut apart from the buffers of rings: tensors, an input kept in staging, weights.

The buffer of a tensor is live from the layer that first writes to it to the last that reads it. In the first of these
layers only what has been written so far is, in the last only what is still to be read. With several engines both layers
count in full, because the parts that the other engines write and read are not known here. In a placed model a layer
does not know how far those beside it are: a buffer is live unless the order of the layers says that it is not.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property

from compiler.emission.preempt.live_bytes import LiveBytes
from compiler.emission.program import JobProgram, Task
from compiler.emission.program.address import Anchor, Symbol
from compiler.emission.program.extents import Extent, Extents
from compiler.plan.memory.tensor_placement import TensorBuffer, TensorPlacement
from hw.contract.isa import Op, Segment
from hw.contract.spaces import Space

ByteRange = tuple[int, int]  #: first byte and one past the last; equal if there is none
_NOTHING = (0, 0)
_INSIDE = (Op.LD0, Op.MAC, Op.VEC)  #: never touch LV2


def hull(bounds: Iterable[ByteRange]) -> ByteRange:
    """The smallest bounds around all."""
    filled = [pair for pair in bounds if pair[0] < pair[1]]
    return (min(low for low, _ in filled), max(high for _, high in filled)) if filled else _NOTHING


class AccessHulls:
    """ByteRange of accesses to one place by their position in program order; positions must rise."""

    def __init__(self) -> None:
        self._at: list[int] = []
        self._bounds: list[ByteRange] = []
        self._before: list[ByteRange] = [_NOTHING]
        self._after: list[ByteRange] | None = None

    def add(self, position: int, bounds: ByteRange) -> None:
        """Note an access."""
        self._at.append(position)
        self._bounds.append(bounds)
        self._before.append(hull((self._before[-1], bounds)))

    def before(self, cut: int) -> ByteRange:
        """Return the hull of the accesses before ``cut``."""
        return self._before[bisect_left(self._at, cut)]

    def after(self, cut: int) -> ByteRange:
        """Hull of the others."""
        if self._after is None:
            after = [_NOTHING]
            for bounds in reversed(self._bounds):
                after.append(hull((after[-1], bounds)))
            self._after = after[::-1]
        return self._after[bisect_left(self._at, cut)]

    @property
    def all(self) -> ByteRange:
        """Return the hull of all accesses."""
        return self._before[-1]


class JobLv2Accesses:
    """Where one job reads and writes LV2 outside its rings."""

    def __init__(
        self, job: JobProgram, order: Sequence[Task], buffers: Sequence[TensorBuffer], extents: Extents
    ) -> None:
        self.job = job
        self.reads: dict[int, AccessHulls] = defaultdict(AccessHulls)  # by index of the buffer
        self.writes: dict[int, AccessHulls] = defaultdict(AccessHulls)
        self.adding: dict[int, ByteRange] = {}  # by index: positions of what adds rows to a state and to its copy
        self.kept_reads, self.kept_loads = AccessHulls(), AccessHulls()
        self.weight_reads, self.weight_loads = AccessHulls(), AccessHulls()
        for position, task in enumerate(order):
            if task.op in _INSIDE:
                continue
            read, write = extents.source(task) if task.op in (Op.LD1, Op.ST2) else None, None
            if task.op in (Op.LD2, Op.ST1):
                write = extents.written(task)
            if task.op in (Op.ST1, Op.ST2) and task.more:
                self._note_row(position, extents.written(task), buffers)
            for extent, tensors, kept, weights in (
                (read, self.reads, self.kept_reads, self.weight_reads),
                (write, self.writes, self.kept_loads, self.weight_loads),
            ):
                if extent is not None:
                    self._note(position, extent, buffers, tensors, kept, weights)

    def _note_row(self, position: int, row: Extent, buffers: Sequence[TensorBuffer]) -> None:
        for number, buffer in enumerate(buffers):
            if buffer.copy is None:
                continue
            segment, first = (Segment.LV2, buffer.offset) if row.space == Space.LV2 else buffer.copy
            if row.segment == segment and first <= row.low < first + buffer.size:
                before = self.adding.get(number, (position, position + 1))
                self.adding[number] = (before[0], position + 1)

    def _note(
        self, position: int, extent: Extent, buffers: Sequence[TensorBuffer], tensors: dict[int, AccessHulls],
        kept: AccessHulls,
        weights: AccessHulls,
    ) -> None:  # fmt: skip
        bounds, kept_input = (extent.low, extent.high), self.job.kept
        if extent.segment == Segment.WINDOWS:
            weights.add(position, bounds)
        elif kept_input and kept_input.base <= extent.low < kept_input.base + kept_input.size:
            kept.add(position, bounds)
        else:
            for number, buffer in enumerate(buffers):
                if buffer.offset <= extent.low < buffer.offset + buffer.size:
                    tensors[number].add(position, bounds)


class LayerLv2:
    """LV2 while one layer runs. ``jobs``: its jobs with their program order."""

    def __init__(
        self, placement: TensorPlacement, layer: int, jobs: Sequence[tuple[JobProgram, Sequence[Task]]],
        extents: Extents, engines: int,
    ) -> None:  # fmt: skip
        unique = {id(buffer): buffer for buffer in placement.by_tensor.values()}.values()
        on_chip = (buffer for buffer in unique if buffer.segment == Segment.LV2 and buffer.size)
        self._order = placement.order
        self._buffers = [buffer for buffer in on_chip if self._order.alive(buffer, layer)]
        self._layer, self._alone, self._extents = layer, engines == 1, extents
        self._jobs = [JobLv2Accesses(job, order, self._buffers, extents) for job, order in jobs]

    def at(self, number: int, cut: int, reload: Sequence[Task]) -> list[LiveBytes]:
        """Return the live ranges at ``cut`` of the layer's job ``number`` ; ``reload`` will run again and needs its
        sources."""
        tensors, weights = list[ByteRange](), list[ByteRange]()
        for task in reload:
            extent = self._extents.source(task) if task.op is Op.LD1 else None
            if extent is not None and extent.segment in (Segment.LV2, Segment.WINDOWS):
                (tensors if extent.segment == Segment.LV2 else weights).append((extent.low, extent.high))
        ranges = self._tensors_at(number, cut, tensors) + self._kept_at(number, cut, tensors)
        return ranges + self._weights_at(number, cut, weights)

    def tensor_bytes(self, number: int, cut: int) -> int:
        """Return the bytes of tensors that are live at ``cut`` of the layer's job ``number``: a dump would have to move
        them."""
        return sum(live.size for live in self._tensors_at(number, cut, []) if live.dirty)

    def before(self, number: int) -> list[LiveBytes]:
        """Return the live ranges before job ``number`` starts, its weight window left out."""
        return self._tensors_at(number, 0, []) + self._kept_at(number, 0, [])

    def _tensors_at(self, number: int, cut: int, again: list[ByteRange]) -> list[LiveBytes]:
        if not self._alone:
            return self._whole
        ranges = []
        for index, buffer in enumerate(self._buffers):
            low, high = buffer.offset, buffer.offset + buffer.size
            if self._order.first(buffer, self._layer):
                past = [job.writes[index].all for job in self._jobs[:number]]
                low, high = _common((low, high), hull([*past, self._jobs[number].writes[index].before(cut)]))
            if self._order.last(buffer, self._layer):
                later = hull(self._later(number, cut, index))
                if later[0] > low or later[1] < high:  # what runs again may need more of it
                    later = hull([later, *(b for b in again if buffer.offset <= b[0] < buffer.offset + buffer.size)])
                low, high = _common((low, high), later)
            if low < high:
                ranges.append(_live(buffer, low, high, equal=self._equal(number, cut, index)))
        return ranges

    @cached_property
    def _whole(self) -> list[LiveBytes]:
        """Return all buffers, as they count beside other engines: whole, and a copy is none if any job adds to it."""
        return [
            _live(one, one.offset, one.offset + one.size, equal=not any(at in job.adding for job in self._jobs))
            for at, one in enumerate(self._buffers)
        ]

    def _equal(self, number: int, cut: int, buffer: int) -> bool:
        """Return whether a buffer has what the state in DRAM has that it is a copy of, at ``cut`` of job ``number``."""
        first, end = self._jobs[number].adding.get(buffer, (0, 0))
        return cut <= first or cut >= end

    def _later(self, number: int, cut: int, buffer: int) -> list[ByteRange]:
        """Reads of a tensor's buffer behind ``cut``."""
        return [
            self._jobs[number].reads[buffer].after(cut),
            *(job.reads[buffer].all for job in self._jobs[number + 1 :]),
        ]

    def _kept_at(self, number: int, cut: int, again: list[ByteRange]) -> list[LiveBytes]:
        """Return the tensor that stays in staging: what has been loaded of it and will be read."""
        accesses = self._jobs[number]
        kept = accesses.job.kept
        if kept is None:
            return []
        present = hull([(kept.base, kept.base + accesses.job.kept_before), accesses.kept_loads.before(cut)])
        own = [bounds for bounds in again if kept.base <= bounds[0] < kept.base + kept.size]
        later = [job.kept_reads.all for job in self._jobs[number + 1 :] if job.job.kept is kept]
        low, high = _common(present, hull([*own, accesses.kept_reads.after(cut), *later]))
        offset = kept.source.offset + kept.first + low - kept.base
        if low >= high:
            return []
        return [LiveBytes(Space.LV2, Segment.LV2, low, high - low, False, kept.source.segment, offset)]

    def _weights_at(self, number: int, cut: int, again: list[ByteRange]) -> list[LiveBytes]:
        """Return the job's weights in its window. Accesses count from the start of the window."""
        accesses = self._jobs[number]
        job = accesses.job
        low, high = hull([accesses.weight_reads.after(cut), *again])
        if job.own_loads:
            low, high = _common((low, high), accesses.weight_loads.before(cut))
        if low >= high:
            return []
        window, weights = Symbol(Anchor.WINDOW, low), Symbol(Anchor.WEIGHTS, low)
        source = job.ahead[0] if job.ahead else Segment.WEIGHTS
        return [LiveBytes(Space.LV2, Segment.WINDOWS, window, high - low, False, source, weights)]


def _live(buffer: TensorBuffer, low: int, high: int, *, equal: bool) -> LiveBytes:
    """Return bytes of ``buffer``: clean if there is a copy in DRAM that is ``equal``."""
    if buffer.copy is None or not equal:
        return LiveBytes(Space.LV2, Segment.LV2, low, high - low, dirty=True)
    segment, first = buffer.copy
    return LiveBytes(Space.LV2, Segment.LV2, low, high - low, False, segment, first + low - buffer.offset)


def _common(a: ByteRange, b: ByteRange) -> ByteRange:
    low, high = max(a[0], b[0]), min(a[1], b[1])
    return (low, high) if low < high else _NOTHING
