"""Softmax of rows on the vector unit: the maximum of each row, the sum of its exponentials, and the quotients."""

import numpy as np

from compiler.backend.kernels.registry import Kernel, KernelContext, kernel
from compiler.backend.kernels.row_tiles import RowOperands, choose_rows
from compiler.backend.kernels.vector_job import RowJob, in_words
from compiler.backend.layers.layer import Layer, SoftmaxLayer
from compiler.backend.layers.region_share import own_rows
from compiler.backend.layers.vec_params import vec_params
from compiler.backend.memory.tensor_view import PixelBox
from compiler.backend.program.job import JobProgram
from compiler.backend.program.semaphores import Sem
from compiler.plan.tiles import RowTiles
from hw.contract.isa import WIDE_TABLE_BYTES, VecOp


@kernel
class SoftmaxKernel(Kernel[RowTiles]):
    """Softmax over the last axis; the engines share the rows."""

    def match(self, layer: Layer, context: KernelContext) -> bool:
        """Any softmax."""
        return isinstance(layer, SoftmaxLayer)

    def choose(self, layer: SoftmaxLayer, context: KernelContext) -> RowTiles:
        """As many rows as two buffers of either kind hold."""
        constants = 2 * WIDE_TABLE_BYTES + 3 * len(_block(context))
        return choose_rows(layer, context, constants=constants, buffers=4, records=4)

    def emit(self, layer: SoftmaxLayer, tiles: RowTiles, context: KernelContext) -> list[JobProgram]:
        """Return a job for each engine with a share of the rows."""
        jobs = (_job(layer, tiles.rows, context, engine) for engine in range(context.budget.engines))
        return [job for job in jobs if job]


def _block(context: KernelContext, **header: int) -> bytes:
    lanes = context.params.vec_lanes
    return vec_params(context.params, np.zeros(lanes, np.int32), np.zeros(lanes, np.float32), **header)


def _job(layer: SoftmaxLayer, most: int, context: KernelContext, engine: int) -> JobProgram | None:
    of, lanes = RowOperands.of(layer, context), context.params.vec_lanes
    x, y, length, pitch = of.x, of.y, of.length, of.pitch(context.params)
    constants = {
        "sums": layer.sums.astype("<i4").tobytes(),
        "values": layer.values.astype("<i4").tobytes(),
        "plain": _block(context),
        "sum": _block(context, mb=layer.exponent),
        "value": _block(context, zp_y=layer.zero_point, lo=layer.lo, hi=layer.hi),
    }
    build = RowJob(context, engine, constants)
    size, records = most * pitch, most * lanes
    ring = build.ring(Sem.A_FULL, Sem.A_FREE, size)
    out = build.ring(Sem.OUT_FULL, Sem.OUT_FREE, in_words(size, context.params) + 2 * records)
    stage = build.stage(x, most * length, Sem.STAGE_FULL, Sem.STAGE_FREE)
    spill = build.spill(y, most * length)
    vectors = pitch // lanes
    for part in own_rows(1, x.view.shape[2], engine, context.budget.engines, most):
        box = PixelBox(0, 0, 1, part.first, part.count, 0, length)
        fill, made = ring.fill(box), out.fill(box)
        loads = build.job.load(x.view, box, fill.address, 0, pitch, x.zero_byte, stage, box)
        ring.filled_by(fill, loads)
        maxima = made.address + in_words(size, context.params)
        sums = maxima + records
        rows = {"a_signed": int(x.signed), "a": fill.address, "n1": part.count, "a_s1": pitch}
        window = {"across": 1, "tail": length % lanes, "k0": vectors, "a_k0": lanes, "d_s1": lanes}
        largest = build.vec("plain", {"op": VecOp.MAX, **rows, **window, "d": maxima})
        record = {"op": VecOp.LOOKUP, "b_en": 1, "row": 1, "b_s1": lanes}
        summed = build.vec(
            "sum", {**rows, **window, **record, "b": maxima, "d": sums, "t": build.at["sums"]}, after=largest
        )  # fmt: skip
        each = {"n0": vectors, "a_s0": lanes, "d": made.address, "d_s1": pitch, "d_s0": lanes}
        value = build.vec("value", {**rows, **record, **each, "b": sums, "t": build.at["values"]}, after=summed)
        for task in (largest, summed, value):
            ring.read_by(fill, task)
        out.filled_by(made, [largest, summed, value])
        store = build.job.store(y.view, box, made.address, 0, pitch, spill, box)
        out.read_by(made, store)
    return build.finished()
