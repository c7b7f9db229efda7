"""Model inputs: how each arrives in memory, and which quantisation an 8-bit one has."""

import numpy as np
import onnx

from compiler.frontend.draft import Draft, attributes
from compiler.frontend.source import Signature
from compiler.frontend.states import layout_of
from compiler.frontend.values import Const, Float, Quant, Quantisation, Shape, TensorLayout, default_perm
from compiler.ir import CompileError, Port, Tensor

_SAME_VALUES = (
    "Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout", "MaxPool", "Pad", "Relu", "Clip",
)  # fmt: skip
_CHANNELS_SECOND = ("Conv", "QLinearConv", "ConvInteger", "MaxPool", "AveragePool", "GlobalAveragePool")
_IN_ORDER = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "MatMul", "QLinearMatMul", "MatMulInteger", "Gemm")
_PASSED = ("QuantizeLinear", "DequantizeLinear", "Identity", "Dropout")
_PARAMETERS_FOLLOW = ("DequantizeLinear", "QLinear", "QGemm")  # scale and zero point are the next two inputs


def declare(draft: Draft) -> None:
    """Make a port for every input. A float input that only one QuantizeLinear reads,
    behind Transposes if need be, is quantised by the host."""
    for value in draft.source.model.graph.input:
        signature = draft.source.signatures[value.name]
        try:
            dtype = signature.dtype
        except (KeyError, TypeError):
            raise CompileError(f"{draft.source.name}: input {value.name!r} has no valid element type") from None
        if dtype in ("int8", "uint8"):
            _declare_8bit(draft, value.name, signature)
        elif dtype in ("float32", "int32", "int64"):
            if dtype != "float32" or not _only_quantised(draft, value.name):
                declare_float(draft, value.name)
            else:
                draft.values[value.name] = Float("", signature.shape, dtype)
        else:
            raise CompileError(f"{draft.source.name}: input {value.name!r} has unsupported type {dtype}")


def declare_float(draft: Draft, name: str) -> Float:
    """Return a port that hands the tensor to host operators as it is."""
    signature = draft.source.signatures[name]
    dtype, rank = signature.dtype, tuple(range(len(signature.shape)))
    tensor = draft.unique(name)
    draft.graph.tensors[tensor] = Tensor(tensor, signature.shape or (1,), dtype, onnx_name=name)
    draft.graph.inputs.append(Port(name, dtype, signature.shape, tensor, rank, False))
    made = Float(tensor, signature.shape, dtype)
    draft.values[name] = made
    return made


def quantised_port(draft: Draft, value: Float, name: str, quantised: str, target: Quantisation) -> Quant:
    """Return a port that quantises a float input on the host to ONNX tensor ``quantised``. ``value`` is the input
    itself, or what Transposes make of it, by the ``name`` of its tensor: the port stores it in their order."""
    layout = TensorLayout(value.shape, _perm(draft, name, value.shape))
    if name in draft.states:
        layout = layout_of(value.shape, draft.states[name].axis)
    axes = tuple(range(len(value.shape)))
    while (node := draft.source.producers.get(name)) is not None:
        step = transposed_axes(node, len(axes))
        axes, name = tuple(step[a] for a in axes), node.input[0]
    quant = draft.new_tensor(quantised, value.shape, layout, target)
    perm = tuple(axes[a] for a in layout.perm)
    draft.graph.inputs.append(Port(name, "float32", draft.source.signatures[name].shape, quant.tensor, perm, True))
    return quant


def transposed_axes(node: onnx.NodeProto, rank: int) -> Shape:
    """Return the order that a Transpose of ``rank`` axes brings them into."""
    return tuple(attributes(node).get("perm", tuple(reversed(range(rank)))))


def _declare_8bit(draft: Draft, name: str, signature: Signature) -> None:
    dtype = signature.dtype
    scale, zero_point = parameters(draft, name)
    layout = TensorLayout(signature.shape, _perm(draft, name, signature.shape))
    quant = draft.new_tensor(name, signature.shape, layout, Quantisation(np.float32(scale), zero_point, dtype))
    draft.graph.inputs.append(Port(name, dtype, signature.shape, quant.tensor, layout.perm, False))
    draft.values[name] = quant


def _only_quantised(draft: Draft, name: str) -> bool:
    readers = draft.source.consumers.get(name, [])
    if name in draft.source.outputs or len(readers) != 1:
        return False
    (reader,) = readers
    if reader.op_type == "Transpose":
        return _only_quantised(draft, reader.output[0])
    return reader.op_type == "QuantizeLinear"


def parameters(draft: Draft, name: str) -> tuple[float, int]:
    """Return the scale and zero point of an 8-bit tensor by the first reader that names them, behind nodes that do not
    change values."""
    todo = [name]
    while todo:
        name = todo.pop(0)
        for node in draft.source.consumers.get(name, []):
            index = list(node.input).index(name)
            if node.op_type.startswith(_PARAMETERS_FOLLOW):
                scale = draft.values.get(node.input[index + 1])
                zero = draft.values.get(node.input[index + 2]) if len(node.input) > index + 2 else None
                if isinstance(scale, Const) and scale.array.size == 1:
                    return float(scale.array.reshape(-1)[0]), _scalar(zero)
            elif node.op_type in ("ConvInteger", "MatMulInteger") and index == 0:
                return 1.0, _scalar(draft.values.get(node.input[2]) if len(node.input) > 2 else None)
            elif node.op_type in _SAME_VALUES:
                todo.append(node.output[0])
    return 1.0, 0


def _scalar(value: object) -> int:
    return int(value.array.reshape(-1)[0]) if isinstance(value, Const) and value.array.size == 1 else 0


def _perm(draft: Draft, name: str, shape: Shape) -> Shape:
    """The host can store an input in any order: take the one its first operator wants."""
    axes = tuple(range(len(shape)))
    readers = draft.source.consumers.get(name, [])
    while readers and readers[0].op_type in (*_PASSED, "Transpose"):
        node: onnx.NodeProto = readers[0]
        if node.op_type == "Transpose":
            axes = tuple(axes[a] for a in transposed_axes(node, len(axes)))
        readers = draft.source.consumers.get(node.output[0], [])
    if readers and readers[0].op_type in _IN_ORDER:
        return tuple(range(len(shape)))
    wanted = default_perm(len(shape))
    if len(shape) == 3 and readers and readers[0].op_type in _CHANNELS_SECOND:
        wanted = (0, 2, 1)
    return tuple(axes[a] for a in wanted)
