"""Model inputs: how each arrives in memory, and which quantisation an 8-bit one has."""

from typing import TYPE_CHECKING

import numpy as np
import onnx

from compiler.frontend.layout import Layout, Shape, default_perm
from compiler.frontend.registry import attributes
from compiler.frontend.source import Signature, dtype_of
from compiler.frontend.values import Const, Float, Quant, Quantisation
from compiler.ir import CompileError, Port, Tensor

if TYPE_CHECKING:
    from compiler.frontend.importer import Importer

_SAME_VALUES = (
    "Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout", "MaxPool", "Pad", "Relu", "Clip",
)  # fmt: skip
_CHANNELS_SECOND = ("Conv", "QLinearConv", "ConvInteger", "MaxPool", "AveragePool", "GlobalAveragePool")
_IN_ORDER = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "MatMul", "QLinearMatMul", "MatMulInteger", "Gemm")
_PASSED = ("QuantizeLinear", "DequantizeLinear", "Identity", "Dropout")
_PARAMETERS_FOLLOW = ("DequantizeLinear", "QLinear", "QGemm")  # scale and zero point are the next two inputs


def declare(importer: "Importer") -> None:
    """Make a port for every input. A float input that only one QuantizeLinear reads is quantised by the host."""
    for value in importer.source.model.graph.input:
        signature = importer.source.signatures[value.name]
        try:
            dtype = dtype_of(signature.elem_type)
        except (KeyError, TypeError):
            raise CompileError(f"{importer.source.name}: input {value.name!r} has no valid element type") from None
        if dtype in ("int8", "uint8"):
            _declare_8bit(importer, value.name, signature)
        elif dtype in ("float32", "int32", "int64"):
            if dtype != "float32" or not _only_quantised(importer, value.name):
                declare_float(importer, value.name)
            else:
                importer.values[value.name] = Float("", signature.shape, dtype)
        else:
            raise CompileError(f"{importer.source.name}: input {value.name!r} has unsupported type {dtype}")


def declare_float(importer: "Importer", name: str) -> Float:
    """A port that hands the tensor to host operators as it is."""
    signature = importer.source.signatures[name]
    dtype = dtype_of(signature.elem_type)
    rank = tuple(range(len(signature.shape)))
    importer.graph.tensors[name] = Tensor(name, signature.shape, dtype, onnx_name=name)
    importer.graph.inputs.append(Port(name, dtype, signature.shape, name, rank, False))
    importer.values[name] = Float(name, signature.shape, dtype)
    return Float(name, signature.shape, dtype)


def quantised_port(importer: "Importer", name: str, quantised: str, target: Quantisation) -> Quant:
    """A port that quantises float input ``name`` on the host to ONNX tensor ``quantised``."""
    shape = importer.source.signatures[name].shape
    layout = Layout(shape, _perm(importer, name, shape))
    quant = importer.new_tensor(quantised, shape, layout, target)
    importer.graph.inputs.append(Port(name, "float32", shape, quant.tensor, layout.perm, True))
    return quant


def _declare_8bit(importer: "Importer", name: str, signature: Signature) -> None:
    dtype = dtype_of(signature.elem_type)
    scale, zero_point = _parameters(importer, name)
    layout = Layout(signature.shape, _perm(importer, name, signature.shape))
    quant = importer.new_tensor(name, signature.shape, layout, Quantisation(np.float32(scale), zero_point, dtype))
    importer.graph.inputs.append(Port(name, dtype, signature.shape, quant.tensor, layout.perm, False))
    importer.values[name] = quant


def _only_quantised(importer: "Importer", name: str) -> bool:
    readers = importer.source.consumers.get(name, [])
    if name in importer.source.outputs or any(node.op_type != "QuantizeLinear" for node in readers):
        return False
    return len(readers) == 1


def _parameters(importer: "Importer", name: str) -> tuple[float, int]:
    """Scale and zero point by the first reader that names them, behind nodes that do not change values."""
    todo = [name]
    while todo:
        name = todo.pop(0)
        for node in importer.source.consumers.get(name, []):
            index = list(node.input).index(name)
            if node.op_type.startswith(_PARAMETERS_FOLLOW):
                scale = importer.values.get(node.input[index + 1])
                zero = importer.values.get(node.input[index + 2]) if len(node.input) > index + 2 else None
                if isinstance(scale, Const) and scale.array.size == 1:
                    return float(scale.array.reshape(-1)[0]), _scalar(zero)
            elif node.op_type in ("ConvInteger", "MatMulInteger") and index == 0:
                return 1.0, _scalar(importer.values.get(node.input[2]) if len(node.input) > 2 else None)
            elif node.op_type in _SAME_VALUES:
                todo.append(node.output[0])
    return 1.0, 0


def _scalar(value: object) -> int:
    return int(value.array.reshape(-1)[0]) if isinstance(value, Const) and value.array.size == 1 else 0


def _perm(importer: "Importer", name: str, shape: Shape) -> Shape:
    """The host can store an input in any order: take the one its first operator wants."""
    axes = tuple(range(len(shape)))
    readers = importer.source.consumers.get(name, [])
    while readers and readers[0].op_type in (*_PASSED, "Transpose"):
        node: onnx.NodeProto = readers[0]
        if node.op_type == "Transpose":
            step = attributes(node).get("perm", tuple(reversed(range(len(axes)))))
            axes = tuple(axes[a] for a in step)
        readers = importer.source.consumers.get(node.output[0], [])
    if readers and readers[0].op_type in _IN_ORDER:
        return tuple(range(len(shape)))
    wanted = default_perm(len(shape))
    if len(shape) == 3 and readers and readers[0].op_type in _CHANNELS_SECOND:
        wanted = (0, 2, 1)
    return tuple(axes[a] for a in wanted)
