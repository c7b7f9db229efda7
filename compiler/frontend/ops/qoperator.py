"""QOperator form: operators that carry the quantisation of their inputs and output."""

import dataclasses

import numpy as np
import onnx

from compiler.frontend.draft import Draft, Pending, Value, attributes, operator
from compiler.frontend.ops import conv, eltwise, host, matmul, move, pointwise, pool, quantise, rows
from compiler.frontend.problems import Unsupported
from compiler.frontend.values import NHWC, Const, Quant, QuantConst, Quantisation, Real


def _quantisation(draft: Draft, node: onnx.NodeProto, index: int, dtype: str) -> Quantisation:
    scale = draft.constant(node, index, "scale")
    assert scale is not None
    return quantise.quantisation(scale, draft.constant(node, index + 1, "zero point"), dtype)


def _real(draft: Draft, node: onnx.NodeProto, index: int) -> Real:
    scale = draft.constant(node, index + 1, "scale")
    assert scale is not None
    return quantise.real_view(draft, node.input[index], scale, draft.constant(node, index + 2, "zero point"))


def _constant(draft: Draft, node: onnx.NodeProto, index: int, axis: int) -> QuantConst:
    value = draft.value(node.input[index])
    scale, zero = draft.constant(node, index + 1, "scale"), draft.constant(node, index + 2, "zero point")
    assert scale is not None
    if not isinstance(value, Const):
        raise Unsupported(f"its weights {node.input[index]!r} are computed at run time; they must be constants")
    flat = scale.astype(np.float32).reshape(-1)
    points = np.zeros(1, value.array.dtype) if zero is None else zero.reshape(-1)
    points = np.broadcast_to(points, flat.shape) if points.size == 1 else points
    return QuantConst(value.array, flat, points, axis % value.array.ndim if flat.size > 1 else None)


def _target(draft: Draft, node: onnx.NodeProto, index: int, dtype: str) -> Quantisation:
    zero = draft.constant(node, index + 1, "zero point")
    return _quantisation(draft, node, index, dtype if zero is None else zero.dtype.name)


def _stored(draft: Draft, node: onnx.NodeProto, pending: Pending, target: Quantisation) -> list[Value]:
    return [quantise.quantised(draft, pending, target, node)]


@operator("QLinearConv")
def qlinear_conv(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """x, x_scale, x_zp, w, w_scale, w_zp, y_scale, y_zp, B."""
    x, weights = _real(draft, node, 0), _constant(draft, node, 3, 0)
    bias = conv.bias_of(draft, node, 8, weights.shape[0])
    return _stored(draft, node, conv.convolution(node, x, weights, bias), _target(draft, node, 6, x.quant.dtype))


@operator("QLinearMatMul")
def qlinear_matmul(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """a, a_scale, a_zp, b, b_scale, b_zp, y_scale, y_zp."""
    x = _real(draft, node, 0)
    target = _target(draft, node, 6, x.quant.dtype)
    if isinstance(draft.value(node.input[3]), Quant):
        return _stored(draft, node, matmul.multiplied(node, x, _real(draft, node, 3)), target)
    return _stored(draft, node, matmul.product(node, x, _constant(draft, node, 3, -1)), target)


@operator("QGemm", domain="com.microsoft")
def qgemm(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """A, a_scale, a_zp, B, b_scale, b_zp, C, y_scale, y_zp."""
    given = attributes(node)
    if given.get("transA", 0):
        raise Unsupported("transA with an operand computed at run time; transpose it before")
    if len(node.input) < 8 or not node.input[7]:
        raise Unsupported("a float result; give it y_scale and y_zero_point")
    x = _real(draft, node, 0)
    weights = _constant(draft, node, 3, 0 if given.get("transB", 0) else -1)
    weights = weights.transposed((1, 0)) if given.get("transB", 0) else weights
    bias = conv.bias_of(draft, node, 6, weights.shape[1])
    result = matmul.product(node, x, weights, bias, np.float32(given.get("alpha", 1.0)))
    return _stored(draft, node, result, _target(draft, node, 7, x.quant.dtype))


@operator("QLinearAdd", "QLinearMul", domain="com.microsoft")
def qlinear_binary(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """A, a_scale, a_zp, B, b_scale, b_zp, y_scale, y_zp; one operand may be constant."""
    operands: list[Real | QuantConst] = []
    for index in (0, 3):
        constant = isinstance(draft.value(node.input[index]), Const)
        operands.append(_constant(draft, node, index, -1) if constant else _real(draft, node, index))
    dtype = next(value.quant.dtype for value in operands if isinstance(value, Real))
    result = eltwise.combination(node, *operands)
    return _stored(draft, node, result, _target(draft, node, 6, dtype))


@operator("QLinearSigmoid", "QLinearLeakyRelu", domain="com.microsoft")
def qlinear_unary(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """X, x_scale, x_zp, y_scale, y_zp."""
    x = _real(draft, node, 0)
    return _stored(draft, node, pointwise.identity(x, node.name), _target(draft, node, 3, x.quant.dtype))


@operator("QLinearAveragePool", "QLinearGlobalAveragePool", domain="com.microsoft")
def qlinear_pool(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """X, x_scale, x_zp, y_scale, y_zp; NCHW, or NHWC with ``channels_last``."""
    x = _real(draft, node, 0)
    target = _target(draft, node, 3, x.quant.dtype)
    last = bool(attributes(node).get("channels_last", 0))
    if last:
        x = Real(move.reshape_all(draft, x.quant, (("transpose", (0, 3, 1, 2)),)), x.quantisation, x.name)
    result = pool.over_image(node, x) if "Global" in node.op_type else pool.pooled(node, x)
    if last:
        shape = tuple(result.shape[axis] for axis in NHWC)
        result = dataclasses.replace(result, shape=shape, reshapes=(("transpose", NHWC),))
    return _stored(draft, node, result, target)


@operator("QLinearConcat", domain="com.microsoft")
def qlinear_concat(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """y_scale, y_zp, then (tensor, scale, zp) for each part."""
    parts = tuple(_real(draft, node, index) for index in range(2, len(node.input), 3))
    target = _target(draft, node, 0, parts[0].quant.dtype)
    return _stored(draft, node, move.joined(node, parts, attributes(node)["axis"]), target)


@operator("QLinearSoftmax", domain="com.microsoft")
def qlinear_softmax(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """X, x_scale, x_zp, y_scale, y_zp; on the CPU if nothing but the end of the network reads it."""
    x, readers = _real(draft, node, 0), draft.source.consumers.get(node.output[0], [])
    midst = any(draft.source.consumers.get(name) for reader in readers for name in reader.output)
    result = rows.softmax_of(node, x) if midst else host.softmax_of(x, node)
    return _stored(draft, node, result, _target(draft, node, 3, x.quant.dtype))
