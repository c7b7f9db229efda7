"""Layer normalisation of rows on the vector unit: sum and deviation of each row, numbers of 24 bits that are
normalised, and from those bytes with the gain and shift of each channel."""

import numpy as np

from compiler.backend.kernels.registry import Kernel, KernelContext, kernel
from compiler.backend.kernels.row_tiles import RowOperands, choose_rows
from compiler.backend.kernels.vector_job import RowJob, in_words
from compiler.backend.layers.layer import Layer, NormLayer
from compiler.backend.layers.region_share import own_rows
from compiler.backend.layers.vec_params import params_bytes, vec_params
from compiler.backend.memory.tensor_view import PixelBox
from compiler.backend.program.job import JobProgram
from compiler.backend.program.semaphores import Sem
from compiler.plan.tiles import RowTiles
from hw.contract.isa import WIDE_BYTES, VecOp


@kernel
class NormKernel(Kernel[RowTiles]):
    """Layer normalisation over the last axis; the engines share the rows."""

    def match(self, layer: Layer, context: KernelContext) -> bool:
        """Any layer normalisation."""
        return isinstance(layer, NormLayer)

    def choose(self, layer: NormLayer, context: KernelContext) -> RowTiles:
        """As many rows as two buffers of either kind hold."""
        blocks = -(-len(layer.bias) // context.params.out_channels)
        constants = (3 + blocks) * params_bytes(context.params)
        buffers = 4 + 2 * WIDE_BYTES
        return choose_rows(layer, context, constants=constants, buffers=buffers, records=2, passes=WIDE_BYTES)

    def emit(self, layer: NormLayer, tiles: RowTiles, context: KernelContext) -> list[JobProgram]:
        """Return a job for each engine with a share of the rows."""
        jobs = (_job(layer, tiles.rows, context, engine) for engine in range(context.budget.engines))
        return [job for job in jobs if job]


def _channel_blocks(layer: NormLayer, context: KernelContext) -> list[bytes]:
    """Return parameter blocks, one for as many channels as an instruction has parameters for."""
    params, q, step = context.params, layer.requantise, context.params.out_channels
    found = []
    for first in range(0, len(layer.bias), step):
        bias, scale = layer.bias[first : first + step], q.scale[first : first + step]
        extra = (0, step - len(bias))
        found.append(vec_params(params, np.pad(bias, extra), np.pad(scale, extra), zp_y=q.zero_point, lo=q.lo, hi=q.hi))
    return found


def _job(layer: NormLayer, most: int, context: KernelContext, engine: int) -> JobProgram | None:
    of, lanes, params = RowOperands.of(layer, context), context.params.vec_lanes, context.params
    x, y, length, pitch = of.x, of.y, of.length, of.pitch(params)
    none, one = np.zeros(lanes, np.int32), np.zeros(lanes, np.float32)
    count = {"zp_a": x.zero_point, "ma": length}
    epsilon = np.full(lanes, layer.epsilon, np.uint32).view(np.int32)
    blocks = _channel_blocks(layer, context)
    constants = {
        "moments": vec_params(params, epsilon, one, mb=layer.exponent, **count),
        "normal": vec_params(params, none, one, **count),
        **{f"channels{number}": block for number, block in enumerate(blocks)},
    }
    build = RowJob(context, engine, constants)
    size = most * pitch
    ring = build.ring(Sem.A_FULL, Sem.A_FREE, size)
    beside = in_words(size, params)
    out = build.ring(Sem.OUT_FULL, Sem.OUT_FREE, (1 + WIDE_BYTES) * beside + most * lanes)
    stage = build.stage(x, most * length, Sem.STAGE_FULL, Sem.STAGE_FREE)
    spill = build.spill(y, most * length)
    vectors, groups = pitch // lanes, params.vec_groups
    for part in own_rows(1, x.view.shape[2], engine, context.budget.engines, most):
        box = PixelBox(0, 0, 1, part.first, part.count, 0, length)
        fill, made = ring.fill(box), out.fill(box)
        ring.filled_by(fill, build.job.load(x.view, box, fill.address, 0, pitch, x.zero_byte, stage, box))
        planes, records = made.address + beside, made.address + (1 + WIDE_BYTES) * beside
        rows = {"a_signed": int(x.signed), "a": fill.address, "n1": part.count, "a_s1": pitch}
        window = {"across": 1, "tail": length % lanes, "k0": vectors, "a_k0": lanes, "d_s1": lanes}
        tasks = [build.vec("moments", {"op": VecOp.MOMENTS, **rows, **window, "d": records})]
        each = {"n0": vectors, "a_s0": lanes, "d_s1": pitch, "d_s0": lanes, "n2": WIDE_BYTES, "d_s2": beside}
        record = {"b_en": 1, "row": 1, "b": records, "b_s1": lanes}
        normal = {"op": VecOp.LIN, "planes": 1, **rows, **each, **record, "d": planes}
        tasks.append(build.vec("normal", normal, after=tasks[0]))
        ring.read_by(fill, tasks[0])
        ring.read_by(fill, tasks[1])
        for number in range(len(blocks)):
            at, here = number * groups * lanes, min(groups, vectors - number * groups)
            wide = {
                "op": VecOp.WIDE, "a_signed": 1, "per_channel": 1, "k0": WIDE_BYTES, "a_k0": -beside, "n1": part.count,
                "n0": here, "a": planes + (WIDE_BYTES - 1) * beside + at, "a_s1": pitch, "a_s0": lanes,
                "d": made.address + at, "d_s1": pitch, "d_s0": lanes,
            }  # fmt: skip
            tasks.append(build.vec(f"channels{number}", wide, after=tasks[1] if number == 0 else None))
        out.filled_by(made, tasks)
        out.read_by(made, build.job.store(y.view, box, made.address, 0, pitch, spill, box))
    return build.finished()
