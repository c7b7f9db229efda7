"""A refusal names every node that cannot run, and what helps."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from compiler.frontend import UnsupportedModel, import_model
from tests.support.golden_check import check_model
from tests.support.onnx_models import Net


def refused(model: onnx.ModelProto, **options) -> UnsupportedModel:
    with pytest.raises(UnsupportedModel) as error:
        import_model(model, **options)
    return error.value


def float_net() -> onnx.ModelProto:
    net = Net()
    x = net.input((1, 3, 8, 8), "float32")
    for index, channels in enumerate((4, 6)):
        weights = net.const(net.rng.normal(0, 1, (channels, 3 if not index else 4, 3, 3)), np.float32)
        x = net.node("Relu", [net.node("Conv", [x, weights], name=f"conv{index}")], name=f"relu{index}")
    return net.model(x, dtype="float32")


def test_a_float_model_is_recognised_and_all_its_nodes_are_named():
    error = refused(float_net())
    assert [node.name for node in error.nodes] == ["conv0", "relu0", "conv1", "relu1"]
    assert "not quantised" in str(error) and "caesura quantise" in str(error)
    assert "fallback" not in str(error)


def test_a_dynamically_quantised_model_is_recognised():
    net = Net()
    x = net.input((1, 3, 8, 8), "float32")
    net.node("DynamicQuantizeLinear", [x], outputs=3, name="dynamic")
    stored, scale, zero = net.nodes[-1].output
    total = net.node("ConvInteger", [stored, net.const(net.array((4, 3, 3, 3))), zero], name="conv")
    real = net.node("Mul", [net.node("Cast", [total], to=1, name="cast"), scale], name="mul")
    error = refused(net.model(real, dtype="float32"))
    assert [node.name for node in error.nodes] == ["dynamic", "conv", "cast", "mul"]
    assert "quantised dynamically" in str(error)


def test_every_convolution_with_several_weight_zero_points_is_named():
    net = Net()
    x = net.input((1, 4, 8, 8), "uint8")
    scale, zero = net.const(0.1, np.float32), net.const(7, np.uint8)
    for index in range(3):
        weights = net.const(net.array((4, 4, 1, 1), "uint8"))
        channels = [net.const(np.full(4, 0.02), np.float32), net.const(np.arange(4), np.uint8)]
        x = net.node("QLinearConv", [x, scale, zero, weights, *channels, scale, zero], name=f"conv{index}")
    assert [node.name for node in refused(net.model(x, dtype="uint8")).nodes] == ["conv0", "conv1", "conv2"]


def test_no_advice_to_fall_back_where_that_was_tried():
    net = Net()
    x = net.dq(net.q(net.input((1, 3, 6, 6), "float32"), 0.5), 0.5)
    y = net.node("Greater", [x, net.const(0, np.float32)], name="greater")
    info = helper.make_tensor_value_info(y, TensorProto.BOOL, (1, 3, 6, 6))
    graph = helper.make_graph(net.nodes, "net", net.inputs, [info], net.initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    error = refused(model)
    assert "Give fallback=True to run them" in str(error) and "Give --fallback to run them" in error.told("--fallback")
    assert "fallback" not in error.told(None)
    error = refused(model, fallback=True)
    assert "is bool" in str(error) and "fallback" not in error.told("--fallback")


def test_an_int32_output_is_called_that():
    x, w = helper.make_tensor_value_info("x", TensorProto.UINT8, (3, 6)), np.ones((6, 4), np.int8)
    y = helper.make_tensor_value_info("y", TensorProto.INT32, (3, 4))
    node = helper.make_node("MatMulInteger", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "g", [x], [y], [numpy_helper.from_array(w, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    assert "int32 result" in str(refused(model))
    check_model(model, fallback=True)


def test_made_up_names_differ_from_given_ones():
    net = Net()
    x = net.dq(net.input((1, 4, 6, 6)), 0.1)
    for _ in range(3):
        x = net.dq(net.q(net.conv(x, 0.1, (4, 4, 1, 1)), 0.1), 0.1)
    model = net.model(net.q(x, 0.2))
    first, *others = [i for i, node in enumerate(model.graph.node) if node.op_type == "Conv"]
    model.graph.node[first].name = ""
    model.graph.node[others[0]].name = f"Conv_{first}"  # what the first one would be called
    model.graph.node[others[1]].name = f"Conv_{first}"
    graph = check_model(model, exact=True)
    assert len({node for op in graph.ops for node in op.nodes}) == len(model.graph.node)


def test_nodes_with_one_reason_are_told_once():
    net = Net()
    x = net.dq(net.input((1, 4, 6, 6)), 0.1)
    for index in range(5):
        x = net.node("CumSum", [x, net.const(2, np.int64)], name=f"sum{index}")
        x = net.dq(net.q(x, 0.1), 0.1)
        x = net.dq(net.q(net.conv(x, 0.1, (4, 4, 1, 1)), 0.1), 0.1)
    error = refused(net.model(net.q(x, 0.2)))
    assert len(error.nodes) == 5 and str(error).count("CumSum") == 1
    assert "CumSum, 5 nodes ('sum0', 'sum1', 'sum2', ...): no such operator on the accelerator" in str(error)


def test_reasons_that_differ_by_names_alone_are_one():
    net = Net()
    x = net.dq(net.input((1, 4, 6, 6)), 0.1)
    for index in range(2):
        weights = net.const(net.rng.normal(0, 1, (4, 4, 1, 1)), np.float32)
        x = net.dq(net.q(net.node("Conv", [x, weights], name=f"conv{index}"), 0.1), 0.1)
    assert "Conv, 2 nodes ('conv0', 'conv1'): its weights 'const" in str(refused(net.model(net.q(x, 0.2))))


def test_what_only_reads_a_refused_result_is_no_cause():
    error = refused(float_net())
    assert [node.name for node in error.nodes if not node.follows] == ["conv0"]
    assert "'conv0'" in str(error) and "'relu0'" not in str(error) and "'conv1'" not in str(error)
    assert "and 3 nodes that read what these compute" in str(error)
