"""Layers that only move bytes: loads, copies in another order, padding. LV2 → LV1 → LV2, through staging where a tensor
lies in DRAM."""

import math

from compiler.emission.kernels.registry import Kernel, KernelContext, kernel
from compiler.emission.program import JobProgram, ParameterUse, Ring, Sem, StagingRing
from compiler.emission.program.copies import MAX_RUN, PIECE, Dims, contiguous, merge, pieces, strided_copy, tiles
from compiler.plan.layers import Layer, LoadLayer, MoveLayer, PadLayer, RefillLayer, StoreLayer, StridedCopy
from compiler.plan.memory.tensor_view import PixelBox, TensorView, boxes
from compiler.plan.plan_error import PlanError
from compiler.plan.tiles import AnyTiles, MoveTiles, Uncut
from hw.contract.isa import Op, Segment
from hw.contract.params import SocParams

#: An end of a copy: a tensor, its first byte there, and what is added to that.
_End = tuple[TensorView, int, tuple[ParameterUse, ...]]
_LARGEST = 8192  #: bytes of a tile: enough to hide start-up, small enough to overlap early


_WINDOW_PARTS = 8  #: of all windows, which one window of a state takes at most


@kernel
class LoadKernel(Kernel[Uncut]):
    """Loads without a detour; where the result has found no room in LV2, it is moved as other layers of copies are."""

    layers = LoadLayer

    def match(self, layer: Layer, context: KernelContext) -> bool:
        """A load to LV2."""
        plain = isinstance(layer, LoadLayer) and not layer.ahead
        return plain and context.operand(layer.output).view.on_chip

    def choose(self, layer: LoadLayer, context: KernelContext) -> Uncut:
        """Nothing to choose."""
        return Uncut()

    def job(self, layer: LoadLayer, tiles: Uncut, context: KernelContext, engine: int) -> JobProgram | None:
        """Return the load of the engine's part."""
        source, target = context.operand(layer.inputs[0]).view, context.operand(layer.output).view
        first, last = _share(math.prod(source.shape), engine, context)
        job = JobProgram(context.params, context.number, engine, direct=isinstance(layer, RefillLayer))
        for fields in pieces(source.offset + first, target.offset + first, last - first):
            job.emit(Op.LD2, fields | {"src_seg": source.segment, "dst_seg": target.segment})
        return job if job.tasks else None


@kernel
class StoreKernel(Kernel[Uncut]):
    """Stores without a detour; what has found no room in LV2 is moved as other layers of copies are."""

    layers = StoreLayer

    def match(self, layer: Layer, context: KernelContext) -> bool:
        """A store from LV2."""
        return isinstance(layer, StoreLayer) and context.operand(layer.inputs[0]).view.on_chip

    def choose(self, layer: StoreLayer, context: KernelContext) -> Uncut:
        """Nothing to choose."""
        return Uncut()

    def job(self, layer: StoreLayer, tiles: Uncut, context: KernelContext, engine: int) -> JobProgram | None:
        """Return the store of the engine's part."""
        source, target = context.operand(layer.inputs[0]).view, context.operand(layer.output).view
        first, last = _share(math.prod(source.shape), engine, context)
        job = JobProgram(context.params, context.number, engine, direct=True)
        for at in range(first, last, PIECE):
            for fields in contiguous(source.offset + at, target.offset + at, min(PIECE, last - at)):
                job.emit(Op.ST2, fields | {"src_seg": source.segment, "dst_seg": target.segment})
        return job if job.tasks else None


