"""Fully connected layers: Gemm, MatMul and MatMulInteger with constant weights; products of two computed tensors are
in :mod:`compiler.frontend.ops.products`."""

import math

import numpy as np
import onnx

from compiler.frontend.draft import Draft, Value
from compiler.frontend.ops import conv, products
from compiler.frontend.problems import Unsupported
from compiler.frontend.registry import attributes, operator
from compiler.frontend.values import QuantConst, Real

_POINTWISE = conv.Window((1, 1), (1, 1), (0, 0, 0, 0), (1, 1))


@operator("MatMul")
def matmul(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """(..., K) times constant (K, O), or two computed tensors."""
    x = draft.real(node.input[0])
    other = draft.value(node.input[1])
    if isinstance(other, Real):
        return [products.multiplied(node, x, other)]
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
    channels = weights.shape[-1]
    bias = conv.bias_of(draft, node, 2, channels)
    if alpha != 1 or beta != 1:
        real = draft.constant(node, 2, "bias")
        flat = np.zeros(1) if real is None else real.reshape(-1).astype(np.float64)
        bias = np.zeros(channels, np.int64), np.broadcast_to(beta * flat, channels)
    return [product(node, x, weights, bias, alpha)]


def product(
    node: onnx.NodeProto,
    x: Real,
    weights: QuantConst,
    bias: tuple | None = None,
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
    channels = data.shape[1]
    if bias is None:
        bias = np.zeros(channels, np.int64), np.zeros(channels)
    shape = (*x.shape[:-1], channels)
    return conv.Accumulated(
        shape=shape, base_shape=shape, node=node.name, roots=(x.quant.tensor,), x=x.quant, matrix=True,
        weights=data.T[:, None, None, :], weight_zero_point=zero_point,
        scale=(np.float32(x.quantisation.scale) * scale * alpha).astype(np.float32),
        bias=bias[0], real_bias=bias[1], window=_POINTWISE,
    )  # fmt: skip
