"""Products of two computed matrices on the MAC arrays.

The first operand takes the way of a convolution's input, to LV0 of all PEs; the second takes that of its weights, but
from LV2 rather than from a window. A matrix that lies transposed enters the arrays column by column (``w_cols``), so
neither scores (queries by keys) nor sums of values need a copy that turns anything.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from compiler.emission.kernels.registry import Kernel, KernelContext, kernel
from compiler.emission.kernels.vector_job import RowJob, in_words
from compiler.emission.program import (
    BufferFill,
    CopyLoop,
    Fields,
    JobProgram,
    Ring,
    Sem,
    Task,
    contiguous,
    copy_fields,
    lv0_slots,
)
from compiler.ir import CompileError
from compiler.plan.layers import MatrixRows, ProductLayer, own_rows, uniform_params
from compiler.plan.memory.tensor_view import PixelBox
from compiler.plan.plan_error import PlanError
from compiler.plan.tiles import AnyTiles, ProductTiles
from hw.contract.isa import Lv0Space, Lv0View, MacMode, Op, VecOp
from hw.contract.params import SocParams

_A, _B, _RESULT = range(3)  #: operands
_SLOTS = 3  #: LV1 buffers of either operand
_FEW_ROWS = 8  #: with as many, loads and results of several tiles of columns come together


def _shape(layer: ProductLayer, context: KernelContext) -> tuple[int, int, int]:
    """Return rows, depth and columns of a matrix."""
    a, y = context.operand(layer.inputs[0]), context.operand(layer.output)
    _, _, rows, columns = y.view.shape
    columns //= layer.heads if layer.joined[2] else 1
    return rows, a.view.shape[3] // (layer.all_heads if layer.joined[0] else 1), columns


@kernel
class ProductKernel(Kernel[ProductTiles]):
    """Products of computed matrices; the engines share the rows."""

    layers = ProductLayer

    def choose(self, layer: ProductLayer, context: KernelContext) -> ProductTiles:
        """As much depth as LV0 takes of the second operand, then as many rows as it takes of the first."""
        params, (rows, whole, columns) = context.params, _shape(layer, context)
        most, line = min(params.lv0_acc_rows // 2, rows), params.rows
        parts = -(-rows // most)
        most = -(-rows // parts)
        deepest = min(params.lv0_wgt_bytes // 2 // line, params.lv0_act_bytes // 2 // most) // line * line
        depth = min(max(deepest, line), -(-whole // line) * line)
        parts = -(-whole // depth)
        depth = -(-whole // (parts * line)) * line
        most = min(most, params.lv0_act_bytes // 2 // depth)
        need = _SLOTS * depth * (most + params.out_channels) + 2 * most * params.out_channels + 8 * params.lv1_word
        if need > context.lv1.size:
            raise CompileError(
                f"operator {layer.name!r}: its tiles need {need} bytes of LV1, {context.lv1.size} are there: choose a "
                "preset with a larger lv1_bytes"
            )
        return ProductTiles(most, columns, depth)

    def given(self, layer: ProductLayer, tiles: AnyTiles, context: KernelContext) -> ProductTiles:
        """Return what the base class says, tiles of which two fit in each memory of LV0."""
        found, params, (_, _, columns) = super().given(layer, tiles, context), context.params, _shape(layer, context)
        most = min(params.lv0_acc_rows // 2, params.lv0_act_bytes // 2 // found.depth)
        if found.depth % params.rows or found.depth > params.lv0_wgt_bytes // 2:
            raise PlanError(
                f"tiles.depth is {found.depth}, and must be a multiple of {params.rows} up to "
                f"{params.lv0_wgt_bytes // 2}"
            )
        if found.rows > most or found.columns != columns:
            raise PlanError(
                f"tiles are {found.rows} rows of {found.columns} columns, and must be {most} at most of {columns}"
            )
        return found

    def job(
        self, layer: ProductLayer, tiles: ProductTiles, context: KernelContext, engine: int
    ) -> JobProgram | None:  # fmt: skip
        """Return the rows of an engine; None if it has none."""
        return _Emitter(layer, tiles, context, engine).job()


@dataclass(frozen=True)
class _Chunk:
    """``count`` of the elements that are added up, from ``first`` on."""

    first: int
    count: int


class _Emitter:
    """The job of one engine: tiles of up to ``tiles.rows`` rows and ``params.out_channels`` columns of the result, each
    of which takes ``tiles.depth`` elements at a time."""

    def __init__(self, layer: ProductLayer, tiles: ProductTiles, context: KernelContext, engine: int) -> None:
        self._layer, self._tiles, self._context, self._engine = layer, tiles, context, engine
        self._a, self._b, self._y = (context.operand(name) for name in (*layer.inputs, layer.output))
        self._shape = _shape(layer, context)
        params, q = context.params, layer.requantise
        self._params: SocParams = params
        block = uniform_params(params, params.vec_lanes, q)
        table = {} if q.table is None else {"table": q.table.tobytes()}
        self._build = RowJob(context, engine, {"result": block, **table})
        act, wgt = tiles.rows * tiles.depth, params.out_channels * tiles.depth
        build = self._build
        self._act1 = build.ring(Sem.ACT1_FULL, Sem.ACT1_FREE, act, _SLOTS)
        self._span = self._tiles_together(wgt)
        slots = _SLOTS if self._span == 1 else 2
        self._wgt1 = build.ring(Sem.WEIGHT1_FULL, Sem.WEIGHT1_FREE, wgt * self._span, slots)
        self._out = build.ring(Sem.OUT_FULL, Sem.OUT_FREE, tiles.rows * params.out_channels * self._span)
        self._act_stage = build.stage(self._a, act, Sem.STAGE_FULL, Sem.STAGE_FREE)
        self._wgt_stage = build.stage(self._b, wgt, Sem.STAGE_B_FULL, Sem.STAGE_B_FREE)
        self._spill = build.spill(self._y, tiles.rows * params.out_channels * self._span)
        self._lv0()

    def _tiles_together(self, wgt: int) -> int:
        """Return how many tiles of columns are loaded and stored together, of ``wgt`` bytes of the second operand
        each: an instruction for each would take longer than it computes. Those that lie in DRAM come alone."""
        params, rows = self._params, self._tiles.rows
        if rows > _FEW_ROWS or not self._layer.transposed or not (self._b.view.on_chip and self._y.view.on_chip):
            return 1
        act, room = rows * self._tiles.depth, self._context.lv1.size // 2
        room -= _SLOTS * act + 8 * params.lv1_word
        most = min(room // (2 * (wgt + rows * params.out_channels)), params.lv0_acc_rows // 2 // rows)
        return max(1, min(most, -(-self._shape[2] // params.out_channels)))

    def _lv0(self) -> None:
        params, tiles = self._params, self._tiles
        act = in_words(tiles.rows * tiles.depth, params) // params.rows
        wgt = tiles.depth
        self._act0 = Ring(Sem.ACT0_FULL, Sem.ACT0_FREE, 0, act, lv0_slots(act, params.lv0_act_bytes // params.rows))
        self._wgt0 = Ring(
            Sem.WEIGHT0_FULL, Sem.WEIGHT0_FREE, 0, wgt, lv0_slots(wgt, params.lv0_wgt_bytes // params.rows)
        )
        self._acc = Ring(Sem.ACC_FULL, Sem.ACC_FREE, 0, params.lv0_acc_rows // 2, 2)

    def job(self) -> JobProgram | None:
        """All tiles: columns inside rows, so that the first operand is loaded once."""
        rows, _, columns = self._shape
        images = self._y.view.shape[0]
        matrices = images * (self._layer.heads if self._layer.joined[2] else 1)
        engines, span = self._context.budget.engines, self._params.out_channels * self._span
        for part in own_rows(matrices, rows, self._engine, engines, self._tiles.rows):
            for first in range(0, columns, span):
                self._tiles_of(part, first, min(span, columns - first))
        return self._build.finished()

    def _chunks(self) -> Iterator[_Chunk]:
        whole, depth = self._shape[1], self._tiles.depth
        for first in range(0, whole, depth):
            yield _Chunk(first, min(depth, whole - first))

    def _tiles_of(self, part: MatrixRows, first: int, columns: int) -> None:
        """All tiles of ``columns`` columns from ``first`` on, which leave together."""
        acc, macs, step = self._acc.fill((part, first)), list[Task](), self._params.out_channels
        for number, column in enumerate(range(first, first + columns, step)):
            before = len(macs)
            for chunk in self._chunks():
                act = self._activations(part, chunk)
                wgt = self._weights(part.matrix, (first, columns), column, chunk)
                place = acc.address + number * part.count
                for task in self._macs(part.count, chunk, act.address, wgt.address, place, len(macs) > before):
                    macs.append(task)
                    self._act0.read_by(act, task)
                    self._wgt0.read_by(wgt, task)
        self._acc.filled_by(acc, macs)
        self._drain(part, first, columns, acc)

    def _box(self, operand: int, matrix: int, row: int, rows: int, column: int, columns: int) -> PixelBox:
        """Return a part of a matrix of an operand: A, B or the result."""
        layer = self._layer
        if not layer.joined[operand]:
            return PixelBox(matrix, 0, 1, row, rows, column, columns)
        image, head = divmod(matrix, layer.heads)
        first, held = (0, layer.heads) if operand == _RESULT else (layer.first, layer.all_heads)
        width = (self._a, self._b, self._y)[operand].view.shape[3] // held
        return PixelBox(image, 0, 1, row, rows, (first + head) * width + column, columns)

    def _activations(self, part: MatrixRows, chunk: _Chunk) -> BufferFill:
        """Return the LV0 buffer with a chunk of rows of A, loaded on the way if need be."""
        job, params, a = self._build.job, self._params, self._a
        pitch = -(-chunk.count // params.rows) * params.rows

        def load1(lv1: BufferFill) -> list[Task]:
            box = self._box(_A, part.matrix, part.first, part.count, chunk.first, chunk.count)
            return job.load(a.view, box, lv1.address, 0, pitch, a.zero_byte, self._act_stage, box)

        def load0(held: BufferFill) -> list[Task]:
            lv1 = self._act1.holding((part, chunk), load1)
            copies = contiguous(lv1.address, held.address * params.rows, part.count * pitch)
            loads = job.emit_all(Op.LD0, copies, space=Lv0Space.ACT, pe_mask=(1 << params.pes) - 1)
            self._act1.read_by(lv1, *loads)
            return loads

        return self._act0.holding((part, chunk), load0)

    def _weights(self, matrix: int, span: tuple[int, int], column: int, chunk: _Chunk) -> BufferFill:
        """Return the LV0 buffer with the block of B for the tile at ``column``, loaded on the way if need be with all
        of ``span``, first column and columns."""
        job, params, b = self._build.job, self._params, self._b
        lines = -(-chunk.count // params.rows) * params.rows
        first, columns = span
        tiles = -(-columns // params.out_channels)

        def load1(lv1: BufferFill) -> list[Task]:
            if self._layer.transposed:  # a row for each column of the result; beyond the last one padding
                box = self._box(_B, matrix, first, tiles * params.out_channels, chunk.first, chunk.count)
            else:
                box = self._box(_B, matrix, chunk.first, lines, first, columns)
            pitch = lines if self._layer.transposed else params.out_channels
            return job.load(b.view, box, lv1.address, 0, pitch, b.zero_byte, self._wgt_stage, box)

        def load0(held: BufferFill) -> list[Task]:
            lv1 = self._wgt1.holding((matrix, span, chunk), load1)
            copies = self._weight_copies(lv1.address + (column - first) * lines, held.address, lines)
            loads = job.emit_all(Op.LD0, copies, space=Lv0Space.WGT, view=Lv0View.INTERLEAVED)
            self._wgt1.read_by(lv1, *loads)
            return loads

        return self._wgt0.holding((matrix, column, chunk), load0)

    def _weight_copies(self, source: int, word: int, lines: int) -> list[Fields]:
        """Return LD0s of a block of B from LV1 address ``source`` to LV0 word ``word``."""
        params = self._params
        line, target = params.rows, word * params.lv1_word
        if not self._layer.transposed:
            return contiguous(source, target, lines * params.lv1_word)
        loops = [
            CopyLoop(params.pes, line * lines, line),
            CopyLoop(line, lines, params.lv1_word),
            CopyLoop(lines // line, line, line * params.lv1_word),
        ]
        return [copy_fields(source, target, loops, line)]

    def _macs(self, rows: int, chunk: _Chunk, act: int, wgt: int, acc: int, accumulate: bool) -> Iterator[Task]:
        layer, line = self._layer, self._params.rows
        blocks = -(-chunk.count // line)
        most = max(1, self._context.longest // rows) if self._context.longest else blocks
        for first in range(0, blocks, most):
            count = min(most, blocks - first)
            yield self._build.job.emit(
                Op.MAC,
                {
                    "mode": MacMode.DENSE, "accumulate": int(accumulate or first > 0), "w_cols": int(layer.transposed),
                    "x_signed": int(self._a.signed), "x_zp": self._a.zero_byte,
                    "w_signed": int(self._b.signed), "w_zp": self._b.zero_byte,
                    "act": act + first, "wgt": wgt + first * line, "acc": acc, "n0": count,
                    "k0_s": 1 if count > 1 else 0, "p0": rows, "p0_s": blocks, "acc_s": rows,
                },
            )  # fmt: skip

    def _drain(self, part: MatrixRows, column: int, columns: int, acc: BufferFill) -> None:
        params, table = self._params, self._layer.requantise.table
        lanes, step = params.vec_lanes, params.out_channels
        out, groups, tiles = self._out.fill((part, column)), -(-columns // lanes), -(-columns // step)
        pitch = groups * lanes if tiles == 1 else tiles * step
        fields = {
            "op": VecOp.LIN, "src_acc": 1, "a": acc.address, "a_s1": 1, "n1": part.count,
            "n0": groups if tiles == 1 else step // lanes, "d": out.address, "d_s1": pitch, "d_s0": lanes,
        }  # fmt: skip
        if tiles > 1:
            fields |= {"n2": tiles, "a_s2": part.count, "d_s2": step}
        if table is not None:
            fields |= {"table": 1, "t": self._build.at["table"]}
        vec = self._build.vec("result", fields)
        self._acc.read_by(acc, vec)
        self._out.filled_by(out, [vec])
        box = self._box(_RESULT, part.matrix, part.first, part.count, column, columns)
        store = self._build.job.store(self._y.view, box, out.address, 0, pitch, self._spill, box)
        self._out.read_by(out, store)
