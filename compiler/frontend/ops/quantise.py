"""QuantizeLinear and DequantizeLinear: where real numbers become 8-bit tensors and back; and the QOperator form, whose
operators carry the quantisation of their inputs and output."""

from dataclasses import replace

import numpy as np
import onnx

from compiler.frontend import inputs
from compiler.frontend.draft import Draft, Pending, Value, attributes, operator
from compiler.frontend.ops import host, move, pads, pointwise
from compiler.frontend.problems import Unsupported
from compiler.frontend.source import Signature
from compiler.frontend.values import Const, Float, Quant, QuantConst, Quantisation, Real
from compiler.ir.graph import EIGHT_BIT


@operator("DequantizeLinear")
@operator("DequantizeLinear", domain="com.microsoft")
def dequantize_linear(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Constants keep their integers; 8-bit tensors get a real view."""
    if attributes(node).get("block_size", 0) and isinstance(draft.value(node.input[0]), Const):
        raise Unsupported("quantisation by blocks; quantise per tensor or per channel")
    return [dequantised(draft, node, 0, attributes(node).get("axis", 1))]


def dequantised(draft: Draft, node: onnx.NodeProto, index: int, axis: int = -1) -> Real | QuantConst:
    """Return input ``index`` of ``node``, whose scale and zero point are the next two, as a real view or a constant,
    which may have a scale for each index of ``axis``. What the CPU computes and one node reads is stored for it."""
    name, (scale, zero_point) = node.input[index], _parameters(draft, node, index + 1)
    value = draft.value(name)
    if isinstance(value, Const):
        flat = scale.astype(np.float32).reshape(-1)
        zero = np.zeros(1, value.array.dtype) if zero_point is None else zero_point.reshape(-1)
        zero = zero if zero.size == flat.size else np.broadcast_to(zero, flat.shape)
        found = QuantConst(value.array, flat, zero, axis % value.array.ndim if flat.size > 1 else None)
        return _as_int4(found) if name in draft.source.int4 else found
    if isinstance(value, host.OnHost):
        dtype = host.signature(draft, value.roots, name).dtype
        if dtype in EIGHT_BIT:
            draft.values[name] = value = value.emit(draft, quantisation(scale, zero_point, dtype), name)
    if not isinstance(value, Quant):
        raise Unsupported(f"its input {name!r} is not an 8-bit tensor")
    params, known = quantisation(scale, zero_point, value.dtype), draft.quantisation(value.tensor)
    if (known.scale, known.zero_point) != (params.scale, params.zero_point):
        value = draft.alias(value, params)
    return Real(value, params, name)


def _as_int4(constant: QuantConst) -> QuantConst:
    """Return a constant of four bits as int4 whose zero point is 0, if it is that of its range."""
    offset = 8 if constant.data.dtype == np.uint8 else 0
    if (constant.zero_point != offset).any():
        return constant
    data = (constant.data.astype(np.int16) - offset).astype(np.int8)
    return replace(constant, data=data, zero_point=np.zeros_like(constant.zero_point, np.int8), int4=True)


def _parameters(draft: Draft, node: onnx.NodeProto, index: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Return a scale and a zero point, which are inputs from ``index`` on."""
    scale = draft.constant(node, index, "scale")
    assert scale is not None
    return scale, draft.constant(node, index + 1, "zero point")


def quantisation(scale: np.ndarray, zero_point: np.ndarray | None, dtype: str) -> Quantisation:
    """Per-tensor parameters of an 8-bit activation; Unsupported if they are anything else."""
    if scale.size != 1 or (zero_point is not None and zero_point.size != 1):
        raise Unsupported(f"{scale.size} scales for an activation; quantise activations per tensor")
    if dtype not in EIGHT_BIT:
        raise Unsupported(f"{dtype} activations; the accelerator computes with int8 and uint8")
    zero = 0 if zero_point is None else int(zero_point.reshape(-1)[0])
    value = np.float32(scale.reshape(-1)[0])
    if not (np.isfinite(value) and value > 0):
        raise Unsupported(f"scale {value} is not a positive number")
    return Quantisation(value, zero, dtype)


@operator("QuantizeLinear")
@operator("QuantizeLinear", domain="com.microsoft")
def quantize_linear(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Store a real value in a new 8-bit tensor."""
    given = attributes(node).get("output_dtype", 0)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(given).name if given else "uint8"
    return stored(draft, node, draft.value(node.input[0]), 1, dtype)


def quantised(draft: Draft, value: Value, target: Quantisation, node: onnx.NodeProto) -> Quant:
    """``value`` in 8 bits, as the ONNX tensor that ``node`` computes."""
    name = node.output[0]
    if isinstance(value, Real):
        if value.quantisation == target:
            return value.quant
        if value.quant.padding is not None:
            return pads.padded_as(draft, value, target, name, node.name)
        value = pointwise.identity(value, node.name)
    if isinstance(value, Float):
        if not value.tensor:
            return inputs.quantised_port(draft, value, node.input[0], name, target)
        reason = "its input is a float tensor"
        value = host.OnHost(shape=value.shape, node=node.name, roots=(value.tensor,), reason=reason)
    if isinstance(value, Pending):
        made = value.emit(draft, target, name)
        moved = value.reshapes and not isinstance(value, host.OnHost)
        return _reshaped(draft, value, made, name) if moved else made
    raise Unsupported(f"its input {node.input[0]!r} is already 8-bit")


def _reshaped(draft: Draft, value: Pending, made: Quant, name: str) -> Quant:
    """``made`` after the reshapes of ``value``: only the result is ONNX tensor ``name``."""
    tensors = draft.graph.tensors
    result = move.reshape_all(draft, made, value.reshapes)
    for tensor in tensors.values():
        if tensor.onnx_name == name:
            tensor.onnx_name = ""
    last = tensors[result.tensor]
    last.onnx_name, last.view, last.perm = name, result.layout.view, result.layout.perm
    elem_type = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(result.dtype))
    draft.source.signatures[name] = Signature(elem_type, result.shape)
    return result


def real_input(draft: Draft, node: onnx.NodeProto, index: int) -> Real:
    """Return the computed 8-bit input ``index`` of an operator that carries its scale and zero point."""
    value = dequantised(draft, node, index)
    if not isinstance(value, Real):
        raise Unsupported(f"its input {node.input[index]!r} is a constant")
    return value


def constant_input(draft: Draft, node: onnx.NodeProto, index: int, axis: int) -> QuantConst:
    """Return the same of a constant."""
    value = dequantised(draft, node, index, axis)
    if not isinstance(value, QuantConst):
        raise Unsupported(f"its weights {node.input[index]!r} are computed at run time; they must be constants")
    return value


def stored(draft: Draft, node: onnx.NodeProto, value: Value, index: int, dtype: str) -> list[Value]:
    """Return the 8-bit result of ``node``, whose scale and zero point are its inputs from ``index`` on; of ``dtype`` if
    there is no zero point to tell."""
    scale, zero = _parameters(draft, node, index)
    return [quantised(draft, value, quantisation(scale, zero, dtype if zero is None else zero.dtype.name), node)]


@operator("QLinearSigmoid", "QLinearLeakyRelu", domain="com.microsoft")
def qlinear_unary(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """X, x_scale, x_zp, y_scale, y_zp."""
    x = real_input(draft, node, 0)
    return stored(draft, node, pointwise.identity(x, node.name), 3, x.quant.dtype)


@operator("QLinearConcat", domain="com.microsoft")
def qlinear_concat(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """y_scale, y_zp, then (tensor, scale, zp) for each part."""
    parts = tuple(real_input(draft, node, index) for index in range(2, len(node.input), 3))
    return stored(draft, node, move.joined(node, parts, attributes(node)["axis"]), 0, parts[0].quant.dtype)
