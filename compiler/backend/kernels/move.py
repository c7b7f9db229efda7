"""Layers that only change the order of bytes: LV2 → LV1 → LV2, through staging where a tensor lies in DRAM."""

from compiler.backend.kernels.registry import Kernel, KernelContext, kernel
from compiler.backend.layers.layer import Layer, MoveLayer, StridedCopy
from compiler.backend.memory.tensor_view import TensorView
from compiler.backend.program.copies import Dims, merge, strided_copy, tiles
from compiler.backend.program.job import JobProgram
from compiler.backend.program.ring import Ring
from compiler.backend.program.semaphores import Sem
from compiler.backend.tiling.move_tile import move_tile_bytes
from compiler.plan.tiles import MoveTiles
from hw.contract.isa import Op, Segment


@kernel
class MoveKernel(Kernel[MoveTiles]):
    """Concatenations, permutations and slices, on the first engine."""

    def match(self, layer: Layer, context: KernelContext) -> bool:
        """Any layer of strided copies."""
        return isinstance(layer, MoveLayer)

    def choose(self, layer: MoveLayer, context: KernelContext) -> MoveTiles:
        """Return tiles that fit two buffers in LV1."""
        return MoveTiles(move_tile_bytes(context.params, context.lv1, context.budget.staging(0)))

    def emit(self, layer: MoveLayer, tiles: MoveTiles, context: KernelContext) -> list[JobProgram]:
        """Return one job, if anything is to be copied."""
        copies = _copies(layer, context)
        if not copies:
            return []
        target = context.operand(layer.output).view
        mover = _Mover(context, tiles.size)
        for copy in copies:
            mover.move(context.placement.view(copy.src), target, copy)
        return [mover.job]


def _copies(layer: MoveLayer, context: KernelContext) -> list[StridedCopy]:
    """Return the copies of inputs that are not written in place, nor read there."""
    pairs = [(copy, copy.src, layer.output) for copy in layer.copies]
    within = {(inner, outer) for inner, (outer, _) in context.placement.inside.items()}
    return [copy for copy, one, other in pairs if not {(one, other), (other, one)} & within]


class _Mover:
    """Makes strided copies between dense places, tile by tile of ``size`` bytes, in one job."""

    def __init__(self, context: KernelContext, size: int) -> None:
        self.job, staging = JobProgram(context.params, context.number), context.budget.staging(0)
        self._size = size
        self._ring = Ring(Sem.MOVE_FULL, Sem.MOVE_FREE, context.lv1.base, size, 2)
        self._stage = Ring(Sem.STAGE_FULL, Sem.STAGE_FREE, staging.base, size, 2)
        self._spill = Ring(Sem.SPILL_FULL, Sem.SPILL_FREE, staging.base + 2 * size, size, 2)

    def move(self, source: TensorView, target: TensorView, copy: StridedCopy) -> None:
        """Copy from ``source`` to ``target``."""
        for src, dst, tile in tiles(merge(copy.dims), self._size):
            first = source.offset + copy.start + src
            self._tile(source, first, target, target.offset + copy.offset + dst, tile)

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
            load = self.job.emit(Op.LD1, strided_copy(src, fill.address, reads) | {"src_seg": source.segment})
        else:
            slot = self._stage.fill(None)
            fields = strided_copy(src, slot.address, reads) | {"src_seg": source.segment, "dst_seg": Segment.LV2}
            self._stage.filled_by(slot, [self.job.emit(Op.LD2, fields)])
            load = self.job.emit(
                Op.LD1, strided_copy(slot.address, fill.address, [(size, 1, 1)]) | {"src_seg": Segment.LV2}
            )
            self._stage.read_by(slot, load)
        self._ring.filled_by(fill, [load])
        if target.on_chip:
            store = self.job.emit(Op.ST1, strided_copy(fill.address, dst, writes) | {"dst_seg": target.segment})
        else:
            slot = self._spill.fill(None)
            store = self.job.emit(
                Op.ST1, strided_copy(fill.address, slot.address, [(size, 1, 1)]) | {"dst_seg": Segment.LV2}
            )
            self._spill.filled_by(slot, [store])
            fields = strided_copy(slot.address, dst, writes) | {"src_seg": Segment.LV2, "dst_seg": target.segment}
            self._spill.read_by(slot, self.job.emit(Op.ST2, fields))
        self._ring.read_by(fill, store)
