"""What is written in the place of nodes leaves the rest of a model as it was."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from compiler.quantise.written_nodes import with_nodes


def test_constants_that_something_reads_stay():
    """A node, a graph inside one, or the model, as an output."""
    names = ("by a node", "inside", "given out", "unused")
    constants = [numpy_helper.from_array(np.ones(2, np.float32), name) for name in names]
    value = helper.make_tensor_value_info
    branch = helper.make_graph(
        [helper.make_node("Neg", ["inside"], ["n"])], "b", [], [value("n", TensorProto.FLOAT, [2])]
    )
    nodes = [
        helper.make_node("If", ["c"], ["i"], then_branch=branch, else_branch=branch),
        helper.make_node("Add", ["i", "by a node"], ["y"]),
    ]
    outputs = [value(name, TensorProto.FLOAT, [2]) for name in ("y", "given out")]
    graph = helper.make_graph(nodes, "m", [value("c", TensorProto.BOOL, [])], outputs, constants)
    model = helper.make_model(graph)
    made = with_nodes(model, nodes)
    assert [tensor.name for tensor in made.graph.initializer] == ["by a node", "inside", "given out"]
    onnx.checker.check_model(made)
