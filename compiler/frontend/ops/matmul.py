"""Fully connected layers: Gemm, MatMul and MatMulInteger with constant weights; products of two computed matrices, as
attention needs them: scores of queries and keys, sums of values.

Heads that ONNX splits off by Reshape and Transpose lie side by side in memory, as the projection before has left them;
a product reads them there, and writes its own result so that joining the heads again costs nothing.
"""

import math
from dataclasses import dataclass

import numpy as np
import onnx

from compiler.frontend.draft import Draft, Pending, Value, attributes, operator
from compiler.frontend.ops import conv, quantise
from compiler.frontend.problems import Unsupported
from compiler.frontend.requantise import requantise
from compiler.frontend.values import Quant, QuantConst, Quantisation, Real, TensorLayout
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
        batch = self.base_shape[:-2]
        images, heads = math.prod(batch[:-1]), batch[-1] if batch else 1
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
        scale = np.float32(self.a.quantisation.scale * self.b.quantisation.scale)
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
    return Multiplied(shape=shape, node=node.name, roots=roots, a=a, b=b)


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


_POINTWISE = conv.Window((1, 1), (1, 1), (0, 0, 0, 0), (1, 1))


@operator("MatMul")
def matmul(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """(..., K) times constant (K, O), or two computed tensors."""
    x = draft.real(node.input[0])
    other = draft.value(node.input[1])
    if isinstance(other, Real):
        return [multiplied(node, x, other)]
    return [product(node, x, conv.weights_of(draft, node.input[1]))]


@operator("MatMulInteger")
def matmul_integer(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Return integer product; Cast, Mul and Add with constants behind it give scale and bias."""
    return [product(node, conv.integer_input(draft, node), conv.integer_weights(draft, node))]


@operator("Gemm")
def gemm(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """alpha * A * B + beta * C with constant B and C."""
    given = attributes(node)
    x = draft.real(node.input[0])
    weights = conv.weights_of(draft, node.input[1])
    if given.get("transA", 0):
        raise Unsupported("transA with an operand computed at run time; transpose it before")
    if given.get("transB", 0):
        weights = weights.transposed((1, 0))
    alpha, beta = np.float32(given.get("alpha", 1.0)), given.get("beta", 1.0)
    bias, real = conv.bias_of(draft, node, 2, weights.shape[-1]), draft.constant(node, 2, "bias")
    if real is not None and (alpha != 1 or beta != 1):
        bias = conv.NO_BIAS[0], np.broadcast_to(beta * real.reshape(-1).astype(np.float64), weights.shape[-1])
    return [product(node, x, weights, bias, alpha)]


def product(
    node: onnx.NodeProto,
    x: Real,
    weights: QuantConst,
    bias: conv.Bias = conv.NO_BIAS,
    alpha: np.float32 = np.float32(1),  # noqa: B008 - an immutable scalar
) -> conv.Accumulated:
    """Return a pending product of ``x`` (..., K) with ``weights`` (K, O)."""
    data = weights.data
    if data.ndim > 2 and math.prod(data.shape[:-2]) == 1 and weights.axis in (None, data.ndim - 1):
        data = data.reshape(data.shape[-2:])
    if data.ndim != 2 or len(x.shape) < 2:
        raise Unsupported(f"a product of shapes {x.shape} and {weights.shape}; the weights must be a matrix")
    if x.shape[-1] != data.shape[0]:
        raise Unsupported(f"shapes {x.shape} and {data.shape} do not fit")
    zero_point = conv.single_zero_point(weights)
    scale = conv.channel_scale(weights, weights.data.ndim - 1)
    shape = (*x.shape[:-1], data.shape[1])
    return conv.Accumulated(
        shape=shape, node=node.name, roots=(x.quant.tensor,), x=x.quant, matrix=True,
        weights=data.T[:, None, None, :], weight_zero_point=zero_point,
        scale=(np.float32(x.quantisation.scale) * scale * alpha).astype(np.float32),
        bias=bias[0], real_bias=bias[1], window=_POINTWISE, int4=weights.int4,
    )  # fmt: skip


@operator("Attention")
def attention(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Refused: scores and weights of keys lie inside the node in float, and nothing says in which 8-bit steps the
    accelerator could store them."""
    raise Unsupported(
        "its scores and softmax are inside the node in float; caesura quantise of the float model writes it out, as "
        "MatMul and Softmax, for a token with a past or where its mask is constant; or export with opset 22 or earlier"
    )


@operator("RotaryEmbedding")
def rotary_embedding(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Refused: products with cosines and sines lie inside the node in float."""
    raise Unsupported(
        "its products are inside the node in float; caesura quantise of the float model writes it out, as Mul and Add "
        "of constants or of rows of tables; or export with opset 22 or earlier"
    )


@operator("QLinearMatMul")
def qlinear_matmul(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """a, a_scale, a_zp, b, b_scale, b_zp, y_scale, y_zp."""
    x = quantise.real_input(draft, node, 0)
    other = quantise.dequantised(draft, node, 3)
    made = multiplied(node, x, other) if isinstance(other, Real) else product(node, x, other)
    return quantise.stored(draft, node, made, 6, x.quant.dtype)


@operator("QGemm", domain="com.microsoft")
def qgemm(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """A, a_scale, a_zp, B, b_scale, b_zp, C, y_scale, y_zp."""
    given = attributes(node)
    if given.get("transA", 0):
        raise Unsupported("transA with an operand computed at run time; transpose it before")
    if len(node.input) < 8 or not node.input[7]:
        raise Unsupported("a float result; give it y_scale and y_zero_point")
    x = quantise.real_input(draft, node, 0)
    weights = quantise.constant_input(draft, node, 3, 0 if given.get("transB", 0) else -1)
    weights = weights.transposed((1, 0)) if given.get("transB", 0) else weights
    bias = conv.bias_of(draft, node, 6, weights.shape[1])
    result = product(node, x, weights, bias, np.float32(given.get("alpha", 1.0)))
    return quantise.stored(draft, node, result, 7, x.quant.dtype)
