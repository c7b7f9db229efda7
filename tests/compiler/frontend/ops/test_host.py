"""Softmax and fallback nodes run on the CPU, with layouts handled inside the host model."""

import numpy as np
import onnx
import pytest

from compiler.frontend import UnsupportedModel, import_model
from compiler.ir import Host
from tests.support.golden_check import check_model, kinds
from tests.support.onnx_models import Net


def _image(net: Net) -> str:
    x = net.dq(net.input((1, 3, 6, 6)), 0.031, 7)
    return net.dq(net.q(net.conv(x, 0.031, (8, 3, 3, 3)), 0.9), 0.9)


@pytest.mark.parametrize("quantised", [False, True])
@pytest.mark.parametrize("axis", [1, -1])
def test_softmax_always_runs_on_the_host(quantised, axis):
    net = Net()
    y = net.node("Softmax", [_image(net)], axis=axis)
    if quantised:
        model = net.model(net.q(y, 1 / 256, -128))
    else:
        model = net.model(y, dtype="float32")
    graph = check_model(model)
    assert kinds(graph) == ["conv", "host"]
    host = graph.ops[-1]
    assert isinstance(host, Host)
    assert "softmax" in host.reason
    assert host.inputs == [graph.ops[0].output]


def test_float_reshape_behind_softmax():
    net = Net()
    y = net.node("Flatten", [net.node("Softmax", [_image(net)], axis=1)])
    assert kinds(check_model(net.model(y, dtype="float32"))) == ["conv", "host"]


def test_qlinear_softmax():
    net = Net()
    inputs = [
        net.input((2, 10)), net.const(0.2, np.float32), net.const(3, np.int8),
        net.const(1 / 256, np.float32), net.const(-128, np.int8),
    ]  # fmt: skip
    model = net.model(net.node("QLinearSoftmax", inputs, domain="com.microsoft", axis=1, opset=13))
    assert kinds(check_model(model)) == ["host"]


def test_unsupported_sandwich_falls_back_and_the_rest_does_not():
    net = Net()
    turned = net.node("CumSum", [_image(net), net.const(2, np.int64)])
    y = net.dq(net.q(turned, 3.0), 3.0)
    model = net.model(net.q(net.conv(y, 3.0, (4, 8, 1, 1)), 60.0))
    with pytest.raises(UnsupportedModel) as error:
        import_model(model)
    assert [node.type for node in error.value.nodes] == ["CumSum"]
    graph = check_model(model, fallback=True)
    assert kinds(graph) == ["conv", "host", "conv"]


def test_neighbouring_float_nodes_share_a_host_operator():
    net = Net()
    y = net.node("CumSum", [_image(net), net.const(2, np.int64)])
    y = net.node("Sin", [net.node("CumSum", [y, net.const(3, np.int64)])])
    graph = check_model(net.model(net.q(y, 0.01)), fallback=True)
    assert kinds(graph) == ["conv", "host"]


def test_several_outputs_are_float_tensors_between_host_operators():
    net = Net()
    x = _image(net)
    net.node("TopK", [x, net.const([3], np.int64)], outputs=2, axis=1)
    values, indices = net.nodes[-1].output
    joined = net.node("Concat", [values, net.node("Cast", [indices], to=1)], axis=1)
    graph = check_model(net.model(net.q(joined, 0.9)), fallback=True)
    assert kinds(graph)[0] == "conv"
    assert set(kinds(graph)[1:]) == {"host"}


def test_float_model_runs_on_the_host_altogether():
    net = Net()
    x = net.input((1, 3, 6, 6), "float32")
    weights = net.const(net.rng.normal(0, 1, (4, 3, 3, 3)), np.float32)
    y = net.node("Relu", [net.node("Conv", [x, weights])])
    model = net.model(y, dtype="float32")
    with pytest.raises(UnsupportedModel, match="not quantised"):
        import_model(model)
    assert set(kinds(check_model(model, fallback=True))) == {"host"}


def test_float_head_and_tail_are_conversions_of_the_ports():
    net = Net()
    x = net.dq(net.q(net.input((1, 3, 6, 6), "float32"), 0.02, 3), 0.02, 3)
    y = net.dq(net.q(net.conv(x, 0.02, (8, 3, 3, 3)), 0.9, 5), 0.9, 5)
    graph = check_model(net.model(y, dtype="float32"), exact=True)
    assert kinds(graph) == ["conv"]
    assert graph.inputs[0].quantise
    assert graph.outputs[0].quantise


def test_a_float_input_with_equal_readers_is_one_port():
    net = Net()
    x, scale, zero = net.input((1, 3, 6, 6), "float32"), net.const(0.02, np.float32), net.const(3, np.int8)
    left, right = (net.dq(net.node("QuantizeLinear", [x, scale, zero]), 0.02, 3) for _ in range(2))
    graph = check_model(net.model(net.q(net.node("Mul", [left, right]), 0.01)))
    assert [port.name for port in graph.inputs] == ["x"]


def test_a_float_input_with_different_readers_is_quantised_on_the_host():
    net = Net()
    x = net.input((1, 3, 6, 6), "float32")
    left, right = (net.dq(net.q(x, scale), scale) for scale in (0.02, 0.03))
    graph = check_model(net.model(net.q(net.node("Mul", [left, right]), 0.01)))
    assert [port.name for port in graph.inputs] == ["x"]
    assert kinds(graph) == ["host", "host", "eltwise"]


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_a_scalar_of_the_host(dtype):
    net = Net()
    y = net.node("ReduceMax", [_image(net)], keepdims=0)
    check_model(net.model(y if dtype == "float32" else net.q(y, 0.9), dtype=dtype), fallback=True)


def test_scalars_between_host_operators():
    net = Net()
    x = _image(net)
    high, low = (net.node(op, [x], keepdims=0) for op in ("ReduceMax", "ReduceMin"))
    model = net.model(net.q(net.node("Mul", [net.node("Add", [high, low]), x]), 9.0), net.q(high, 0.9))
    assert "host" in kinds(check_model(model, fallback=True))


@pytest.mark.parametrize("stored, opset", [("FLOAT8E4M3FN", 19), ("INT16", 21), ("INT4", 21)])
def test_other_types_stay_within_host_operators(stored, opset):
    net = Net(opset=opset)
    scale = net.const(0.5, np.float32)
    net.initializers.append(onnx.helper.make_tensor("zero", onnx.TensorProto.DataType.Value(stored), [], [0]))
    narrow = net.node("QuantizeLinear", [_image(net), scale, "zero"])
    ends = [net.q(net.node("DequantizeLinear", [narrow, scale, "zero"]), s) for s in (0.5, 0.25)]
    check_model(net.model(*ends), fallback=True)


def test_a_truth_value_with_two_readers():
    net = Net()
    x = _image(net)
    positive = net.node("Greater", [x, net.const(0, np.float32)])
    chosen = net.node("Where", [positive, x, net.const(1, np.float32)])
    check_model(net.model(net.q(net.node("Add", [chosen, net.node("Cast", [positive], to=1)]), 0.9)), fallback=True)
