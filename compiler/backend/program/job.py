"""One job under construction: its tasks, its weights, and the loads and stores every generator needs."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from compiler.backend.memory.operand import KeptInput
from compiler.backend.memory.tensor_view import PixelBox, TensorView
from compiler.backend.program.copies import MAX_RUN, CopyLoop, contiguous, copy_fields
from compiler.backend.program.semaphores import Sem
from compiler.backend.program.task import BufferFill, Ring, Task
from hw.contract.isa import Op, Segment
from hw.contract.params import SocParams

_FETCHES_AHEAD = 32  #: pieces of weights a body may load ahead of their use; semaphores count no further than 255


@dataclass
class JobProgram:
    """Tasks of the body; ``blob`` is what the prologue brings into the weight window.

    Window addresses in tasks are relative to the job's place in the window; ``relative`` lists the tasks to which
    :meth:`place` adds it. Weights that are streamed lie in ``stream``, at addresses relative to the start of the
    job's part of the weight segment; ``streamed`` lists the loads that name them.

    With ``own_loads`` there is no prologue: the body brings each piece of the blob into the window (``fetches``) just
    before its first use. For the first job of an engine, whose prologue would run with nothing to compute beside it.
    """

    params: SocParams
    layer: int
    engine: int = 0
    tasks: list[Task] = field(default_factory=list)
    blob: bytearray = field(default_factory=bytearray)
    stream: bytearray = field(default_factory=bytearray)
    relative: list[Task] = field(default_factory=list)
    streamed: list[Task] = field(default_factory=list)
    own_loads: bool = False
    fetches: list[Task] = field(default_factory=list)
    constants: list[Task] = field(default_factory=list)
    resident: KeptInput | None = None
    resident_bytes: int = 0
    window_at: int = 0
    blob_at: int = 0
    _known: dict[bytes, int] = field(default_factory=dict)
    _fetched: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._fetching = Ring(Sem.WEIGHT2_FULL, Sem.WEIGHT2_FREE, 0, 0, _FETCHES_AHEAD)

    def emit(self, op: Op, fields: dict[str, int]) -> Task:
        """Append one instruction."""
        task = Task(op, fields)
        self.tasks.append(task)
        return task

    def emit_all(self, op: Op, copies: Sequence[dict[str, int]], **more: int) -> list[Task]:
        """Append copies."""
        return [self.emit(op, fields | more) for fields in copies]

    # -- weights ---------------------------------------------------------------------------------------------
    def keep(self, data: bytes) -> int:
        """Put ``data`` in the weight window, once; returns its address there."""
        if data not in self._known:
            self._known[data] = len(self.blob)
            self.blob += data + bytes(-len(data) % self.params.lv1_word)
        return self._known[data]

    def load_window(self, address: int, target: int, size: int) -> list[Task]:
        """LD1 of ``size`` bytes at ``address`` of the window."""
        fill = None
        if self.own_loads and address not in self._fetched:
            self._fetched.add(address)
            fill = self._fetching.fill(address)
            loads = self.emit_all(
                Op.LD2, contiguous(address, address, size), src_seg=Segment.WEIGHTS, dst_seg=Segment.WINDOWS
            )
            self._fetching.filled_by(fill, loads)
            self.fetches += loads
        tasks = self.emit_all(Op.LD1, contiguous(address, target, size), src_seg=Segment.WINDOWS)
        if fill:
            for task in tasks:
                self._fetching.read_by(fill, task)
        self.relative += tasks
        return tasks

    def load_constant(self, data: bytes, target: int) -> list[Task]:
        """LD1 of ``data`` from the window to LV1 address ``target``, where it stays until the job ends."""
        tasks = self.load_window(self.keep(data), target, len(data))
        self.constants += tasks
        return tasks

    def load_streamed(self, data: bytes, slot: int) -> list[Task]:
        """LD2 of ``data`` from the weight segment to ``slot`` of segment 6."""
        address = len(self.stream)
        self.stream += data
        tasks = self.emit_all(
            Op.LD2, contiguous(address, slot, len(data)), src_seg=Segment.WEIGHTS, dst_seg=Segment.LV2
        )
        self.streamed += tasks
        return tasks

    def place(self, window: int, blob: int, stream: int) -> None:
        """Fix where in the window, and where in the weight segment, the job's weights lie."""
        self.window_at, self.blob_at = window, blob
        for task in self.fetches:
            task.fields["src"] += blob
            task.fields["dst"] += window
        for task in self.relative:
            task.fields["src"] += window
        for task in self.streamed:
            task.fields["src"] += stream

    # -- activations -----------------------------------------------------------------------------------------
    def load(
        self, view: TensorView, box: PixelBox, target: int, row: int, run: int, fill: int, stage: "StagingRing | None",
        key: Hashable, whole: PixelBox | None = None,
    ) -> list[Task]:  # fmt: skip
        """LD1 of ``box`` to LV1 address ``target``: rows ``row`` bytes apart, pixels of ``run`` bytes, padded by
        ``fill``. Tensors in DRAM pass through ``stage``, which holds all of ``whole`` (default: ``box``) as ``key``."""
        if view.on_chip:
            task = self.emit(Op.LD1, _pixels(view, box, target, row, run, fill) | {"src_seg": view.segment})
            return [task]
        assert stage is not None
        staged = stage.find(key)
        if staged is None:
            staged = stage.load(self, view, whole or box, key)
        part = staged.part
        inner = PixelBox(
            0,
            (box.y - part.y) // part.y_step,
            box.rows,
            (box.x - part.x) // part.x_step,
            box.cols,
            box.c - part.c,
            box.channels,
            box.y_step // part.y_step,
            box.x_step // part.x_step,
        )
        task = self.emit(Op.LD1, _pixels(staged.view, inner, target, row, run, fill) | {"src_seg": Segment.LV2})
        if staged.fill is not None:
            stage.ring.read_by(staged.fill, task)
        return [task]

    def store(
        self, view: TensorView, box: PixelBox, source: int, row: int, pixel: int, spill: Ring | None, key: Hashable
    ) -> Task:
        """ST1 of pixels in LV1 (rows ``row``, pixels ``pixel`` bytes apart) to ``box``; through ``spill`` and ST2 if
        the tensor lives in DRAM. Returns the ST1."""
        target = view.address(box.n, box.y, box.x, box.c)
        if view.on_chip:
            loops = [CopyLoop(box.rows, row, view.strides[1]), CopyLoop(box.cols, pixel, view.strides[2])]
            return self.emit(Op.ST1, copy_fields(source, target, loops, box.channels) | {"dst_seg": view.segment})
        assert spill is not None
        slot, line = spill.fill(key), box.cols * box.channels
        loops = [CopyLoop(box.rows, row, line), CopyLoop(box.cols, pixel, box.channels)]
        store = self.emit(Op.ST1, copy_fields(source, slot.address, loops, box.channels) | {"dst_seg": Segment.LV2})
        spill.filled_by(slot, [store])
        spill.read_by(slot, self.spill(view, box, slot.address))
        return store

    def spill(self, view: TensorView, box: PixelBox, source: int) -> Task:
        """ST2 of pixels that lie densely at ``source`` of segment 6 to ``box`` of a tensor in DRAM."""
        line = box.cols * box.channels
        loops = [CopyLoop(box.rows, line, view.strides[1]), CopyLoop(box.cols, box.channels, view.strides[2])]
        fields = copy_fields(source, view.address(box.n, box.y, box.x, box.c), loops, box.channels)
        return self.emit(Op.ST2, fields | {"src_seg": Segment.LV2, "dst_seg": view.segment})


