"""Means over images of a float model as global pools, before it is quantised: onnxruntime's quantiser makes 8 bits of a
ReduceMean only where an operator that it quantises reads it, and leaves one that is only moved to the CPU."""

import onnx
from onnx import helper, numpy_helper

_MOVES = ("Reshape", "Flatten", "Squeeze", "Identity", "Transpose")  #: what reads a mean that stands for a pool


def plain_pools(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model in which a ReduceMean over all pixels whose result is moved, or an output of the model, is a
    GlobalAveragePool, with a Flatten behind it where it keeps no dimensions. Shapes are known where this is done."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    ranks = {  # of float tensors: there are means of others, but no pools
        value.name: len(value.type.tensor_type.shape.dim)
        for value in (*graph.input, *graph.value_info, *graph.output)
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    }
    made = onnx.ModelProto()
    made.CopyFrom(model)
    constants = {tensor.name: tensor for tensor in made.graph.initializer}
    nodes = list[onnx.NodeProto]()
    for node in made.graph.node:
        moved = node.op_type == "ReduceMean" and _moved(node.output[0], made.graph)
        pool = moved and _over_pixels(node, ranks.get(node.input[0], 0), constants)
        nodes += _pooled(node) if pool else [node]
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    return made


def _moved(name: str, graph: onnx.GraphProto) -> bool:
    """Return whether all that reads a tensor moves it, or nothing does."""
    return all(node.op_type in _MOVES for node in graph.node if name in node.input)


def _over_pixels(node: onnx.NodeProto, rank: int, constants: dict[str, onnx.TensorProto]) -> bool:
    """Return whether a mean of a tensor of ``rank`` dimensions is over all but the first two of them."""
    axes = next((list(each.ints) for each in node.attribute if each.name == "axes"), None)
    if len(node.input) > 1 and node.input[1] in constants:
        axes = numpy_helper.to_array(constants[node.input[1]]).tolist()
    return rank > 2 and axes is not None and sorted(axis % rank for axis in axes) == list(range(2, rank))


def _pooled(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """Return what gives the same result."""
    if next((each.i for each in node.attribute if each.name == "keepdims"), 1):
        return [helper.make_node("GlobalAveragePool", node.input[:1], node.output, node.name)]
    pooled = f"{node.output[0]}/pooled"
    return [
        helper.make_node("GlobalAveragePool", node.input[:1], [pooled], node.name),
        helper.make_node("Flatten", [pooled], node.output, f"{node.name or node.output[0]}/flat"),
    ]