def _share(size: int, engine: int, context: KernelContext) -> tuple[int, int]:
    """Return the part of ``size`` bytes that ``engine`` moves: whole pieces, about as many for each engine."""
    engines, count = context.budget.engines, -(-size // PIECE)
    first, last = (min(size, count * number // engines * PIECE) for number in (engine, engine + 1))
    return first, last


@kernel
class StateKernel(Kernel[MoveTiles]):
    """Loads that prologues do: to a window of the job, from which it is copied to where it stays."""

    layers = LoadLayer

    def match(self, layer: Layer, context: KernelContext) -> bool:
        """A load ahead of its job."""
        return isinstance(layer, LoadLayer) and layer.ahead

    def choose(self, layer: LoadLayer, context: KernelContext) -> MoveTiles:
        """Return tiles of which two fit in LV1."""
        word = context.params.lv1_word
        return MoveTiles(min(_LARGEST, context.lv1.size // 2) // word * word)

    def emit(self, layer: LoadLayer, tiles: MoveTiles, context: KernelContext) -> list[JobProgram]:
        """Return jobs of each engine in turn, each with as much as a window should have."""
        size, engines = math.prod(context.operand(layer.output).view.shape), context.budget.engines
        most = max(1, context.budget.windows // _WINDOW_PARTS // tiles.size) * tiles.size
        part = min(most, -(-size // (engines * tiles.size)) * tiles.size)
        found = [self._job(layer, tiles, context, first, min(part, size - first)) for first in range(0, size, part)]
        for number, job in enumerate(found):
            job.engine = number % engines
        return found

    def _job(self, layer: LoadLayer, tiles: MoveTiles, context: KernelContext, first: int, size: int) -> JobProgram:
        source, target = context.placement.view(layer.inputs[0]), context.operand(layer.output).view
        job = JobProgram(context.params, context.number, ahead=(source.segment, source.offset + first))
        window = job.keep(bytes(size))
        ring = Ring(Sem.MOVE_FULL, Sem.MOVE_FREE, context.lv1.base, tiles.size, 2)
        for at in range(0, size, tiles.size):
            fill, count = ring.fill(at), min(tiles.size, size - at)
            ring.filled_by(fill, job.load_window(window + at, fill.address, count))
            fields = strided_copy(fill.address, target.offset + first + at, [(count, 1, 1)])
            ring.read_by(fill, job.emit(Op.ST1, fields | {"dst_seg": target.segment}))
        return job


class TiledMoveKernel(Kernel[MoveTiles]):
    """Layers that move bytes through LV1, on the first engine."""

    def choose(self, layer: Layer, context: KernelContext) -> MoveTiles:
        """Return tiles of which two fit in LV1, and four in the staging area."""
        word, staging = context.params.lv1_word, context.budget.staging(0)
        return MoveTiles(min(_LARGEST, context.lv1.size // 2, staging.size // 4) // word * word)

    def given(self, layer: Layer, tiles: AnyTiles, context: KernelContext) -> MoveTiles:
        """Return what the base class says, tiles of which two buffers fit."""
        found, most = super().given(layer, tiles, context), self.choose(layer, context)
        if found.size > most.size:
            raise PlanError(f"tiles.size is {found.size}, and must be {most.size} at most")
        return found


@kernel
class MoveKernel(TiledMoveKernel):
    """Concatenations, permutations and slices."""

    layers = MoveLayer

    def emit(self, layer: MoveLayer, tiles: MoveTiles, context: KernelContext) -> list[JobProgram]:
        """Return one job, if anything is to be copied."""
        copies = _copies(layer, context)
        if not copies:
            return []
        mover = _Mover(context, tiles.size)
        for copy in copies:
            mover.move(context.placement.view(copy.src), context.placement.view(copy.dst or layer.output), copy)
        return [mover.job]


def _copies(layer: MoveLayer, context: KernelContext) -> list[StridedCopy]:
    """Return the copies of inputs that are not written in place, nor read there."""
    pairs = [(copy, copy.src, copy.dst or layer.output) for copy in layer.copies]
    within = {(inner, outer) for inner, (outer, _) in context.placement.inside.items()}
    return [copy for copy, one, other in pairs if not {(one, other), (other, one)} & within]


class _Mover:
    """Makes strided copies between dense places, tile by tile of ``size`` bytes, in one job."""

    def __init__(self, context: KernelContext, size: int) -> None:
        self._more = context.more
        self.job, staging = JobProgram(context.params, context.number), context.budget.staging(0)
        self._size = size
        self._ring = Ring(Sem.MOVE_FULL, Sem.MOVE_FREE, context.lv1.base, size, 2)
        self._stage = Ring(Sem.STAGE_FULL, Sem.STAGE_FREE, staging.base, size, 2)
        self._spill = Ring(Sem.SPILL_FULL, Sem.SPILL_FREE, staging.base + 2 * size, size, 2)

    def move(self, source: TensorView, target: TensorView, copy: StridedCopy) -> None:
        """Copy from ``source`` to ``target``."""
        reads, writes = self._more("src", copy.more_start), self._more("dst", copy.more_offset)
        for src, dst, tile in tiles(merge(copy.dims), self._size):
            first = source.offset + copy.start + src
            self._tile((source, first, reads), (target, target.offset + copy.offset + dst, writes), tile)

    def _tile(self, read: _End, written: _End, tile: Dims) -> None:
        (source, src, more_src), (target, dst, more_dst) = read, written
        packed, size = _packed(tile)
        reads = [(count, step, pack) for (count, step, _), pack in zip(tile, packed, strict=True)]
        writes = [(count, pack, step) for (count, _, step), pack in zip(tile, packed, strict=True)]
        fill = self._ring.fill(None)
        if source.on_chip:
            fields = strided_copy(src, fill.address, reads) | {"src_seg": source.segment}
            load = self.job.emit(Op.LD1, fields, more_src)
        else:
            slot, staged = self._stage.fill(None), _staged(reads)
            brought = [(count, step, at) for (count, step, _), at in zip(reads, staged, strict=True)]
            brought.sort(key=lambda dim: -dim[2])
            fields = strided_copy(src, slot.address, brought) | {"src_seg": source.segment, "dst_seg": Segment.LV2}
            self._stage.filled_by(slot, [self.job.emit(Op.LD2, fields, more_src)])
            turned = [(count, at, pack) for (count, _, pack), at in zip(reads, staged, strict=True)]
            load = self.job.emit(
                Op.LD1, strided_copy(slot.address, fill.address, merge(turned)) | {"src_seg": Segment.LV2}
            )
            self._stage.read_by(slot, load)
        self._ring.filled_by(fill, [load])
        if target.on_chip:
            fields = strided_copy(fill.address, dst, writes) | {"dst_seg": target.segment}
            store = self.job.emit(Op.ST1, fields, more_dst)
        else:
            slot = self._spill.fill(None)
            store = self.job.emit(
                Op.ST1, strided_copy(fill.address, slot.address, [(size, 1, 1)]) | {"dst_seg": Segment.LV2}
            )
            self._spill.filled_by(slot, [store])
            fields = strided_copy(slot.address, dst, writes) | {"src_seg": Segment.LV2, "dst_seg": target.segment}
            self._spill.read_by(slot, self.job.emit(Op.ST2, fields, more_dst))
        self._ring.read_by(fill, store)


def _packed(dims: Dims) -> tuple[list[int], int]:
    """Return the strides of ``dims`` where they lie without gaps, the last ones next to each other, and the bytes."""
    strides, size = list[int](), 1
    for count, _, _ in reversed(dims):
        strides.insert(0, size)
        size *= count
    return strides, size


def _staged(reads: Dims) -> list[int]:
    """Return the strides by which a tile lies in LV2 on its way: as in DRAM where it comes byte by byte otherwise, of
    which each would be a burst; else as in LV1."""
    if reads[-1][1] == 1 or all(step != 1 for _, step, _ in reads):
        return _packed(reads)[0]
    places = sorted(range(len(reads)), key=lambda place: -reads[place][1])
    found = dict(zip(places, _packed([reads[place] for place in places])[0], strict=True))
    return [found[place] for place in range(len(reads))]


@kernel
class PadKernel(TiledMoveKernel):
    """Padding of rows and columns: the load to LV1 fills, the store copies."""

    layers = PadLayer

    def emit(self, layer: PadLayer, tiles: MoveTiles, context: KernelContext) -> list[JobProgram]:
        """Return one job, whose tiles have whole rows of the output as far as they hold them."""
        size, staging = tiles.size, context.budget.staging(0)
        _, height, width, depth = context.operand(layer.output).view.shape
        channels = min(depth, size)
        cols = max(1, min(width, size // channels))
        rows = max(1, min(height, size // (channels * cols))) if cols == width else 1
        x, y = context.operand(layer.inputs[0]), context.operand(layer.output)
        job = JobProgram(context.params, context.number)
        ring = Ring(Sem.MOVE_FULL, Sem.MOVE_FREE, context.lv1.base, size, 2)
        stage = StagingRing(Sem.STAGE_FULL, Sem.STAGE_FREE, staging.base, size, 2)
        spill = Ring(Sem.SPILL_FULL, Sem.SPILL_FREE, staging.base + 2 * size, size, 2)
        top, left = layer.pads
        for box in boxes(y.view.shape, rows, cols, channels):
            source = PixelBox(box.n, box.y - top, box.rows, box.x - left, box.cols, box.c, box.channels)
            fill, line = ring.fill(box), box.cols * box.channels
            loads = job.load(x.view, source, fill.address, line, box.channels, layer.value & 0xFF, stage, box)
            ring.filled_by(fill, loads)
            ring.read_by(fill, job.store(y.view, box, fill.address, line, box.channels, spill, box))
        return [job]


def export_job(params: SocParams, number: int, source: TensorView, offset: int, segment: int) -> JobProgram:
    """Copy a tensor from LV2 to DRAM as it is, for an observer."""
    job = JobProgram(params, number)
    n, h, w, c = source.shape
    sn, sh, sw = source.strides
    for src, dst, tile in tiles(merge([(n, sn, h * w * c), (h, sh, w * c), (w, sw, c), (c, 1, 1)]), MAX_RUN):
        fields = strided_copy(source.offset + src, offset + dst, tile)
        job.emit(Op.ST2, fields | {"src_seg": source.segment, "dst_seg": segment})
    return job
