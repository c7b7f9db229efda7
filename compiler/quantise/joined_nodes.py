"""Equal nodes of a float step model as one, before it is quantised: each is a step of the CPU, or work of its own, for
every token."""

import onnx
from onnx import numpy_helper

from compiler.quantise.written_nodes import with_nodes
from compiler.states import states_of

_KINDS = ("Gather", "Unsqueeze", "Reshape")  #: rows of tables at a position, and what is in front of products with bias


def joined(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a step model with one node of these kinds where several are equal, constants by their values; another
    model as it is."""
    if not states_of(model).found:
        return model
    made = onnx.ModelProto()
    made.CopyFrom(model)
    contents, constants = dict[object, str](), dict[str, str]()
    for tensor in made.graph.initializer:
        value = numpy_helper.to_array(tensor)
        constants[tensor.name] = contents.setdefault((value.dtype.str, value.shape, value.tobytes()), tensor.name)
    first, same, nodes = dict[object, str](), dict[str, str](), list[onnx.NodeProto]()
    outputs = {value.name for value in made.graph.output}
    for node in made.graph.node:
        node.input[:] = [same.get(name, name) for name in node.input]
        if node.op_type in _KINDS and node.output[0] not in outputs:
            given = [constants.get(name, name) for name in node.input]
            key = (node.op_type, *given, *(one.SerializeToString() for one in node.attribute))
            same[node.output[0]] = first.setdefault(key, node.output[0])
            if same[node.output[0]] != node.output[0]:
                continue
        nodes.append(node)
    return with_nodes(made, nodes)
