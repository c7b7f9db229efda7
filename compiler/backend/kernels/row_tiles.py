"""How layers that work on rows of matrices are cut: into tiles of whole rows."""

from dataclasses import dataclass

from compiler.backend.kernels.registry import KernelContext
from compiler.backend.layers.layer import Layer
from compiler.backend.memory.operand import TensorOperand
from compiler.ir import CompileError
from compiler.plan.tiles import RowTiles
from hw.contract.params import SocParams

_MOST_ROWS = (1 << 12) - 1  #: of an instruction of the vector unit
_MOST_VECTORS = (1 << 8) - 1  #: of its window
_STAGING_WORDS = 64  #: bytes that rounding to words may add to staging buffers


@dataclass(frozen=True)
class RowOperands:
    """Holds input and output of a layer, each as one matrix."""

    x: TensorOperand
    y: TensorOperand

    @classmethod
    def of(cls, layer: Layer, context: KernelContext) -> "RowOperands":
        """Return the operands of ``layer``."""
        return cls(*(_as_matrix(context.operand(name)) for name in (layer.inputs[0], layer.output)))

    @property
    def length(self) -> int:
        """Return the bytes of a row."""
        return self.x.view.shape[3]

    def pitch(self, params: SocParams) -> int:
        """Return the bytes from a row to the next in LV1."""
        return -(-self.length // params.vec_lanes) * params.vec_lanes


def choose_rows(
    layer: Layer, context: KernelContext, *, constants: int, buffers: int, records: int, passes: int = 1
) -> RowTiles:
    """As many rows to a tile as LV1 holds beside ``constants`` bytes, with ``buffers`` bytes for each byte of a row and
    ``records`` records for each row. ``passes``: cycles that the longest instruction takes for each vector.

    Raises :class:`CompileError` for a row that does not fit in LV1 or in a window.
    """
    operands, lanes = RowOperands.of(layer, context), context.params.vec_lanes
    pitch = operands.pitch(context.params)
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
