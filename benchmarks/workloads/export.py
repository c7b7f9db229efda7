"""A network with seeded weights as a float ONNX model."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.workloads.layers import Activation, Kind, Network, NetworkLayer

OPSET = 17
IR_VERSION = 10
RELU6_LIMIT = 6.0
RESIDUAL_GAIN = 0.5  #: standard deviation of a branch relative to its shortcut, so that sums grow slowly with depth

Array = npt.NDArray[np.float32]


def float_model(network: Network, seed: int) -> onnx.ModelProto:
    """Return the network with batch 1, float32 in and out, and weights from ``seed``; checked, with all shapes
    inferred."""
    rng = np.random.default_rng(seed)
    nodes: list[onnx.NodeProto] = []
    constants: list[onnx.TensorProto] = []
    if any(layer.activation is Activation.RELU6 for layer in network.layers):
        for name, limit in (("relu6.low", 0.0), ("relu6.high", RELU6_LIMIT)):
            constants.append(numpy_helper.from_array(np.array(limit, np.float32), name))
    for layer in network.layers:
        nodes.extend(_nodes(layer))
        if layer.weight_shape:
            weight, bias = parameters(layer, rng)
            constants.append(numpy_helper.from_array(weight, f"{layer.name}.weight"))
            constants.append(numpy_helper.from_array(bias, f"{layer.name}.bias"))
        if layer.kind is Kind.SHUFFLE:
            constants += _shuffle_shapes(layer)
    output = network.layers[-1]
    graph = helper.make_graph(
        nodes,
        network.name,
        [helper.make_tensor_value_info(network.input, TensorProto.FLOAT, [1, *network.in_shape])],
        [helper.make_tensor_value_info(output.name, TensorProto.FLOAT, [1, *output.out_shape])],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    model.producer_name = "caesura benchmarks"
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    onnx.checker.check_model(model)
    return model


def parameters(layer: NetworkLayer, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the weights and bias as training and folded batch normalisation leave them.

    He initialisation keeps the variance through rectifiers. Filters have no mean: with one, maps of deep layers would
    become constant. Scales differ between the channels, which is what per-channel quantisation is for.
    """
    weight = rng.standard_normal(layer.weight_shape, np.float32)
    taps = tuple(range(1, weight.ndim))
    weight -= weight.mean(taps, keepdims=True)
    weight /= weight.std(taps, keepdims=True) + np.float32(1e-6)
    gain = _gain(layer) * rng.uniform(0.5, 1.5, layer.out_shape[0])
    weight *= (gain / np.sqrt(layer.fan_in)).astype(np.float32).reshape(-1, *[1] * len(taps))
    bias = rng.normal(0.1, 0.2, layer.out_shape[0])
    return weight, bias.astype(np.float32)


def _gain(layer: NetworkLayer) -> float:
    return (RESIDUAL_GAIN if layer.residual else 1.0) * np.sqrt(2)


def _nodes(layer: NetworkLayer) -> Iterator[onnx.NodeProto]:
    name = layer.name
    if layer.kind is Kind.SHUFFLE:
        yield helper.make_node("Reshape", [layer.sources[0], f"{name}.grouped"], [f"{name}.groups"], f"{name}.group")
        yield helper.make_node("Transpose", [f"{name}.groups"], [f"{name}.dealt"], f"{name}.deal", perm=[0, 2, 1, 3, 4])
        yield helper.make_node("Reshape", [f"{name}.dealt", f"{name}.whole"], [name], name)
        return
    sources = list(layer.sources)
    if layer.weight_shape:
        sources += [f"{name}.weight", f"{name}.bias"]
    result = f"{name}.sum" if layer.activation is not Activation.NONE else name
    yield helper.make_node(layer.kind.value, sources, [result], name, **_attributes(layer))
    if layer.activation is not Activation.NONE:
        limits = ["relu6.low", "relu6.high"] if layer.activation is Activation.RELU6 else []
        yield helper.make_node(layer.activation.value, [result, *limits], [name], f"{name}.activation")


def _shuffle_shapes(layer: NetworkLayer) -> list[onnx.TensorProto]:
    channels, height, width = layer.out_shape
    shapes = {"grouped": (1, layer.groups, channels // layer.groups, height, width), "whole": (1, *layer.out_shape)}
    return [numpy_helper.from_array(np.array(shape, np.int64), f"{layer.name}.{key}") for key, shape in shapes.items()]


def _attributes(layer: NetworkLayer) -> dict:
    window = {
        "kernel_shape": list(layer.window),
        "strides": [layer.stride] * 2,
        "pads": list(layer.pads),
    }
    match layer.kind:
        case Kind.CONV:
            return {**window, "group": layer.groups}
        case Kind.MAX_POOL:
            return window
        case Kind.AVERAGE_POOL:
            return {**window, "count_include_pad": 1}
        case Kind.CONCAT | Kind.FLATTEN:
            return {"axis": 1}
        case Kind.GEMM:
            return {"transB": 1}
    return {}
