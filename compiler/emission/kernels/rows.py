"""Softmax and normalisation of rows on the vector unit, in tiles of whole rows.

Softmax takes the maximum of each row, the sum of its exponentials, and the quotients. Layer normalisation takes sum and
deviation of each row, then numbers of 24 bits that are normalised, and makes bytes of those with the gain and shift of
each channel. Root mean square normalisation takes the deviation alone.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.emission.kernels.registry import Kernel, KernelContext, kernel
from compiler.emission.kernels.vector_job import RowJob, in_words
from compiler.emission.program import JobProgram, ParameterUse, Ring, Sem, Task
from compiler.ir import CompileError
from compiler.plan.layers import Layer, NormLayer, SoftmaxLayer, own_rows, params_bytes, vec_params
from compiler.plan.memory.operand import TensorOperand
from compiler.plan.memory.tensor_view import PixelBox
from compiler.plan.tiles import RowTiles
from hw.contract.isa import WIDE_BYTES, WIDE_TABLE_BYTES, Op, VecOp
from hw.contract.params import SocParams

_MOST_ROWS = (1 << 12) - 1  #: of an instruction of the vector unit
_MOST_VECTORS = (1 << 8) - 1  #: of its window
_STAGING_WORDS = 64  #: bytes that rounding to words may add to staging buffers


@dataclass(frozen=True)
class RowOperands:
    """Holds input and output of a layer, each as one matrix with rows of ``length`` bytes, which begin every ``pitch``
    bytes in LV1."""

    x: TensorOperand
    y: TensorOperand
    length: int
    pitch: int

    @classmethod
    def of(cls, layer: Layer, context: KernelContext) -> "RowOperands":
        """Return the operands of ``layer``."""
        x, y = (_as_matrix(context.operand(name)) for name in (layer.inputs[0], layer.output))
        length, lanes = x.view.shape[3], context.params.vec_lanes
        return cls(x, y, length, -(-length // lanes) * lanes)


class RowKernel(Kernel[RowTiles]):
    """A function of rows; the engines share them."""

    @abstractmethod
    def constants(self, layer: Any, x: TensorOperand, params: SocParams) -> Mapping[str, bytes]:
        """Return blocks of parameters and tables by name."""

    @abstractmethod
    def beside(self, layer: Any, rows: int, lanes: int) -> int:
        """Return the bytes of LV1 for what a tile needs beside its result, which takes ``rows`` bytes; a record of each
        row takes ``lanes``."""

    @abstractmethod
    def vecs(self, layer: Any, build: RowJob, of: RowOperands, tile: "RowTile") -> tuple[list[Task], list[Task]]:
        """Emit the VECs of a tile; return those that read its rows, and the others."""

    def store(
        self, layer: Any, build: RowJob, y: TensorOperand, box: PixelBox, source: int, pitch: int, spill: Ring | None
    ) -> Task:  # fmt: skip
        """Store the rows ``box`` of ``y``, which begin every ``pitch`` bytes from LV1 address ``source`` on."""
        return build.job.store(y.view, box, source, 0, pitch, spill, box)

    def job(self, layer: Any, tiles: RowTiles, context: KernelContext, engine: int) -> JobProgram | None:
        """Return the job of an engine; None if it has no share."""
        of, most, lanes = RowOperands.of(layer, context), tiles.rows, context.params.vec_lanes
        x, y, length, pitch = of.x, of.y, of.length, of.pitch
        build = RowJob(context, engine, self.constants(layer, x, context.params))
        size = in_words(most * pitch, context.params)
        ring = build.ring(Sem.A_FULL, Sem.A_FREE, most * pitch)
        out = build.ring(Sem.OUT_FULL, Sem.OUT_FREE, size + self.beside(layer, size, most * lanes))
        stage = build.stage(x, most * length, Sem.STAGE_FULL, Sem.STAGE_FREE)
        spill = build.spill(y, most * length)
        for part in own_rows(1, x.view.shape[2], engine, context.budget.engines, most):
            box = PixelBox(0, 0, 1, part.first, part.count, 0, length)
            fill, made = ring.fill(box), out.fill(box)
            ring.filled_by(fill, build.job.load(x.view, box, fill.address, 0, pitch, x.zero_byte, stage, box))
            tile = RowTile(part.count, fill.address, made.address, size, most * lanes)
            readers, others = self.vecs(layer, build, of, tile)
            ring.read_by(fill, *readers)
            out.filled_by(made, [*readers, *others])
            out.read_by(made, self.store(layer, build, y, box, made.address, pitch, spill))
        return build.finished()


@dataclass(frozen=True)
class RowTile:
    """A tile of ``count`` rows: where they are in LV1, where the result is, ``size`` bytes with ``records`` bytes for
    records or other results behind."""

    count: int
    source: int
    target: int
    size: int
    records: int


@kernel
class SoftmaxKernel(RowKernel):
    """Softmax over the last axis."""

    layers = SoftmaxLayer

    def choose(self, layer: SoftmaxLayer, context: KernelContext) -> RowTiles:
        """As many rows as two buffers of either kind hold."""
        constants = 2 * WIDE_TABLE_BYTES + 3 * len(_block(context.params))
        return choose_rows(layer, context, constants=constants, buffers=4, records=4)

    def constants(self, layer: SoftmaxLayer, x: TensorOperand, params: SocParams) -> Mapping[str, bytes]:
        """Return both tables, and a block for each instruction."""
        return {
            "sums": layer.sums.astype("<i4").tobytes(),
            "values": layer.values.astype("<i4").tobytes(),
            "plain": _block(params),
            "sum": _block(params, mb=layer.exponent),
            "value": _block(params, zp_y=layer.zero_point, lo=layer.lo, hi=layer.hi),
        }

    def beside(self, layer: SoftmaxLayer, rows: int, lanes: int) -> int:
        """Return the bytes of records of maxima and of sums."""
        return 2 * lanes

    def vecs(self, layer: SoftmaxLayer, build: RowJob, of: RowOperands, tile: RowTile) -> tuple[list[Task], list[Task]]:
        """Emit the maxima, the sums and the quotients."""
        lanes, pitch = build.params.vec_lanes, of.pitch
        vectors, maxima = pitch // lanes, tile.target + tile.size
        sums = maxima + tile.records
        rows = {"a_signed": int(of.x.signed), "a": tile.source, "n1": tile.count, "a_s1": pitch}
        window = {"across": 1, "tail": of.length % lanes, "k0": vectors, "a_k0": lanes, "d_s1": lanes}
        more = tuple[ParameterUse, ...]()
        if layer.filled:
            window |= {"tail": 0, "k0": 1}
            more = (*build.more("k0", layer.filled.vectors), *build.more("tail", layer.filled.last))
        largest = build.vec("plain", {"op": VecOp.MAX, **rows, **window, "d": maxima}, more=more)
        record = {"op": VecOp.LOOKUP, "b_en": 1, "row": 1, "b_s1": lanes}
        sum_fields = {**rows, **window, **record, "b": maxima, "d": sums, "t": build.at["sums"]}
        summed = build.vec("sum", sum_fields, after=largest, more=more)
        each = {"n0": vectors, "a_s0": lanes, "d": tile.target, "d_s1": pitch, "d_s0": lanes}
        value = build.vec("value", {**rows, **record, **each, "b": sums, "t": build.at["values"]}, after=summed)
        return [largest, summed, value], []

    def store(
        self, layer: SoftmaxLayer, build: RowJob, y: TensorOperand, box: PixelBox, source: int, pitch: int,
        spill: Ring | None,
    ) -> Task:  # fmt: skip
        """Store rows; where an inference says how long they are, zeros behind their ends."""
        if layer.filled is None:
            return super().store(layer, build, y, box, source, pitch, spill)
        if not y.view.on_chip:
            raise CompileError(f"operator {layer.name!r}: its rows do not fit in LV2: choose a larger lv2_limit")
        fields = {
            "src": source, "dst": y.view.address(box.n, box.y, box.x, box.c), "dst_seg": y.view.segment,
            "len": box.channels, "hi": 0, "fill": y.zero_byte, "hi1": 1,
            "n0": box.cols, "hi0": box.cols, "src_s0": pitch, "dst_s0": y.view.strides[2],
        }  # fmt: skip
        return build.job.emit(Op.ST1, fields, build.more("hi", layer.filled.end))


@kernel
class NormKernel(RowKernel):
    """Layer normalisation and root mean square normalisation over the last axis."""

    layers = NormLayer

    def choose(self, layer: NormLayer, context: KernelContext) -> RowTiles:
        """As many rows as two buffers of either kind hold."""
        blocks = -(-len(layer.bias) // context.params.out_channels)
        constants, buffers = (3 + blocks) * params_bytes(context.params), 4 + 2 * WIDE_BYTES
        return choose_rows(layer, context, constants=constants, buffers=buffers, records=2, passes=WIDE_BYTES)

    def constants(self, layer: NormLayer, x: TensorOperand, params: SocParams) -> Mapping[str, bytes]:
        """Return blocks for the first two instructions, and one for as many channels as one has parameters for."""
        lanes, q, step, length = params.vec_lanes, layer.requantise, params.out_channels, len(layer.bias)
        epsilon, zeros = np.full(lanes, layer.epsilon, np.uint32).view(np.int32), np.zeros(lanes, np.float32)
        squares, numbers = (length, length) if layer.centred else (4 * length, 2 * length)
        blocks = {
            "moments": vec_params(params, epsilon, zeros, zp_a=x.zero_point, ma=squares, mb=layer.exponent),
            "normal": vec_params(params, np.zeros(lanes, np.int32), zeros, zp_a=x.zero_point, ma=numbers),
        }
        for group, first in enumerate(range(0, length, step)):
            bias, scale = layer.bias[first : first + step], q.scale[first : first + step]
            extra = (0, step - len(bias))
            blocks[f"channels{group}"] = vec_params(
                params, np.pad(bias, extra), np.pad(scale, extra), zp_y=q.zero_point, lo=q.lo, hi=q.hi
            )
        return blocks

    def beside(self, layer: NormLayer, rows: int, lanes: int) -> int:
        """Return the bytes of planes of normalised numbers, and of records."""
        return WIDE_BYTES * rows + lanes

    def vecs(self, layer: NormLayer, build: RowJob, of: RowOperands, tile: "RowTile") -> tuple[list[Task], list[Task]]:
        """Emit the moments, the normalised numbers, and the results by groups of channels."""
        lanes, groups, pitch, beside = build.params.vec_lanes, build.params.vec_groups, of.pitch, tile.size
        vectors, planes, records = pitch // lanes, tile.target + beside, tile.target + (1 + WIDE_BYTES) * beside
        rows = {"a_signed": int(of.x.signed), "a": tile.source, "n1": tile.count, "a_s1": pitch}
        window = {"across": 1, "tail": of.length % lanes, "k0": vectors, "a_k0": lanes, "d_s1": lanes}
        window |= {} if layer.centred else {"plain": 1}
        moments = build.vec("moments", {"op": VecOp.MOMENTS, **rows, **window, "d": records})
        each = {"n0": vectors, "a_s0": lanes, "d_s1": pitch, "d_s0": lanes, "n2": WIDE_BYTES, "d_s2": beside}
        record = {"b_en": 1, "row": 1, "b": records, "b_s1": lanes}
        fields = {"op": VecOp.LIN, "planes": 1, **rows, **each, **record, "d": planes}
        normal = build.vec("normal", fields, after=moments)
        results: list[Task] = []
        for number in range(-(-len(layer.bias) // build.params.out_channels)):
            at, here = number * groups * lanes, min(groups, vectors - number * groups)
            wide = {
                "op": VecOp.WIDE, "a_signed": 1, "per_channel": 1, "k0": WIDE_BYTES, "a_k0": -beside, "n1": tile.count,
                "n0": here, "a": planes + (WIDE_BYTES - 1) * beside + at, "a_s1": pitch, "a_s0": lanes,
                "d": tile.target + at, "d_s1": pitch, "d_s0": lanes,
            }  # fmt: skip
            results.append(build.vec(f"channels{number}", wide, after=None if results else normal))
        return [moments, normal], results


def _block(params: SocParams, **header: int) -> bytes:
    lanes = params.vec_lanes
    return vec_params(params, np.zeros(lanes, np.int32), np.zeros(lanes, np.float32), **header)


def choose_rows(
    layer: Layer, context: KernelContext, *, constants: int, buffers: int, records: int, passes: int = 1
) -> RowTiles:
    """As many rows to a tile as LV1 holds beside ``constants`` bytes, with ``buffers`` bytes for each byte of a row and
    ``records`` records for each row. ``passes``: cycles that the longest instruction takes for each vector.

    Raises :class:`CompileError` for a row that does not fit in LV1 or in a window.
    """
    operands, lanes = RowOperands.of(layer, context), context.params.vec_lanes
    pitch = operands.pitch
    vectors = pitch // lanes
    rows = min(
        _MOST_ROWS,
        (context.lv1.size - constants) // (buffers * pitch + records * lanes),
        context.budget.staging(0).size // (4 * pitch + _STAGING_WORDS),
    )
    if context.longest:
        rows = min(rows, max(1, context.longest // (vectors * passes)))
    if rows < 1 or vectors > _MOST_VECTORS:
        raise CompileError(
            f"operator {layer.name!r}: a row of {operands.length} bytes does not fit in LV1 or a window of "
            f"{_MOST_VECTORS} vectors: choose a preset with larger lv1_bytes or vec_lanes"
        )
    return RowTiles(rows)


def _as_matrix(operand: TensorOperand) -> TensorOperand:
    """Return a dense tensor as one image of rows."""
    view = operand.view.flattened()
    assert view is not None, "rows of a tensor that has gaps"
    return TensorOperand(view, operand.signed, operand.zero_point)
