"""Instance and group normalisations of a float model in parts, before it is quantised: a normalisation without scale
and bias, which the accelerator computes over rows, and those as Mul and Add behind it, one for each channel."""

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

_NORMS = ("InstanceNormalization", "GroupNormalization")


def plain_norms(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model whose normalisations have no scale and bias of their own, where these are constants and shapes are
    known. Group normalisations become instance normalisations of groups."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    shapes = {
        value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in (*graph.input, *graph.value_info, *graph.output)
    }
    made, nodes = onnx.ModelProto(), list[onnx.NodeProto]()
    made.CopyFrom(model)
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in made.graph.initializer}
    for node in made.graph.node:
        shape = shapes.get(node.input[0], []) if node.op_type in _NORMS else []
        given = [constants.get(name) for name in node.input[1:3]]
        scale, bias = given if len(given) == 2 else (None, None)
        plain = node.op_type == _NORMS[0] and all(value is None or np.unique(value).size == 1 for value in given)
        if len(shape) < 3 or min(shape) < 1 or scale is None or bias is None or plain:
            nodes.append(node)
        else:
            nodes += _parts(node, shape, scale, bias, made.graph)
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    return made


def _parts(
    node: onnx.NodeProto, shape: list[int], scale: npt.NDArray, bias: npt.NDArray, graph: onnx.GraphProto
) -> list[onnx.NodeProto]:
    given = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    groups, label = given.get("num_groups", shape[1]), node.name or node.output[0]
    nodes, last = list[onnx.NodeProto](), node.input[0]

    def const(name: str, value: npt.ArrayLike, dtype: npt.DTypeLike = np.float32) -> str:
        graph.initializer.append(numpy_helper.from_array(np.asarray(value, dtype), f"{label}/{name}"))
        return f"{label}/{name}"

    def add(kind: str, *others: str, end: bool = False, **attributes: float) -> str:
        result = node.output[0] if end else f"{label}/{kind}_{len(nodes)}/out"
        nodes.append(helper.make_node(kind, [last, *others], [result], f"{label}/{kind}_{len(nodes)}"))
        nodes[-1].attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
        return result

    if groups != shape[1]:
        last = add("Reshape", const("groups", [shape[0], groups, -1], np.int64))
    ones, zeros = const("ones", np.ones(groups)), const("zeros", np.zeros(groups))
    last = add("InstanceNormalization", ones, zeros, epsilon=given.get("epsilon", 1e-5))
    if groups != shape[1]:
        last = add("Reshape", const("shape", shape, np.int64))
    each = [np.repeat(value, shape[1] // value.size) for value in (scale, bias)]  # older ones have them by group
    channels = (1, shape[1], *(1,) * (len(shape) - 2))
    last = add("Mul", const("scale", each[0].reshape(channels)))
    add("Add", const("bias", each[1].reshape(channels)), end=True)
    return nodes
