"""One job under construction: its instructions, its weights, and the loads and stores that every kernel needs."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from compiler.emission.program.address import Address, Anchor, Symbol
from compiler.emission.program.copies import MAX_RUN, CopyLoop, contiguous, copy_fields, load_fields
from compiler.emission.program.ring import Ring, StagingRing
from compiler.emission.program.semaphores import LOADS_AHEAD, Sem
from compiler.emission.program.task import BufferFill, ParameterUse, Task
from compiler.plan.memory.operand import KeptInput
from compiler.plan.memory.tensor_view import PixelBox, TensorView
from hw.contract.isa import Op, Segment
from hw.contract.params import SocParams


class ConstantPart(Hashable, Protocol):
    """Where bytes that depend on weights come from, so that those of another layer can take their place."""

    @property
    def output(self) -> str:
        """Return the name of the tensor that the layer makes to which they belong."""


Piece = bytes | ConstantPart  #: bytes that are the same for all weights, or what makes them


@dataclass
class JobProgram:
    """The instructions and weights of one job of layer number ``layer``.

    ``tasks`` are the body. ``window_data`` is what the prologue brings into the job's weight window; ``stream_data``
    are weights that the body loads from DRAM chunk by chunk. Both lie in the weight segment, the linker decides where;
    until then their addresses are symbols.

    ``window_pieces`` and ``stream_pieces`` say what these data are made of: pieces with their offsets in the window, as
    they were asked for, and pieces of the stream one behind the other.

    With ``ahead``, a segment and an offset there, that is what the window holds, and not weights: ``window_data`` says
    its size alone.

    With ``own_loads`` there is no prologue: the body brings each piece of the window's data into the window just before
    its first use. That is for the first job of an engine, whose prologue would run with nothing to compute beside it.

    With ``direct``, what passes from or to DRAM comes from and goes to the places of tensors, and uses no staging area.
    """

    params: SocParams
    layer: int
    engine: int = 0
    own_loads: bool = False
    ahead: tuple[int, int] | None = None
    direct: bool = False
    tasks: list[Task] = field(default_factory=list)
    window_data: bytearray = field(default_factory=bytearray)
    stream_data: bytearray = field(default_factory=bytearray)
    window_pieces: dict[Piece, int] = field(default_factory=dict)
    stream_pieces: list[Piece] = field(default_factory=list)
    constants: list[Task] = field(default_factory=list)  #: loads to LV1 of what stays there until the job ends
    kept: KeptInput | None = None
    kept_before: int = 0  #: bytes of ``kept`` that earlier jobs have loaded
    parts: "list[JobProgram]" = field(default_factory=list)  #: of a region: the jobs of its layers, with the same tasks
    _known: dict[bytes, int] = field(default_factory=dict)
    _fetched: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._fetching = Ring(Sem.WEIGHT2_FULL, Sem.WEIGHT2_FREE, 0, 0, LOADS_AHEAD)

    def emit(self, op: Op, fields: Mapping[str, Address], more: tuple[ParameterUse, ...] = ()) -> Task:
        """Append one instruction; ``more``: parameters of the job that are added to fields, which do not count them
        yet."""
        for one in more:
            known = fields.get(one.field, 0)
            fields = {**fields, one.field: known + one.most}
        task = Task(op, fields, more)
        self.tasks.append(task)
        return task

    def emit_all(self, op: Op, copies: Sequence[Mapping[str, Address]], **more: int) -> list[Task]:
        """Append copies."""
        return [self.emit(op, {**fields, **more}) for fields in copies]

    # -- weights ---------------------------------------------------------------------------------------------
    def keep(self, data: bytes, part: ConstantPart | None = None) -> int:
        """Put ``data``, which ``part`` makes, in the weight window, once; returns its offset there."""
        if data not in self._known:
            self._known[data] = len(self.window_data)
            self.window_data += data + bytes(-len(data) % self.params.lv1_word)
        self.window_pieces[part or data] = self._known[data]
        return self._known[data]

    def load_window(self, offset: int, target: int, size: int, piece: int = 0) -> list[Task]:
        """LD1 of ``size`` bytes at ``offset`` of the window to LV1 address ``target``; what the body has to bring into
        the window for it comes in loads of at most ``piece`` bytes (0: any)."""
        fill, address = None, Symbol(Anchor.WINDOW, offset)
        if self.own_loads and offset not in self._fetched:
            self._fetched.add(offset)
            fill = self._fetching.fill(offset)
            loads = []
            for at in range(0, size, piece or size):
                copies = contiguous(Symbol(Anchor.WEIGHTS, offset + at), address + at, min(piece or size, size - at))
                loads += self.emit_all(Op.LD2, copies, src_seg=Segment.WEIGHTS, dst_seg=Segment.WINDOWS)
            self._fetching.filled_by(fill, loads)
        copies = [copy_fields(address, target, [], size)] if size <= MAX_RUN else contiguous(address, target, size)
        tasks = self.emit_all(Op.LD1, copies, src_seg=Segment.WINDOWS)
        if fill:
            self._fetching.read_by(fill, *tasks)
        return tasks

    def load_constant(self, data: bytes, target: int, part: ConstantPart | None = None) -> list[Task]:
        """LD1 of ``data``, which ``part`` makes, from the window to LV1 address ``target``, where it stays until the
        job ends."""
        tasks = self.load_window(self.keep(data, part), target, len(data))
        self.constants += tasks
        return tasks

    def load_streamed(self, data: bytes, slot: int, part: ConstantPart | None = None) -> list[Task]:
        """LD2 of ``data``, which ``part`` makes, from the weight segment to ``slot`` of segment 6."""
        copies = contiguous(Symbol(Anchor.STREAM, len(self.stream_data)), slot, len(data))
        self.stream_data += data
        self.stream_pieces.append(part or data)
        return self.emit_all(Op.LD2, copies, src_seg=Segment.WEIGHTS, dst_seg=Segment.LV2)

    # -- activations -----------------------------------------------------------------------------------------
    def load(
        self, view: TensorView, box: PixelBox, target: int, row: int, run: int, fill: int, stage: StagingRing | None,
        key: Hashable, whole: PixelBox | None = None,
    ) -> list[Task]:  # fmt: skip
        """LD1 of ``box`` to LV1 address ``target``: rows ``row`` bytes apart, pixels of ``run`` bytes, padded by
        ``fill``. Tensors in DRAM pass through ``stage``, which holds all of ``whole`` (default: ``box``) as ``key``. A
        tensor in pieces takes a load for each piece of which it has channels; the last one pads."""
        parts, wholes = list(view.parts_of(box)), {at: part for at, _, part in view.parts_of(whole or box)}
        loads, first = list[Task](), 0
        for number, piece, part in parts:
            length = run - first if number == parts[-1][0] else part.channels
            source, inner, held = self._on_chip(piece, part, stage, (key, number), wholes[number])
            fields = load_fields(source, inner, target + first, row, length, fill, run)
            loads.append(self._load(fields, source, stage, held))
            first += length
        return loads

    def load_repeated(
        self, view: TensorView, count: int, target: int, stage: StagingRing | None, key: Hashable
    ) -> list[Task]:  # fmt: skip
        """LD1 of ``count`` copies of the one byte of a tensor, side by side, to LV1 address ``target``."""
        source, one, held = self._on_chip(view, PixelBox(0, 0, 1, 0, 1, 0, 1), stage, key, None)
        fields = copy_fields(source.address(one.n, one.y, one.x, one.c), target, [CopyLoop(count, 0, 1)], 1)
        return [self._load(fields, source, stage, held)]

    def _on_chip(
        self, view: TensorView, box: PixelBox, stage: StagingRing | None, key: Hashable, whole: PixelBox | None
    ) -> tuple[TensorView, PixelBox, BufferFill | None]:
        """Return where ``box`` is in LV2, after a load of ``whole`` through ``stage`` if the tensor lies in DRAM and
        ``key`` is not held there: a view, the box in it, and the buffer."""
        if view.on_chip:
            return view, box, None
        assert stage is not None
        staged = stage.find(key)
        if staged is None:
            staged = stage.load(self.emit, view, whole or box, key)
        return staged.view, staged.inner(box), staged.fill

    def _load(
        self, fields: Mapping[str, Address], source: TensorView, stage: StagingRing | None, held: BufferFill | None
    ) -> Task:
        task = self.emit(Op.LD1, {**fields, "src_seg": source.segment})
        if stage is not None and held is not None:
            stage.ring.read_by(held, task)
        return task

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
