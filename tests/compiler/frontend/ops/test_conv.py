"""Conv, ConvInteger, QLinearConv: every geometry equals onnxruntime exactly."""

import numpy as np
import pytest

from compiler.frontend import UnsupportedModel, import_model
from compiler.ir import Conv
from tests.support.golden_check import check_model, kinds
from tests.support.onnx_models import Net

GEOMETRIES = {
    "1x1": ((1, 8, 6, 5), (16, 8, 1, 1), {}),
    "3x3": ((1, 3, 9, 7), (5, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
    "asymmetric": ((1, 4, 8, 8), (6, 4, 3, 3), {"pads": [0, 1, 1, 2], "strides": [2, 1]}),
    "strided": ((1, 3, 15, 15), (8, 3, 7, 7), {"pads": [3, 3, 3, 3], "strides": [2, 2]}),
    "same_upper": ((1, 4, 7, 8), (4, 4, 4, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    "same_lower": ((1, 4, 7, 8), (4, 4, 4, 3), {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
    "valid": ((1, 4, 7, 8), (4, 4, 3, 3), {"auto_pad": "VALID"}),
    "dilated": ((1, 4, 11, 12), (4, 4, 3, 3), {"dilations": [2, 3], "pads": [2, 3, 2, 3]}),
    "grouped": ((1, 8, 6, 6), (12, 2, 3, 3), {"group": 4}),
    "depthwise": ((1, 8, 6, 6), (8, 1, 3, 3), {"group": 8, "pads": [1, 1, 1, 1]}),
    "multiplier": ((1, 4, 6, 6), (8, 1, 3, 3), {"group": 4, "pads": [1, 1, 1, 1]}),
    "batch": ((3, 4, 5, 5), (4, 4, 3, 3), {}),
    "1d": ((1, 4, 17), (6, 4, 5), {"pads": [1, 2], "strides": [2]}),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_qdq_geometry(name, dtype):
    shape, weights, attributes = GEOMETRIES[name]
    net = Net()
    x = net.dq(net.input(shape, dtype), 0.031, 7, dtype)
    y = net.q(net.conv(x, 0.031, weights, **attributes), 0.9, 3, dtype)
    graph = check_model(net.model(y, dtype=dtype), exact=True)
    assert kinds(graph) == ["conv"]


@pytest.mark.parametrize("name", GEOMETRIES)
def test_qoperator_geometry(name):
    shape, weights, attributes = GEOMETRIES[name]
    net = Net(opset=10, seed=1)
    scale = net.rng.uniform(0.002, 0.02, weights[0]).astype(np.float32)
    inputs = [
        net.input(shape, "uint8"), net.const(0.031, np.float32), net.const(120, np.uint8),
        net.const(net.array(weights)), net.const(scale), net.const(np.zeros(weights[0], np.int8)),
        net.const(1.1, np.float32), net.const(128, np.uint8),
        net.const(net.rng.integers(-999, 999, weights[0]), np.int32),
    ]  # fmt: skip
    model = net.model(net.node("QLinearConv", inputs, **attributes), dtype="uint8")
    assert kinds(check_model(model, exact=True)) == ["conv"]


@pytest.mark.parametrize("zero_point", [0, 131])
def test_unsigned_weights_with_zero_point(zero_point):
    net = Net()
    x = net.dq(net.input((1, 4, 6, 6), "uint8"), 0.02, 9, "uint8")
    weights, _ = net.weights((5, 4, 3, 3), None, "uint8", zero_point)
    graph = check_model(net.model(net.q(net.node("Conv", [x, weights]), 2.0, 100, "uint8"), dtype="uint8"), exact=True)
    assert graph.ops[0].weight_zero_point == zero_point


@pytest.mark.parametrize(
    ("op", "constants", "limits"),
    [("Relu", (), (-20, 127)), ("Clip", (0.0, 6.0), (-20, 100)), ("Clip", (-1.0, 1.0), (-40, 0))],
)
def test_clamp_is_fused(op, constants, limits):
    net = Net()
    x = net.dq(net.input((1, 4, 6, 6)), 0.031, 7)
    conv = net.conv(x, 0.031, (8, 4, 3, 3))
    clamped = net.node(op, [conv, *(net.const(c, np.float32) for c in constants)])
    graph = check_model(net.model(net.q(clamped, 0.05, -20)))
    assert kinds(graph) == ["conv"]
    assert (graph.ops[0].requantise.lo, graph.ops[0].requantise.hi) == limits


def test_clip_of_opset_10_has_attributes():
    net = Net(opset=10)
    x = net.dq(net.input((1, 4, 6, 6)), 0.031, 7)
    weights, _ = net.weights((5, 4, 3, 3), None)
    clipped = net.node("Clip", [net.node("Conv", [x, weights])], min=0.0, max=6.0)
    graph = check_model(net.model(net.q(clipped, 0.05, -20)))
    assert graph.ops[0].requantise.hi == 100


@pytest.mark.parametrize("with_bias", [False, True])
def test_float_bias_and_missing_zero_points(with_bias):
    net = Net()
    scale = net.const(0.05, np.float32)
    x = net.node("DequantizeLinear", [net.input((1, 4, 6, 6), "uint8"), scale])
    weights, _ = net.weights((5, 4, 3, 3), None)
    bias = [net.const(net.rng.normal(0, 1, 5), np.float32)] if with_bias else []
    y = net.node("QuantizeLinear", [net.node("Conv", [x, weights, *bias]), net.const([0.2], np.float32)])
    graph = check_model(net.model(y, dtype="uint8"))
    assert graph.tensors[graph.outputs[0].tensor].dtype == "uint8"


def test_weights_stored_as_float_are_quantised_by_the_model():
    net = Net()
    x = net.dq(net.input((1, 4, 6, 6)), 0.05)
    stored = net.q(net.const(net.rng.normal(0, 0.2, (5, 4, 3, 3)), np.float32), 0.004)
    y = net.q(net.node("Conv", [x, net.dq(stored, 0.004)]), 0.2)
    assert kinds(check_model(net.model(y), exact=True)) == ["conv"]


@pytest.mark.parametrize("per_channel", [False, True])
def test_conv_integer_with_scale_and_bias_behind(per_channel):
    net = Net()
    x = net.q(net.input((1, 4, 6, 6), "float32"), 0.02, 128, "uint8")
    weights, zero = net.const(net.array((5, 4, 3, 3))), net.const(128, np.uint8)
    total = net.node("Cast", [net.node("ConvInteger", [x, weights, zero])], to=1)
    scale = net.rng.uniform(0.0001, 0.0002, (1, 5, 1, 1) if per_channel else ())
    real = net.node("Mul", [total, net.const(scale, np.float32)])
    bias = net.const(net.rng.normal(0, 0.5, (5, 1, 1)), np.float32)
    result = net.node("Relu", [net.node("Add", [real, bias])])
    graph = check_model(net.model(net.q(result, 0.02, 0, "uint8"), dtype="uint8"))
    assert kinds(graph) == ["conv"]


@pytest.mark.parametrize("zero_point", [7, -9])
def test_padding_is_folded_into_the_convolution(zero_point):
    net = Net()
    x = net.dq(net.input((1, 4, 6, 6)), 0.031, zero_point)
    padded = net.node("Pad", [x, net.const([0, 0, 1, 2, 0, 0, 2, 1], np.int64)])
    again = net.dq(net.q(padded, 0.031, zero_point), 0.031, zero_point)
    graph = check_model(net.model(net.q(net.conv(again, 0.031, (8, 4, 3, 3)), 0.9)), exact=True)
    assert kinds(graph) == ["conv"]
    assert graph.ops[0].pads == (1, 2, 2, 1)


def test_padding_with_another_value_is_stored():
    net = Net()
    x = net.dq(net.input((1, 4, 6, 6)), 0.031, 7)
    padded = net.node("Pad", [x, net.const([0, 0, 1, 2, 0, 0, 2, 1], np.int64), net.const(32 * 0.031, np.float32)])
    graph = check_model(net.model(net.q(net.conv(padded, 0.031, (8, 4, 3, 3)), 0.9)))
    assert kinds(graph) == ["pad", "conv"]


def test_scale_is_the_float32_expression_of_onnxruntime():
    net = Net()
    x = net.dq(net.input((1, 4, 6, 6)), 0.031, 7)
    graph = import_model(net.model(net.q(net.conv(x, 0.031, (8, 4, 1, 1)), 0.9)))
    conv = graph.ops[0]
    assert isinstance(conv, Conv)
    assert conv.requantise.scale.shape == (8,)
    assert conv.nodes
    assert conv.weights.shape == (8, 1, 1, 4)


def test_a_bias_that_is_no_number_is_refused():
    net = Net()
    x, (weights, _) = net.dq(net.input((1, 3, 6, 5)), 0.031, 7), net.weights((4, 3, 3, 3), None)
    y = net.node("Conv", [x, weights, net.const([0, 1, np.nan, 2], np.float32)])
    with pytest.raises(UnsupportedModel, match=r"the bias of 'Conv.*' is not a number"):
        import_model(net.model(net.q(y, 0.9)))


@pytest.mark.parametrize("share", [1.0, 1.005, 1.05, 0.4, 3.0])
def test_a_bias_in_other_steps_than_the_sum(share):
    """onnxruntime takes integers for those of the sum where the steps are nearly alike, and real numbers elsewhere."""
    net = Net()
    x = net.dq(net.input((1, 12, 8, 7)), 0.05, 3)
    check_model(net.model(net.q(net.conv(x, 0.05 * share, (12, 12, 3, 3)), 0.9, 3)))
