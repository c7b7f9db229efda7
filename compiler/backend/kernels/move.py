"""Code for layers that only move bytes: LV2 → LV1 → LV2, through DRAM buffers where a tensor lives there."""

from collections.abc import Iterator

from compiler.backend.kernels.vector import boxes
from compiler.backend.layers.layer import PadLayer
from compiler.backend.memory.operand import StagingArea, TensorOperand
from compiler.backend.memory.tensor_view import PixelBox, TensorView
from compiler.backend.program.copies import MAX_RUN, CopyLoop, copy_fields
from compiler.backend.program.job import JobProgram, StagingRing
from compiler.backend.program.semaphores import Sem
from compiler.backend.program.task import Ring
from hw.contract.isa import Op, Segment
from hw.contract.params import SocParams

_MAX_TILE = 8192
Dims = list[tuple[int, int, int]]  #: (count, source stride, destination stride), outermost first


def pad_job(
    params: SocParams, number: int, layer: PadLayer, x: TensorOperand, y: TensorOperand, staging: StagingArea
) -> JobProgram:
    """Constant padding: the load fills, the store copies."""
    job = JobProgram(params, number)
    size = _tile_size(params, staging)
    _, height, width, depth = y.view.shape
    channels = min(depth, size)
    cols = max(1, min(width, size // channels))
    rows = max(1, min(height, size // (channels * cols))) if cols == width else 1
    ring = Ring(Sem.MOVE_FULL, Sem.MOVE_FREE, 0, size, 2)
    stage = StagingRing(Sem.STAGE_FULL, Sem.STAGE_FREE, staging.base, size, 2)
    spill = Ring(Sem.SPILL_FULL, Sem.SPILL_FREE, staging.base + 2 * size, size, 2)
    top, left = layer.pads
    for box in boxes(y.view.shape, rows, cols, channels):
        source = PixelBox(box.n, box.y - top, box.rows, box.x - left, box.cols, box.c, box.channels)
        fill, line = ring.fill(box), box.cols * box.channels
        loads = job.load(x.view, source, fill.address, line, box.channels, layer.value & 0xFF, stage, box)
        ring.filled_by(fill, loads)
        ring.read_by(fill, job.store(y.view, box, fill.address, line, box.channels, spill, box))
    return job


def _tile_size(params: SocParams, staging: StagingArea) -> int:
    word = params.lv1_word
    return min(_MAX_TILE, params.lv1_bytes // 2, staging.size // 4) // word * word


class Mover:
    """Strided copies between dense places, tile by tile, in one job."""

    def __init__(self, params: SocParams, number: int, staging: StagingArea) -> None:
        self.job = JobProgram(params, number)
        self._size = size = _tile_size(params, staging)
        self._ring = Ring(Sem.MOVE_FULL, Sem.MOVE_FREE, 0, size, 2)
        self._stage = Ring(Sem.STAGE_FULL, Sem.STAGE_FREE, staging.base, size, 2)
        self._spill = Ring(Sem.SPILL_FULL, Sem.SPILL_FREE, staging.base + 2 * size, size, 2)

    def move(self, source: TensorView, target: TensorView, offset: int, dims: Dims) -> None:
        """Copy from the start of ``source`` to byte ``offset`` of ``target``."""
        dims = merge(dims)
        for src, dst, tile in tiles(dims, self._size):
            self._tile(source, source.offset + src, target, target.offset + offset + dst, tile)

    def _tile(self, source: TensorView, src: int, target: TensorView, dst: int, tile: Dims) -> None:
        packed, size = [], 1
        for count, _, _ in reversed(tile):
            packed.append(size)
            size *= count
        packed.reverse()
        reads = [(count, step, pack) for (count, step, _), pack in zip(tile, packed, strict=True)]
        writes = [(count, pack, step) for (count, _, step), pack in zip(tile, packed, strict=True)]
        fill = self._ring.fill(None)
        if source.on_chip:
            load = self.job.emit(Op.LD1, _copy(src, fill.address, reads) | {"src_seg": source.segment})
        else:
            slot = self._stage.fill(None)
            fields = _copy(src, slot.address, reads) | {"src_seg": source.segment, "dst_seg": Segment.LV2}
            self._stage.filled_by(slot, [self.job.emit(Op.LD2, fields)])
            load = self.job.emit(Op.LD1, _copy(slot.address, fill.address, [(size, 1, 1)]) | {"src_seg": Segment.LV2})
            self._stage.read_by(slot, load)
        self._ring.filled_by(fill, [load])
        if target.on_chip:
            store = self.job.emit(Op.ST1, _copy(fill.address, dst, writes) | {"dst_seg": target.segment})
        else:
            slot = self._spill.fill(None)
            store = self.job.emit(Op.ST1, _copy(fill.address, slot.address, [(size, 1, 1)]) | {"dst_seg": Segment.LV2})
            self._spill.filled_by(slot, [store])
            fields = _copy(slot.address, dst, writes) | {"src_seg": Segment.LV2, "dst_seg": target.segment}
            self._spill.read_by(slot, self.job.emit(Op.ST2, fields))
        self._ring.read_by(fill, store)


def export_job(params: SocParams, number: int, source: TensorView, offset: int, segment: int) -> JobProgram:
    """Copy a tensor from LV2 to DRAM as it is."""
    job = JobProgram(params, number)
    n, h, w, c = source.shape
    sn, sh, sw = source.strides
    for src, dst, tile in tiles(merge([(n, sn, h * w * c), (h, sh, w * c), (w, sw, c), (c, 1, 1)]), MAX_RUN):
        fields = _copy(source.offset + src, offset + dst, tile)
        job.emit(Op.ST2, fields | {"src_seg": source.segment, "dst_seg": segment})
    return job


def _copy(src: int, dst: int, dims: Dims) -> dict[str, int]:
    return copy_fields(src, dst, [CopyLoop(*dim) for dim in dims], 1)


def merge(dims: Dims) -> Dims:
    """``dims`` without single iterations, neighbours that step alike joined."""
    merged: Dims = []
    for count, src, dst in dims:
        if count == 1:
            continue
        if merged and merged[-1][1:] == (src * count, dst * count):
            merged[-1] = (merged[-1][0] * count, src, dst)
        else:
            merged.append((count, src, dst))
    return merged or [(1, 1, 1)]


def tiles(dims: Dims, size: int) -> Iterator[tuple[int, int, Dims]]:
    """Cut a strided copy into copies of at most ``size`` bytes that one instruction can carry out each.

    Yields source offset, destination offset and dims of each.
    """
    inner = 1 if dims[-1][1:] == (1, 1) else 0  # runs come on top of the three loops
    keep: list[int] = []
    room = size
    for position, (count, _, _) in enumerate(reversed(dims)):
        take = min(count, room, MAX_RUN) if position < 3 + inner else 1
        keep.append(take)
        room = room // take if take == count else 1
    keep.reverse()

    def cut(level: int, src: int, dst: int, tile: Dims) -> Iterator[tuple[int, int, Dims]]:
        if level == len(dims):
            yield src, dst, tile[-(3 + inner) :] if len(tile) > 3 + inner else tile
            return
        count, src_step, dst_step = dims[level]
        for first in range(0, count, keep[level]):
            part = (min(keep[level], count - first), src_step, dst_step)
            yield from cut(level + 1, src + first * src_step, dst + first * dst_step, [*tile, part])

    return cut(0, 0, 0, [])
