"""Means over images that are moved: as pools the same numbers, and in 8 bits on the accelerator."""

import numpy as np
import onnx
import pytest
from onnx import helper

from compiler import quantise
from compiler.quantise.plain_pools import plain_pools
from sim.host import session
from tests.support.float_nets import SHAPE, FloatNet
from tests.support.golden_check import check_model, kinds


def ends_in_mean(axes: list[int], keep: bool, version: int, reader: str = "Reshape") -> onnx.ModelProto:
    """A convolution, a mean of its result, and a Reshape, as PyTorch's exporter writes it, or a Relu."""
    net = FloatNet()
    x = net.conv("in", 3, 8, 3, 2)
    given = [net.const(axes, np.int64)] if version >= 18 else []
    x = net.node("ReduceMean", x, *given, keepdims=int(keep), **({} if given else {"axes": axes}))
    output = net.node("Reshape", x, net.const([1, -1], np.int64)) if reader == "Reshape" else net.node(reader, x)
    ends = helper.make_tensor_value_info("in", 1, SHAPE), helper.make_tensor_value_info(output, 1, None)
    graph = helper.make_graph(net.nodes, "net", ends[:1], ends[1:], net.initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=8)
    shape = session(model).get_outputs()[0].shape
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info(output, 1, shape))
    return model


@pytest.mark.parametrize("version", [13, 18])
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("axes", [[2, 3], [-1, -2]])
def test_the_same_numbers_and_no_step_on_the_cpu(axes, keep, version, tmp_path):
    model, rng = ends_in_mean(axes, keep, version), np.random.default_rng(0)
    feeds = [{"in": rng.normal(0, 1, SHAPE).astype(np.float32)} for _ in range(3)]
    made = plain_pools(model)
    onnx.checker.check_model(made)
    assert "GlobalAveragePool" in {node.op_type for node in made.graph.node}
    wanted, found = (session(one).run(None, feeds[0])[0] for one in (model, made))
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    quantise.quantise(quantise.prepared(model), feeds, tmp_path / "q.onnx")
    assert "host" not in kinds(check_model(onnx.load(tmp_path / "q.onnx")))


@pytest.mark.parametrize(
    ("axes", "reader"), [([1, 2], "Reshape"), ([3], "Reshape"), ([2, 3], "Relu")], ids=["channels", "rows", "read"]
)
def test_other_means_stay(axes, reader):
    assert "ReduceMean" in {node.op_type for node in plain_pools(ends_in_mean(axes, True, 13, reader)).graph.node}


def test_a_mean_that_is_viewed_and_then_read_is_a_pool(tmp_path):
    """PyTorch's exporter writes a view with strides, which such a mean leaves behind, as a Gather of all elements."""
    net, rng = FloatNet(), np.random.default_rng(0)
    x = net.node("ReduceMean", net.conv("in", 3, 8, 3, 2), net.const([2, 3], np.int64), keepdims=1)
    view = net.node(
        "Gather", net.node("Reshape", x, net.const([-1], np.int64)), net.const([[0, 1, 2, 3, 4, 5, 6, 7]], np.int64)
    )
    output = net.node("Gemm", view, net.random(8, 4))
    ends = helper.make_tensor_value_info("in", 1, SHAPE), helper.make_tensor_value_info(output, 1, (1, 4))
    graph = helper.make_graph(net.nodes, "net", ends[:1], ends[1:], net.initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    feeds = [{"in": rng.normal(0, 1, SHAPE).astype(np.float32)} for _ in range(3)]
    quantise.quantise(quantise.prepared(model), feeds, tmp_path / "q.onnx")
    assert "host" not in kinds(check_model(onnx.load(tmp_path / "q.onnx")))
