"""A tensor in DRAM that a job brings into LV2 as it is needed, and keeps there."""

from collections.abc import Iterable, Iterator

import numpy as np

from compiler.backend.memory.operand import KeptInput
from compiler.backend.memory.tensor_view import PixelBox, TensorView
from compiler.backend.program.copies import PIECE, Fields, contiguous
from compiler.backend.program.job import JobProgram
from compiler.backend.program.ring import Ring
from compiler.backend.program.semaphores import Sem
from compiler.backend.program.task import Task
from hw.contract.isa import Op, Segment

_AHEAD = 32  #: loads that may wait for their first reader; semaphores count no further than 255


class KeptInputLoader:
    """The bytes ``first`` to ``last`` of a dense tensor at LV2 address ``base``; loaded once, in order of address.

    Only ``boxes`` will be read: loads that would bring no pixel of them are left out, as where strides step over some.

    One object serves all jobs of an engine, one after the other; :meth:`enter` begins the next.
    """

    def __init__(self, view: TensorView, base: int, first: int, last: int, boxes: Iterable[PixelBox]) -> None:
        self.kept, self._loaded = KeptInput(view, base, first, last - first), first
        self._needed = _pixels(view, boxes)
        self._view = TensorView.dense(Segment.LV2, base - first, view.shape)

    @staticmethod
    def span(view: TensorView, boxes: list[PixelBox]) -> tuple[int, int]:
        """Return the bytes of a dense tensor from the first to the last that ``boxes`` touch, in whole pixels."""
        ranges = [_range(view, box) for box in boxes]
        inside = [bounds for bounds in ranges if bounds]
        return min((low for low, _ in inside), default=0), max((high for _, high in inside), default=0)

    def enter(self, job: JobProgram) -> None:
        """The loads that follow belong to ``job``."""
        job.kept, job.kept_before = self.kept, self._loaded - self.kept.first
        self._job = job
        self._ring = Ring(Sem.STAGE_FULL, Sem.STAGE_FREE, 0, 0, _AHEAD)

    def load(self, box: PixelBox, target: int, row: int, run: int, fill: int) -> list[Task]:
        """As :meth:`JobProgram.load`; brings what is missing of ``box`` to LV2 first."""
        bounds = _range(self.kept.source, box)
        slot = None
        if bounds and bounds[1] > self._loaded:
            slot = self._ring.fill(box)
            loads = [self._job.emit(Op.LD2, fields) for fields in self._loads(self._loaded, bounds[1])]
            self._ring.filled_by(slot, loads)
            self._loaded = bounds[1]
        tasks = self._job.load(self._view, box, target, row, run, fill, None, box)
        if slot:
            self._ring.read_by(slot, tasks[0])
        return tasks

    def _loads(self, first: int, last: int) -> Iterator[Fields]:
        """Yield the fields of the loads of bytes ``first`` to ``last``; each ends where a burst does."""
        source = self.kept.source
        offset, pixel = source.offset, source.shape[3]
        while first < last:
            end = min(last, ((offset + first) // PIECE + 1) * PIECE - offset)
            if self._needed[first // pixel : -(-end // pixel)].any():
                for fields in contiguous(offset + first, self._view.offset + first, end - first):
                    yield fields | {"src_seg": source.segment, "dst_seg": Segment.LV2}
            first = end


def _pixels(view: TensorView, boxes: Iterable[PixelBox]) -> np.ndarray:
    """Return which pixels of a tensor ``boxes`` touch, in order of address."""
    touched = np.zeros(view.shape[:3], bool)
    for box in boxes:
        part = view.clip(box)
        if part is not None:
            rows = slice(part.y, part.y + (part.rows - 1) * part.y_step + 1, part.y_step)
            cols = slice(part.x, part.x + (part.cols - 1) * part.x_step + 1, part.x_step)
            touched[part.n, rows, cols] = True
    return touched.ravel()


def _range(view: TensorView, box: PixelBox) -> tuple[int, int] | None:
    """Return the bytes of whole pixels, relative to the tensor, from the first to the last that ``box`` touches."""
    part = view.clip(box)
    if part is None:
        return None
    channels, start = view.shape[3], view.address(part.n, part.y, part.x, 0) - view.offset
    last = (part.rows - 1) * part.y_step * view.strides[1] + (part.cols - 1) * part.x_step * view.strides[2]
    return start, start + last + channels
