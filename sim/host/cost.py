"""Counts what a step of a model costs a CPU from the operators of its ONNX model: the same every time, whatever the
computer.

Each operator counts for one of these; ``hw.contract.bus.HostCosts`` says how many cycles each of them takes:

============== ==================================================================== ===================================
counted        operators                                                            how many
============== ==================================================================== ===================================
nothing        those that only rename: Reshape, Flatten, Squeeze, ...               0
``macs``       convolutions, matrix products, recurrent layers                      multiply-accumulates
``functions``  exponentials, roots, error functions, normalisations, softmax, ...   elements of the largest tensor
``elements``   all others: arithmetic, copies, (de)quantisation, pooling            elements of the largest tensor
============== ==================================================================== ===================================

An operator that reads or makes a tensor of unknown shape counts the elements of the model's largest known one for it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import onnx

_RENAME = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Constant", "Shape", "Dropout"}
_FUNCTION = {
    *("Exp", "Log", "Sqrt", "Pow", "Sin", "Cos", "Erf", "Gelu", "Tanh", "Sigmoid", "Softplus", "Mish", "Elu", "Selu"),
    *("Softmax", "LogSoftmax", "Hardmax", "Reciprocal", "Celu", "Softsign", "FastGelu", "QuickGelu", "BiasGelu"),
    *("LayerNormalization", "InstanceNormalization", "GroupNormalization", "LpNormalization", "RMSNormalization"),
    *("QLinearSigmoid", "QLinearSoftmax", "SkipLayerNormalization", "ReduceLogSumExp", "ReduceL2", "Atan", "Tan"),
}
#: Products, and the number of the input that holds the weights or the second factor.
_CONV = {"Conv": 1, "ConvInteger": 1, "QLinearConv": 3}
_MATMUL = {"MatMul", "MatMulInteger", "QLinearMatMul", "QGemm", "FusedMatMul"}
_RECURRENT = {"LSTM", "GRU", "RNN"}


@dataclass(frozen=True)
class HostWork:
    """Adds up what the operators of one model do; the module says how."""

    elements: int = 0
    functions: int = 0
    macs: int = 0

    def __add__(self, other: "HostWork") -> "HostWork":
        return HostWork(self.elements + other.elements, self.functions + other.functions, self.macs + other.macs)


def work_of(model: bytes) -> HostWork:
    """Return the work of one run of a serialised ONNX model with fixed shapes."""
    parsed = onnx.load_from_string(model)
    shapes = _shapes(parsed)
    largest = max(map(math.prod, shapes.values()), default=1)
    return sum((_work(node, shapes, largest) for node in parsed.graph.node), HostWork())


def _shapes(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all tensors whose shapes are known."""
    graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    found = {value.name: tuple(value.dims) for value in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        tensor = value.type.tensor_type
        if tensor.HasField("shape") and all(dim.HasField("dim_value") for dim in tensor.shape.dim):
            found[value.name] = tuple(dim.dim_value for dim in tensor.shape.dim)
    return found


def _work(node: onnx.NodeProto, shapes: dict[str, tuple[int, ...]], largest: int) -> HostWork:
    if node.op_type in _RENAME:
        return HostWork()
    count = max(math.prod(shapes[name]) if name in shapes else largest for name in (*node.input, *node.output) if name)
    if (macs := _macs(node, shapes)) is not None:
        return HostWork(macs=max(macs, count))
    return HostWork(functions=count) if node.op_type in _FUNCTION else HostWork(elements=count)


def _macs(node: onnx.NodeProto, shapes: dict[str, tuple[int, ...]]) -> int | None:
    """Return the multiply-accumulates of a product, or None for another operator, or where shapes are unknown."""

    def shape(names: Sequence[str], index: int) -> tuple[int, ...]:
        return shapes[names[index]]

    try:
        made = math.prod(shape(node.output, 0))
        if node.op_type in _CONV:
            return made * math.prod(shape(node.input, _CONV[node.op_type])[1:])
        if node.op_type == "ConvTranspose":
            return math.prod(shape(node.input, 0)) * math.prod(shape(node.input, 1)[1:])
        if node.op_type in _MATMUL:
            return made * shape(node.input, 0)[-1]
        if node.op_type == "Gemm":
            rows = next((attribute.i for attribute in node.attribute if attribute.name == "transA"), 0)
            return made * shape(node.input, 0)[0 if rows else 1]
        if node.op_type in _RECURRENT:
            steps = math.prod(shape(node.input, 0)[:-1])
            return steps * (math.prod(shape(node.input, 1)) + math.prod(shape(node.input, 2)))
    except (KeyError, IndexError):
        pass
    return None
