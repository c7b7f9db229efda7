"""Host models run by name."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from sim.host import HostSession, run_host


def _model() -> bytes:
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (2,)) for name in "abcd"]
    nodes = [helper.make_node("Sub", ["a", "b"], ["c"]), helper.make_node("Neg", ["c"], ["d"])]
    graph = helper.make_graph(nodes, "host", infos[:2], infos[2:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString()


def test_outputs_by_name():
    a, b = np.array([3, 5], np.float32), np.array([1, 9], np.float32)
    result = run_host(_model(), {"b": b, "a": a, "unused": a})
    assert result["c"].tolist() == [2, -4]
    assert result["d"].tolist() == [-2, 4]


def test_names_and_missing_inputs():
    host = HostSession(_model())
    assert (host.inputs, host.outputs) == (["a", "b"], ["c", "d"])
    with pytest.raises(KeyError, match="b"):
        host({"a": np.zeros(2, np.float32)})


def test_model_is_checked():
    model = onnx.load_from_string(_model())
    model.graph.node[0].op_type = "NoSuchOperator"
    with pytest.raises(Exception, match="NoSuchOperator"):
        HostSession(model.SerializeToString())
