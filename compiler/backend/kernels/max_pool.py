"""Maxima over windows on the vector unit."""

import itertools
from dataclasses import dataclass

from compiler.backend.kernels.registry import Kernel, KernelContext, Plan, kernel
from compiler.backend.kernels.vector_job import VectorJob, free_lv1
from compiler.backend.layers.layer import Layer, MaxLayer
from compiler.backend.memory.tensor_view import PixelBox, boxes
from compiler.backend.program.job import JobProgram
from compiler.backend.program.semaphores import Sem
from compiler.backend.tiling.engine_share import EngineShare
from compiler.ir import CompileError
from hw.contract.isa import VecOp

_MAX_COUNT = (1 << 12) - 1


@dataclass(frozen=True)
class MaxPlan(Plan):
    """Tiles of ``rows`` x ``cols`` output pixels of ``channels`` channels."""

    layer: MaxLayer
    rows: int
    cols: int
    channels: int


@kernel
class MaxKernel(Kernel[MaxPlan]):
    """Maxima over windows; the engines share the tiles."""

    def match(self, layer: Layer, context: KernelContext) -> bool:
        """Any maximum over windows."""
        return isinstance(layer, MaxLayer)

    def plan(self, layer: MaxLayer, context: KernelContext) -> MaxPlan:
        """The tile that loads least."""
        params, shape = context.params, context.operand(layer.output).view.shape
        free = free_lv1(params, layer.requantise) - 2 * params.lv1_word
        budget = min(free, context.budget.staging(0).size // 2) // 2
        return MaxPlan("", layer, *_max_tile(layer, shape, budget, params.vec_lanes))

    def emit(self, plan: MaxPlan, context: KernelContext) -> list[JobProgram]:
        """A job for each engine with a share of the tiles."""
        jobs = (_job(plan, context, EngineShare(i, context.budget.engines)) for i in range(context.budget.engines))
        return [job for job in jobs if job]


def _job(plan: MaxPlan, context: KernelContext, share: EngineShare) -> JobProgram | None:
    layer, rows, cols, channels = plan.layer, plan.rows, plan.cols, plan.channels
    x, y, longest = context.operand(layer.inputs[0]), context.operand(layer.output), context.longest
    staging = context.budget.staging(share.index)
    build = VectorJob(context.params, context.number, staging, share, layer.requantise, zp_a=x.zero_point)
    lanes, (kh, kw), (sh, sw), (top, left) = context.params.vec_lanes, layer.kernel, layer.strides, layer.pads
    pitch = -(-channels // lanes) * lanes
    in_size = ((rows - 1) * sh + kh) * ((cols - 1) * sw + kw) * pitch
    ring = build.ring(Sem.A_FULL, Sem.A_FREE, in_size)
    out = build.ring(Sem.OUT_FULL, Sem.OUT_FREE, rows * cols * pitch)
    stage = build.stage(x, in_size, Sem.STAGE_FULL, Sem.STAGE_FREE)
    spill = build.spill(y, rows * cols * pitch)
    lowest = 0x80 if x.signed else 0
    for box in share.of(boxes(y.view.shape, rows, cols, channels)):
        line = -(-box.channels // lanes) * lanes
        source = PixelBox(
            box.n, box.y * sh - top, (box.rows - 1) * sh + kh, box.x * sw - left, (box.cols - 1) * sw + kw,
            box.c, box.channels,
        )  # fmt: skip
        fill, row = ring.fill(box), source.cols * line
        ring.filled_by(fill, build.job.load(x.view, source, fill.address, row, line, lowest, stage, box))
        result = out.fill(box)
        vecs = []
        for first, count in _row_parts(box.rows, box.cols * line // lanes * kh * kw, longest):
            vecs.append(
                build.vec(
                    {
                        "op": VecOp.MAX, "a_signed": int(x.signed), "n2": count, "n1": box.cols, "n0": line // lanes,
                        "k1": kh, "k0": kw, "a": fill.address + first * sh * row, "a_s2": sh * row, "a_s1": sw * line,
                        "a_s0": lanes, "a_k1": row, "a_k0": line, "d": result.address + first * box.cols * line,
                        "d_s2": box.cols * line, "d_s1": line, "d_s0": lanes,
                    }
                )
            )  # fmt: skip
            ring.read_by(fill, vecs[-1])
        out.filled_by(result, vecs)
        out.read_by(result, build.job.store(y.view, box, result.address, box.cols * line, line, spill, box))
    return build.finished()


def _row_parts(rows: int, cycles: int, longest: int) -> list[tuple[int, int]]:
    """First row and count of nearly equal parts of ``rows`` rows of ``cycles`` cycles each."""
    pieces = min(rows, -(-rows * cycles // longest)) if longest else 1
    bounds = [rows * i // pieces for i in range(pieces + 1)]
    return [(low, high - low) for low, high in itertools.pairwise(bounds)]


def _max_tile(layer: MaxLayer, shape: tuple[int, int, int, int], budget: int, lanes: int) -> tuple[int, int, int]:
    """Rows, columns and channels of the tile that loads least, with input and output within ``budget`` bytes."""
    (kh, kw), (sh, sw) = layer.kernel, layer.strides
    _, height, width, depth = shape
    best: tuple[float, int, int, int] | None = None
    channels = -(-depth // lanes) * lanes
    while True:
        for parts in range(1, width + 1):
            cols = -(-width // parts)
            in_cols = (cols - 1) * sw + kw
            rows = height
            while rows and channels * (((rows - 1) * sh + kh) * in_cols + rows * cols) > budget:
                rows -= 1
            rows = min(rows, _MAX_COUNT)
            if rows:
                tiles = -(-height // rows) * -(-width // cols) * -(-depth // channels)
                load = tiles * (((rows - 1) * sh + kh) * in_cols * channels + 64 * lanes)
                if best is None or load < best[0]:
                    best = (load, rows, cols, channels)
        if channels == lanes:
            break
        channels = max(lanes, channels // 2 // lanes * lanes)
    if best is None:
        raise CompileError(
            f"operator {layer.name!r}: a {kh}x{kw} window of {lanes} channels exceeds the {budget} bytes an LV1 tile "
            "may have: choose a preset with a larger lv1_bytes"
        )
    return best[1], best[2], min(best[3], depth)
