"""Softmax of rows on the vector unit: the maximum of each row, the sum of its exponentials, and the quotients."""

import numpy as np

from compiler.backend.kernels.buffered_job import in_words
from compiler.backend.kernels.registry import Kernel, KernelContext, kernel
from compiler.backend.kernels.row_job import RowJob
from compiler.backend.kernels.row_plan import RowPlan, plan_rows
from compiler.backend.layers.layer import Layer, SoftmaxLayer
from compiler.backend.layers.row_share import own_rows
from compiler.backend.layers.vec_params import vec_params
from compiler.backend.memory.tensor_view import PixelBox
from compiler.backend.program.job import JobProgram
from compiler.backend.program.semaphores import Sem
from hw.contract.isa import WIDE_TABLE_BYTES, VecOp


@kernel
class SoftmaxKernel(Kernel[RowPlan[SoftmaxLayer]]):
    """Softmax over the last axis; the engines share the rows."""

    def match(self, layer: Layer, context: KernelContext) -> bool:
        """Any softmax."""
        return isinstance(layer, SoftmaxLayer)

    def plan(self, layer: SoftmaxLayer, context: KernelContext) -> RowPlan[SoftmaxLayer]:
        """As many rows as two buffers of either kind hold."""
        constants = 2 * WIDE_TABLE_BYTES + 3 * len(_block(context))
        return plan_rows(layer, context, constants=constants, buffers=4, records=4)

    def emit(self, plan: RowPlan[SoftmaxLayer], context: KernelContext) -> list[JobProgram]:
        """Return a job for each engine with a share of the rows."""
        jobs = (_job(plan, context, engine) for engine in range(context.budget.engines))
        return [job for job in jobs if job]


def _block(context: KernelContext, **header: int) -> bytes:
    lanes = context.params.vec_lanes
    return vec_params(context.params, np.zeros(lanes, np.int32), np.zeros(lanes, np.float32), **header)


def _job(plan: RowPlan[SoftmaxLayer], context: KernelContext, engine: int) -> JobProgram | None:
    layer, x, y, lanes = plan.layer, plan.x, plan.y, context.params.vec_lanes
    constants = {
        "sums": layer.sums.astype("<i4").tobytes(),
        "values": layer.values.astype("<i4").tobytes(),
        "plain": _block(context),
        "sum": _block(context, mb=layer.exponent),
        "value": _block(context, zp_y=layer.zero_point, lo=layer.lo, hi=layer.hi),
    }
    build = RowJob(context, engine, constants)
    size, records = plan.rows * plan.pitch, plan.rows * lanes
    ring = build.ring(Sem.A_FULL, Sem.A_FREE, size)
    out = build.ring(Sem.OUT_FULL, Sem.OUT_FREE, in_words(size, context.params) + 2 * records)
    stage = build.stage(x, plan.rows * plan.length, Sem.STAGE_FULL, Sem.STAGE_FREE)
    spill = build.spill(y, plan.rows * plan.length)
    vectors = plan.pitch // lanes
    for part in own_rows(1, x.view.shape[2], engine, context.budget.engines, plan.rows):
        box = PixelBox(0, 0, 1, part.first, part.count, 0, plan.length)
        fill, made = ring.fill(box), out.fill(box)
        loads = build.job.load(x.view, box, fill.address, 0, plan.pitch, x.zero_byte, stage, box)
        ring.filled_by(fill, loads)
        most = made.address + in_words(size, context.params)
        sums = most + records
        rows = {"a_signed": int(x.signed), "a": fill.address, "n1": part.count, "a_s1": plan.pitch}
        window = {"across": 1, "tail": plan.length % lanes, "k0": vectors, "a_k0": lanes, "d_s1": lanes}
        largest = build.vec("plain", {"op": VecOp.MAX, **rows, **window, "d": most})
        record = {"op": VecOp.LOOKUP, "b_en": 1, "row": 1, "b_s1": lanes}
        summed = build.vec(
            "sum", {**rows, **window, **record, "b": most, "d": sums, "t": build.at["sums"]}, after=largest
        )  # fmt: skip
        each = {"n0": vectors, "a_s0": lanes, "d": made.address, "d_s1": plan.pitch, "d_s0": lanes}
        value = build.vec("value", {**rows, **record, **each, "b": sums, "t": build.at["values"]}, after=summed)
        for task in (largest, summed, value):
            ring.read_by(fill, task)
        out.filled_by(made, [largest, summed, value])
        store = build.job.store(y.view, box, made.address, 0, plan.pitch, spill, box)
        out.read_by(made, store)
    return build.finished()