@dataclass(frozen=True)
class StagedBox:
    """The ``part`` of a tensor that a staging buffer holds, densely, as ``view``. ``fill`` is None if the part is
    empty (padding only)."""

    fill: BufferFill | None
    part: PixelBox
    view: TensorView


class StagingRing:
    """LV2 buffers through which tiles of a tensor in DRAM pass on their way to LV1."""

    def __init__(self, full: Sem, free: Sem, base: int, size: int, slots: int) -> None:
        self.ring = Ring(full, free, base, size, slots)
        self._held: dict[Hashable, StagedBox] = {}

    def find(self, key: Hashable) -> StagedBox | None:
        """What is held as ``key``, if it still is."""
        held = self._held.get(key)
        return held if held and self.ring.find(key) is held.fill else None

    def load(self, job: JobProgram, view: TensorView, box: PixelBox, key: Hashable) -> StagedBox:
        """LD2 of the part of ``box`` inside the tensor into the next buffer."""
        part = view.clip(box)
        if part is None:
            return StagedBox(None, box, TensorView.dense(Segment.LV2, 0, (1, 0, 0, box.channels)))
        slot = self.ring.fill(key)
        line = part.cols * part.channels
        loops = [
            CopyLoop(part.rows, part.y_step * view.strides[1], line),
            CopyLoop(part.cols, part.x_step * view.strides[2], part.channels),
        ]
        source = view.address(part.n, part.y, part.x, part.c)
        fields = copy_fields(source, slot.address, loops, part.channels)
        task = job.emit(Op.LD2, fields | {"src_seg": view.segment, "dst_seg": Segment.LV2})
        self.ring.filled_by(slot, [task])
        staged = StagedBox(
            slot, part, TensorView.dense(Segment.LV2, slot.address, (1, part.rows, part.cols, part.channels))
        )
        self._held[key] = staged
        return staged


def _pixels(view: TensorView, box: PixelBox, target: int, row: int, run: int, fill: int) -> dict[str, int]:
    """A copy of ``box`` to ``target``; adjacent pixels become one long run even under column padding."""
    source = view.address(box.n, box.y, box.x, box.c)
    rows, cols = view.loops(box, row, run)
    if cols.src == cols.dst == box.channels == run and cols.count * run <= MAX_RUN:
        return copy_fields(source, target, [rows], cols.count * run, (cols.low * run, cols.end * run), fill)
    return copy_fields(source, target, [rows, cols], run, (0, box.channels), fill)
