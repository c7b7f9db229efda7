"""Products of two computed matrices, as attention needs them: scores of queries and keys, sums of values.

Heads that ONNX splits off by Reshape and Transpose lie side by side in memory, as the projection before has left them;
the product reads them there, and writes its own result so that joining the heads again costs nothing.
"""

import math
from dataclasses import dataclass

import numpy as np
import onnx

from compiler.frontend.draft import Draft, Pending
from compiler.frontend.layout import Shape, TensorLayout
from compiler.frontend.problems import Unsupported
from compiler.frontend.requantise import requantise, scale_of
from compiler.frontend.values import Quant, Quantisation, Real
from compiler.ir import Product

_APART, _JOINED = (
    (0, 1, 2, 3),
    (0, 2, 1, 3),
)  #: of (images, heads, rows, columns): heads one after the other, or side by side
_APART_TURNED, _JOINED_TURNED = (0, 1, 3, 2), (0, 3, 1, 2)  #: the same where memory holds the transposed matrix


@dataclass(frozen=True, kw_only=True)
class Multiplied(Pending):
    """``a`` times ``b``: (..., M, K) and (..., K, N)."""

    a: Real
    b: Real

    def emit(self, draft: Draft, target: Quantisation, name: str) -> Quant:
        """Return one ``ir.Product``."""
        images, heads = _batch(self.base_shape)
        a, _, a_joined = _operand(draft, self.a.quant, (images, heads))
        b, transposed, b_joined = _operand(draft, self.b.quant, (images, heads), turnable=True)
        joined = b_joined and not transposed
        rows, columns = self.base_shape[-2:]
        layout = TensorLayout((images, heads, rows, columns), _JOINED if joined else _APART)
        if len(self.base_shape) == 4 or not joined:
            view = self.base_shape
            layout = TensorLayout(view, layout.perm if len(view) == 4 else tuple(range(len(view))))
        made = draft.new_tensor(name, self.base_shape, layout, target)
        shape = (images, rows, heads * columns) if joined else (images * heads, rows, columns)
        draft.graph.tensors[made.tensor].shape = shape
        scale = scale_of(np.float32(self.a.quantisation.scale * self.b.quantisation.scale).reshape(1), target.scale)
        draft.add(
            Product(
                self.node, [a, b], made.tensor, heads=heads, joined=(a_joined, b_joined, joined), transposed=transposed,
                requantise=requantise(scale, target, self.low, self.high),
            )
        )  # fmt: skip
        return made


def multiplied(node: onnx.NodeProto, a: Real, b: Real) -> Multiplied:
    """Return the pending product of two computed tensors."""
    if len(a.shape) < 2 or len(a.shape) != len(b.shape) or a.shape[:-2] != b.shape[:-2]:
        raise Unsupported(
            f"a product of computed tensors of shapes {a.shape} and {b.shape}; their batches must be equal"
        )
    if a.shape[-1] != b.shape[-2]:
        raise Unsupported(f"shapes {a.shape} and {b.shape} do not fit")
    shape = (*a.shape[:-1], b.shape[-1])
    roots = tuple(dict.fromkeys((a.quant.tensor, b.quant.tensor)))
    return Multiplied(shape=shape, base_shape=shape, node=node.name, roots=roots, a=a, b=b)


def _batch(shape: Shape) -> tuple[int, int]:
    """Return the images and heads."""
    batch = shape[:-2]
    return math.prod(batch[:-1]), batch[-1] if batch else 1


def _operand(
    draft: Draft, quant: Quant, batch: tuple[int, int], *, turnable: bool = False
) -> tuple[str, bool, bool]:  # fmt: skip
    """Return the tensor in memory, whether it holds the transposed matrix, and whether heads lie side by side. Data
    moves only if it lies in none of the ways that the accelerator reads."""
    (images, heads), (rows, columns) = batch, quant.shape[-2:]
    view, quant = (images, heads, rows, columns), draft.dense(quant)
    ways = [(_JOINED, False, True), (_APART, False, False)]
    ways += [(_JOINED_TURNED, True, True), (_APART_TURNED, True, False)] if turnable else []
    for perm, turned, joined in ways:
        if quant.layout.same_order(TensorLayout(view, perm)):
            inner = (columns, rows) if turned else (rows, columns)
            shape = (images, inner[0], heads * inner[1]) if joined else (images * heads, *inner)
            return draft.reshaped(quant.tensor, shape), turned, joined
    plain = draft.relayout(quant, TensorLayout.plain(quant.shape))
    return draft.reshaped(plain, (images * heads, rows, columns)), False, False
