"""Rings of buffers, which order the units that fill and read them.

A ring hands out its buffers in turn. Filling a buffer for the n-th time waits for the last reader of what it held;
because the first fills wait for nothing and the last readers signal nothing, every semaphore is zero again at the end.
Semaphores count, and do not say who signalled: buffers must have had their last readers in the order in which they are
filled again.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from compiler.emission.program.copies import CopyLoop, Fields, copy_fields, pieces
from compiler.emission.program.semaphores import PAIRS, Sem
from compiler.emission.program.task import BufferFill, Task
from compiler.plan.memory.tensor_view import PixelBox, TensorView
from hw.contract.isa import Op, Segment

MOST_LV0_SLOTS = 4  #: buffers of an LV0 memory


def lv0_slots(words: int, total: int) -> int:
    """Return how many buffers of ``words`` to use in an LV0 memory of ``total`` words: with more than two, LD0 need not
    wait for MAC to end before it loads the next but one."""
    return max(2, min(MOST_LV0_SLOTS, total // words))


class Ring:
    """Holds ``slots`` equal buffers used in turn, from ``base`` on, ``size`` apart; it is also the cache of what they
    hold.

    Usage: ``ring.holding(key, load)``, or ``ring.find(key)`` and ``ring.fill(key)``; append tasks with
    :meth:`filled_by` and :meth:`read_by`.
    """

    def __init__(self, full: Sem, free: Sem, base: int, size: int, slots: int) -> None:
        self.full, self.free = full, free
        self.base, self.size, self.slots = base, size, slots
        self.filler, self.reader = PAIRS[full, free]
        self._fills: list[BufferFill] = []
        self._reads = self._freed = 0  # tasks that read, and the last of them that freed a buffer

    def find(self, key: Hashable) -> BufferFill | None:
        """Return the buffer that holds ``key``, if one still does."""
        for fill in self._fills[-self.slots :]:
            if fill.key == key:
                return fill
        return None

    def fill(self, key: Hashable) -> BufferFill:
        """Claim the next buffer for ``key``."""
        number = len(self._fills)
        fill = BufferFill(key, self.base + number % self.slots * self.size, number)
        self._fills.append(fill)
        return fill

    def holding(self, key: Hashable, load: Callable[[BufferFill], list[Task]]) -> BufferFill:
        """Return the buffer that holds ``key``, the next one if none does: ``load`` emits what fills that."""
        held = self.find(key)
        if held is None:
            held = self.fill(key)
            self.filled_by(held, load(held))
        return held

    def filled_by(self, fill: BufferFill, tasks: list[Task]) -> None:
        """``tasks`` (of the filling unit, in order) fill the buffer; call once per fill. Raises ValueError if buffers
        do not come free in the order in which they are filled."""
        fill.fillers = tasks
        for task in tasks:
            task.fills = fill
        tasks[-1].signals.add(self.full)
        if fill.number >= self.slots:
            previous = self._fills[fill.number - self.slots]
            if previous.last_read < self._freed:
                raise ValueError(f"{self.reader.name} has read {previous.key} before what was in the ring earlier")
            self._freed = previous.last_read
            previous.readers[-1].signals.add(self.free)
            tasks[0].waits.add(self.free)

    def read_by(self, fill: BufferFill, *tasks: Task) -> None:
        """``tasks`` (of the reading unit, in order) read the buffer, after all readers so far."""
        for task in tasks:
            if not fill.readers:
                task.waits.add(self.full)
            self._reads += 1
            fill.last_read = self._reads
            fill.readers.append(task)
            task.reads.append(fill)


@dataclass(frozen=True)
class StagedBox:
    """The ``part`` of a tensor that a staging buffer holds, densely, as ``view``. ``fill`` is None if the part is
    empty (padding only)."""

    fill: BufferFill | None
    part: PixelBox
    view: TensorView

    def inner(self, box: PixelBox) -> PixelBox:
        """``box`` of the tensor as a box of the buffer."""
        part = self.part
        return PixelBox(
            0, (box.y - part.y) // part.y_step, box.rows, (box.x - part.x) // part.x_step, box.cols, box.c - part.c,
            box.channels, box.y_step // part.y_step, box.x_step // part.x_step,
        )  # fmt: skip


class StagingRing:
    """A ring of staging buffers, ``size`` bytes each from ``base`` of segment 6 on, and what they hold. ``in_pieces``:
    loads of contiguous bytes are cut, so that a pause need not wait for long ones."""

    def __init__(self, full: Sem, free: Sem, base: int, size: int, slots: int, *, in_pieces: bool = False) -> None:
        self.ring = Ring(full, free, base, size, slots)
        self._in_pieces = in_pieces
        self._held: dict[Hashable, StagedBox] = {}

    def find(self, key: Hashable) -> StagedBox | None:
        """Return what is held as ``key``, if it still is."""
        held = self._held.get(key)
        return held if held and self.ring.find(key) is held.fill else None

    def load(self, emit: Callable[[Op, Fields], Task], view: TensorView, box: PixelBox, key: Hashable) -> StagedBox:
        """LD2 of the part of ``box`` inside the tensor into the next buffer; ``emit`` appends it to the job."""
        part = view.clip(box)
        if part is None:
            return StagedBox(None, box, TensorView.dense(Segment.LV2, 0, (1, 0, 0, box.channels)))
        slot = self.ring.fill(key)
        line = part.cols * part.channels
        source = view.address(part.n, part.y, part.x, part.c)
        loops = [
            CopyLoop(part.rows, part.y_step * view.strides[1], line),
            CopyLoop(part.cols, part.x_step * view.strides[2], part.channels),
        ]
        copies = [copy_fields(source, slot.address, loops, part.channels)]
        if self._in_pieces and view.contiguous(part):
            copies = list(pieces(source, slot.address, part.rows * line))
        segments: Fields = {"src_seg": view.segment, "dst_seg": Segment.LV2}
        self.ring.filled_by(slot, [emit(Op.LD2, fields | segments) for fields in copies])
        held = TensorView.dense(Segment.LV2, slot.address, (1, part.rows, part.cols, part.channels))
        self._held[key] = staged = StagedBox(slot, part, held)
        return staged

    def close(self, emit: Callable[[Op, Fields], Task], view: TensorView, at: int, count: int) -> None:
        """``count`` loads behind the last one that read nothing and fill a byte at ``at``. A unit ends its instructions
        in order: once the last of these has come to its queue, the loads before have ended, and no bound on a pause
        takes them for unfinished."""
        for _ in range(count):
            emit(Op.LD2, copy_fields(0, at, [], 1, (0, 0)) | {"src_seg": view.segment, "dst_seg": Segment.LV2})
