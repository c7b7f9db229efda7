"""Element-wise layers and tables on the vector unit."""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace

from compiler.emission.kernels.region_tiles import engine_tiles, most_channels, parts_by_maker, row_parts
from compiler.emission.kernels.registry import Kernel, KernelContext, kernel
from compiler.emission.kernels.vector_job import VectorJob, free_lv1
from compiler.emission.program import BufferFill, JobProgram, Ring, Sem, StagingRing, Task
from compiler.plan.layers import EltwiseLayer, EngineShare, Share
from compiler.plan.memory.operand import TensorOperand
from compiler.plan.memory.tensor_view import PixelBox, TensorView, boxes
from compiler.plan.tiles import PixelTiles

_MAX_TILE = 8192  #: bytes of one operand per tile: enough to hide start-up, small enough to overlap early
_MAX_COUNT = (1 << 12) - 1


@dataclass(frozen=True)
class _Operands:
    """Holds the operands of a layer; where it makes no difference which byte belongs to which pixel, tensors are taken
    as one pixel of many channels. A tile has at most ``cut`` channels; 0 stands for any."""

    a: TensorOperand
    b: TensorOperand | None
    y: TensorOperand
    cut: int

    @classmethod
    def of(cls, layer: EltwiseLayer, context: KernelContext) -> "_Operands":
        """Return the operands of ``layer``."""
        a, *others = (context.operand(name) for name in layer.inputs)
        b, y = others[0] if others else None, context.operand(layer.output)
        views = [o.view for o in (a, b, y) if o is not None]
        cut = most_channels(context, views)
        whole = not cut and context.share is not Share.ROWS
        if layer.broadcast != "pixels" and all(v.is_dense for v in views) and whole:
            a, y = _as_bytes(a), _as_bytes(y)
            b = _as_bytes(b) if b and not layer.broadcast else b
        return cls(a, b, y, cut)


