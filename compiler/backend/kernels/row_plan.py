"""How layers that work on rows of matrices are cut: into tiles of whole rows."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from compiler.backend.kernels.registry import KernelContext, Plan
from compiler.backend.layers.layer import Layer
from compiler.backend.memory.operand import TensorOperand
from compiler.ir import CompileError

_MOST_ROWS = (1 << 12) - 1  #: of an instruction of the vector unit
_MOST_VECTORS = (1 << 8) - 1  #: of its window
_STAGING_WORDS = 64  #: bytes that rounding to words may add to staging buffers

LayerT = TypeVar("LayerT", bound=Layer)


@dataclass(frozen=True)
class RowPlan(Plan, Generic[LayerT]):
    """Tiles of ``rows`` rows of ``length`` bytes, which lie ``pitch`` bytes apart in LV1. Operands are one matrix."""

    layer: LayerT
    x: TensorOperand
    y: TensorOperand
    rows: int
    length: int
    pitch: int


def plan_rows(
    layer: LayerT, context: KernelContext, *, constants: int, buffers: int, records: int, passes: int = 1
) -> RowPlan[LayerT]:
    """As many rows to a tile as LV1 holds beside ``constants`` bytes, with ``buffers`` bytes for each byte of a row and
    ``records`` records for each row. ``passes``: cycles that the longest instruction takes for each vector.

    Raises :class:`CompileError` for a row that does not fit in LV1 or in a window.
    """
    x, y = (_as_matrix(context.operand(name)) for name in (layer.inputs[0], layer.output))
    length, lanes = x.view.shape[3], context.params.vec_lanes
    vectors = -(-length // lanes)
    pitch = vectors * lanes
    rows = min(
        _MOST_ROWS,
        (context.lv1.size - constants) // (buffers * pitch + records * lanes),
        context.budget.staging(0).size // (4 * pitch + _STAGING_WORDS),
    )
    if context.longest:
        rows = min(rows, max(1, context.longest // (vectors * passes)))
    if rows < 1 or vectors > _MOST_VECTORS:
        raise CompileError(
            f"operator {layer.name!r}: a row of {length} bytes does not fit in LV1 or a window of {_MOST_VECTORS} "
            "vectors: choose a preset with larger lv1_bytes or vec_lanes"
        )
    return RowPlan("", layer, x, y, rows, length, pitch)


def _as_matrix(operand: TensorOperand) -> TensorOperand:
    """Return a dense tensor as one image of rows."""
    view = operand.view.flattened()
    assert view is not None, "rows of a tensor that has gaps"
    return TensorOperand(view, operand.signed, operand.zero_point)
