"""The buffers of one job of a convolution, in LV1, LV0 and the staging area, and an input that stays there."""

from collections.abc import Iterable, Iterator

import numpy as np

from compiler.emission.kernels.conv_work import ConvWork
from compiler.emission.program import JobProgram, Ring, Sem, StagingRing, Task, lv0_slots
from compiler.emission.program.copies import PIECE, Fields, contiguous
from compiler.emission.program.semaphores import LOADS_AHEAD
from compiler.ir import CompileError
from compiler.plan.layers import PARAMS_SLOTS, ChannelTile
from compiler.plan.memory.operand import KeptInput
from compiler.plan.memory.tensor_view import PixelBox, TensorView
from compiler.plan.tiling.conv_tiling import PixelTile
from hw.contract.isa import TABLE_BYTES, Op, Segment
from hw.contract.timing import UNIT_IN_FLIGHT


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
        self._ring = Ring(Sem.STAGE_FULL, Sem.STAGE_FREE, 0, 0, LOADS_AHEAD)

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


class ConvBuffers:
    """Rings of buffers for a job that computes ``tiles``. Addresses of LV0 are words, of accumulators rows.

    LV1: ``table`` (address of the table), ``params`` (address of a ring), ``out``, ``act1``, ``weights`` (address of a
    ring), ``other`` (unused if that is constant) and ``sum_params`` (address) for an addition. LV0: ``act0``, ``acc``.
    LV2, None where data need not pass through: ``streamed`` weights, ``spill`` (with ``gather``, its buffers hold all
    channel tiles), ``stage`` (see :meth:`staged`) and ``other_stage``.
    """

    def __init__(self, work: ConvWork, tiles: list[ChannelTile], kept: KeptInputLoader | None) -> None:
        """``kept``: who loads the input if it stays in LV2; it needs no stage then. Raises :class:`CompileError` if the
        staging area is too small."""
        self._work = work
        self._lv1()
        self._lv0()
        self._lv2(tiles, kept)

    def _lv1(self) -> None:
        work, tiling = self._work, self._work.tiling
        self.table = work.lv1_base
        self.params = self.table + (work.words(TABLE_BYTES) if work.layer.table is not None else 0)
        out = self.params + tiling.params_size * PARAMS_SLOTS
        act1 = out + tiling.out_size * 2
        self.weights = act1 + tiling.act_size * tiling.act_slots
        self.out = Ring(Sem.OUT_FULL, Sem.OUT_FREE, out, tiling.out_size, 2)
        self.act1 = Ring(Sem.ACT1_FULL, Sem.ACT1_FREE, act1, tiling.act_size, tiling.act_slots)
        if work.addend:
            other = self.weights + tiling.weights_lv1
            self.other = Ring(Sem.B_FULL, Sem.B_FREE, other, tiling.out_size, 2)
            self.sum_params = other + (0 if work.addend.constant else 2 * tiling.out_size)

    def _lv0(self) -> None:
        work, p = self._work, self._work.params
        tile = PixelTile(0, 0, 0, work.tiling.rows, 0, work.tiling.cols)
        # Each buffer starts at a whole word of LV1.
        size = max(work.geometry(tile, chunk).lv0_bytes for chunk in work.chunks(work.most_channels))
        words = work.words(size) // p.rows
        self.act0 = Ring(Sem.ACT0_FULL, Sem.ACT0_FREE, 0, words, lv0_slots(words, p.lv0_act_bytes // p.rows))
        self.acc = Ring(Sem.ACC_FULL, Sem.ACC_FREE, 0, p.lv0_acc_rows // 2, 2)

    def _lv2(self, tiles: list[ChannelTile], kept: KeptInputLoader | None) -> None:
        """Streamed weights and outputs take what they need of the staging area, inputs the rest."""
        work, tiling, area = self._work, self._work.tiling, self._work.staging
        self._bands = self._whole = False
        self._together: tuple[int, int] | None = None  # first channel and number of those staged by one load
        self._spare: int | None = None
        at, end = area.base, kept.kept.base if kept else area.base + area.size
        pixels = tiling.rows * tiling.cols
        self.streamed: Ring | None = None
        if work.streamed:
            self.streamed = Ring(Sem.WEIGHT2_FULL, Sem.WEIGHT2_FREE, at, tiling.weight_size, 2)
            at += 2 * tiling.weight_size
        self.spill: Ring | None = None
        self.gather = False
        if not work.y.view.on_chip:
            size = work.words(pixels * work.params.out_channels)
            gathered = work.words(pixels * sum(tile.outs for tile in tiles))
            self.gather = tiling.pixels_outer and 2 * gathered <= (end - at) // 2
            size = gathered if self.gather else size
            self.spill = Ring(Sem.SPILL_FULL, Sem.SPILL_FREE, at, size, 2)
            at += 2 * size
        self.other_stage: StagingRing | None = None
        if work.addend and work.addend.staged:
            size = work.words(pixels * work.params.out_channels)
            self.other_stage = StagingRing(Sem.STAGE_B_FULL, Sem.STAGE_B_FREE, at, size, 2)
            at += 2 * size
        self.stage: StagingRing | None = None
        if not work.x.view.on_chip and not kept:
            size = self._stage_size((end - at) // 2, tiles)
            slots = 3 if self._bands and 3 * size + work.params.lv1_word <= end - at else 2
            self.stage = StagingRing(Sem.STAGE_FULL, Sem.STAGE_FREE, at, size, slots, in_pieces=self._bands)
            at += slots * size
            if self._bands and at < end:
                self._spare = at
        if at > end:
            raise CompileError(
                f"operator {work.layer.name!r}: its tiles need {at - area.base} bytes of LV2 to pass from and to DRAM, "
                f"{area.size} are set aside: choose a preset with a larger lv2_bytes"
            )

    def _stage_size(self, room: int, tiles: list[ChannelTile]) -> int:
        """Return the bytes of a buffer of the input, which should not exceed ``room``: of all the channels that the job
        reads, if channel tiles with channels of their own are the inner loop, else of those of a channel tile; and of
        whole rows where these follow each other in DRAM, if tiles are narrower and there are rows to load while others
        are being read; else of a tile over the whole kernel; else of a chunk."""
        work, span = self._work, self._work.most_channels
        if work.layer.by_channels and work.tiling.pixels_outer and len(tiles) > 1:
            first, last = tiles[0], tiles[-1]
            self._together = first.first, last.first + last.channels - first.first
            if (size := self._whole_size(room, *self._together)) is not None:
                return size
            self._together = None
        if (size := self._whole_size(room, 0, span)) is not None:
            return size
        return self._input_bytes(
            [work.input_box(tile, chunk, 0) for tile in work.pixel_tiles for chunk in work.chunks(span)]
        )

    def _whole_size(self, room: int, first: int, channels: int) -> int | None:
        """Return the same for a buffer that holds ``channels`` channels of whole rows or tiles, if it does not exceed
        ``room``."""
        work, tiles = self._work, self._work.pixel_tiles
        narrow = any(tile.cols < work.layer.areas[tile.area].cols for tile in tiles)
        several = len({(tile.area, tile.n, tile.y) for tile in tiles}) > 1
        if work.x.view.is_dense and channels == work.x.view.shape[3] and narrow and several:
            size = self._input_bytes([work.band_box(tile, first, channels) for tile in tiles])
            self._bands = size <= room
            if self._bands:
                return size
        size = self._input_bytes([work.tile_box(tile, first, channels) for tile in tiles])
        self._whole = size <= room
        return size if self._whole else None

    def staged(self, pixels: PixelTile, tile: ChannelTile) -> PixelBox | None:
        """Return the input that a buffer of :attr:`stage` holds for a tile; None: what a chunk of it reads."""
        first, channels = self._together or (tile.first, tile.channels)
        if self._bands:
            return self._work.band_box(pixels, first, channels)
        return self._work.tile_box(pixels, first, channels) if self._whole else None

    def close(self, job: JobProgram) -> None:
        """Behind the last load of ``job``: see :meth:`StagingRing.close`."""
        if self.stage and self._spare is not None:
            held = self._work.params.unit_room + UNIT_IN_FLIGHT
            self.stage.close(job.emit, self._work.x.view, self._spare, held)

    def _input_bytes(self, boxes: list[PixelBox]) -> int:
        """Return the bytes of a buffer that holds any of ``boxes`` of the input."""
        inside = [self._work.x.view.clip(box) for box in boxes]
        return self._work.words(max((box.rows * box.cols * box.channels for box in inside if box), default=0))


def kept_input(work: ConvWork) -> KeptInputLoader | None:
    """Return who loads the input if it stays in LV2, at the end of the staging area: if it comes from DRAM and fits
    there beside what else passes through. None otherwise."""
    if work.x.view.on_chip or not work.x.view.is_dense or not work.pixel_tiles:
        return None
    boxes = [work.tile_box(tile, 0, work.most_channels) for tile in work.pixel_tiles]
    first, last = KeptInputLoader.span(work.x.view, boxes)
    area, word = work.staging, work.params.lv1_word
    base = (area.base + area.size - (last - first)) // word * word
    alone = work.y.view.on_chip and not work.streamed and (not work.addend or not work.addend.staged)
    if base < area.base + (0 if alone else area.size // 3):
        return None
    chunks = work.chunks(work.most_channels)
    read = (work.input_box(tile, chunk, 0) for tile in work.pixel_tiles for chunk in chunks)
    return KeptInputLoader(work.x.view, base, first, last, read)