@kernel
class EltwiseKernel(Kernel[PixelTiles]):
    """Element-wise operators of one or two operands; the engines share the tiles."""

    layers = EltwiseLayer

    def choose(self, layer: EltwiseLayer, context: KernelContext) -> PixelTiles:
        """Return the largest tile of whole rows, or of a part of one, that leaves room for all buffers."""
        lanes, operands = context.params.vec_lanes, _Operands.of(layer, context)
        shape, free = operands.y.view.shape, free_lv1(context.params, context.lv1, layer.requantise)
        most = min(_MAX_TILE, free // 8, context.budget.staging(0).size // 6) // lanes * lanes
        channels = min(shape[3], most, _MAX_COUNT * lanes, operands.cut or most)
        pitch = -(-channels // lanes) * lanes
        cols = max(1, min(shape[2], most // pitch, _MAX_COUNT))
        rows = max(1, min(shape[1], most // (pitch * cols), _MAX_COUNT // cols)) if cols == shape[2] else 1
        return PixelTiles(rows, cols, channels)

    def job(
        self, layer: EltwiseLayer, tiles: PixelTiles, context: KernelContext, engine: int
    ) -> JobProgram | None:  # fmt: skip
        """Return the tiles of an engine; None if it has none."""
        return _job(layer, _Operands.of(layer, context), tiles, context, EngineShare(engine, context.budget.engines))


def _job(
    layer: EltwiseLayer, of: _Operands, tiles: PixelTiles, context: KernelContext, share: EngineShare
) -> JobProgram | None:
    a, b, y, lanes = of.a, of.b, of.y, context.params.vec_lanes
    header = {"ma": layer.ma, "mb": layer.mb, "bias": layer.bias}
    if not layer.raw:
        header |= {"zp_a": a.zero_point, "zp_b": b.zero_point if b else 0}
    build = VectorJob(context, share.index, layer.requantise, header)
    pitch = -(-tiles.channels // lanes) * lanes
    size = tiles.rows * tiles.cols * pitch
    size_b = size if b is not None and not layer.broadcast else pitch
    ring_a = build.ring(Sem.A_FULL, Sem.A_FREE, size)
    ring_b = build.ring(Sem.B_FULL, Sem.B_FREE, size_b)
    out = build.ring(Sem.OUT_FULL, Sem.OUT_FREE, size)
    stage_a = build.stage(a, size, Sem.STAGE_FULL, Sem.STAGE_FREE)
    stage_b = build.stage(b, size_b, Sem.STAGE_B_FULL, Sem.STAGE_B_FREE) if b else None
    spill = build.spill(y, size)
    height = y.view.shape[1]
    found: Iterable[PixelBox] = row_parts(boxes(y.view.shape, tiles.rows, tiles.cols, tiles.channels), context, height)
    found = [part for box in found for part in parts_by_maker(box, a.view, context)]
    if b is not None:
        found = [part for box in found for part in _parts_by_maker_of_b(box, layer, b.view, context)]
    read = [(box, box, _sources(box, layer, a, b)) for box in found]
    for box in engine_tiles(read, context, share, height):
        line = -(-box.channels // lanes) * lanes
        fill_a = ring_a.fill(box)
        loads = build.job.load(a.view, box, fill_a.address, box.cols * line, line, a.zero_byte, stage_a, box)
        ring_a.filled_by(fill_a, loads)
        fill_y = out.fill(box)
        fields = {
            "op": layer.op_code, "a_signed": int(a.signed and not layer.raw), "n1": box.rows * box.cols,
            "n0": line // lanes, "a": fill_a.address, "a_s1": line, "a_s0": lanes, "d": fill_y.address, "d_s1": line,
            "d_s0": lanes,
        }  # fmt: skip
        fill_b = None
        if b is not None:
            fill_b = _operand_b(build, layer, ring_b, b, box, line, stage_b)
            strides = {"": (line, lanes), "pixels": (0, lanes), "all": (0, 0)}[layer.broadcast]
            fields |= {
                "b_en": 1, "b_signed": int(b.signed), "b": fill_b.address, "b_s1": strides[0], "b_s0": strides[1],
            }  # fmt: skip
        vec = build.vec("result", fields)
        ring_a.read_by(fill_a, vec)
        if fill_b is not None:
            ring_b.read_by(fill_b, vec)
        out.filled_by(fill_y, [vec])
        store = build.job.store(y.view, box, fill_y.address, box.cols * line, line, spill, box)
        out.read_by(fill_y, store)
    return build.finished()


def _as_bytes(operand: TensorOperand) -> TensorOperand:
    """Return a dense tensor as one pixel with all the bytes as channels."""
    n, h, w, c = operand.view.shape
    view = TensorView.dense(operand.view.segment, operand.view.offset, (1, 1, 1, n * h * w * c))
    return TensorOperand(view, operand.signed, operand.zero_point)


def _box_of_b(box: PixelBox, layer: EltwiseLayer, b: TensorView) -> PixelBox:
    """Return what of B, where it is broadcast, belongs to ``box`` of the result."""
    everywhere = layer.broadcast == "all"
    return PixelBox(0 if everywhere else min(box.n, b.shape[0] - 1), 0, 1, 0, 1, box.c, box.channels)


def _parts_by_maker_of_b(
    box: PixelBox, layer: EltwiseLayer, b: TensorView, context: KernelContext
) -> Iterator[PixelBox]:  # fmt: skip
    """Yield ``box`` in parts for each of which one engine makes what is needed of B."""
    if not layer.broadcast:
        yield from parts_by_maker(box, b, context)
    elif layer.broadcast == "all":
        yield box
    else:
        for part in parts_by_maker(_box_of_b(box, layer, b), b, context):
            yield replace(box, c=part.c, channels=part.channels)


def _sources(
    box: PixelBox, layer: EltwiseLayer, a: TensorOperand, b: TensorOperand | None
) -> list[tuple[TensorView, PixelBox]]:  # fmt: skip
    """Return what ``box`` of the result reads. One value for all is no member's: it comes from outside of a region."""
    if b is None or layer.broadcast == "all":
        return [(a.view, box)]
    return [(a.view, box), (b.view, _box_of_b(box, layer, b.view) if layer.broadcast else box)]


def _operand_b(
    build: VectorJob, layer: EltwiseLayer, ring: Ring, b: TensorOperand, box: PixelBox, line: int,
    stage: StagingRing | None,
) -> BufferFill:  # fmt: skip
    """Return the LV1 buffer with B's part of a tile."""
    everywhere, part = layer.broadcast == "all", box
    key: Hashable = box
    if layer.broadcast:
        part = _box_of_b(box, layer, b.view)
        key = () if everywhere else part

    def load(fill: BufferFill) -> list[Task]:
        if everywhere:
            return build.job.load_repeated(b.view, build.params.vec_lanes, fill.address, stage, key)
        return build.job.load(b.view, part, fill.address, part.cols * line, line, b.zero_byte, stage, key)

    return ring.holding(key, load)
