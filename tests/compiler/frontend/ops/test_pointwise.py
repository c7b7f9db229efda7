"""Functions of one tensor become tables that equal onnxruntime on all 256 values."""

import numpy as np
import pytest
from onnx import numpy_helper

from compiler.frontend import import_model
from compiler.frontend.problems import UnsupportedModel
from tests.support.golden_check import check_model, kinds
from tests.support.onnx_models import Net, sandwich

ALL_VALUES = (1, 4, 16, 16)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(
    "op",
    ["Relu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "LeakyRelu", "Elu", "Abs", "Neg", "Exp", "Softplus", "Erf"],
)
def test_unary(op, dtype):
    model = sandwich(op, [(ALL_VALUES, 0.047, 5)], (0.021, 9), opset=14, dtype=dtype)
    assert kinds(check_model(model)) == ["table"]


def test_clip_alone():
    constants = (np.float32(-1.0), np.float32(2.0))
    model = sandwich("Clip", [(ALL_VALUES, 0.047, 5)], (0.021, 9), constants=constants)
    assert kinds(check_model(model)) == ["table"]


def test_requantisation_alone():
    net = Net()
    x = net.dq(net.input(ALL_VALUES), 0.047, 5)
    assert kinds(check_model(net.model(net.q(x, 0.031, -7)))) == ["table"]


@pytest.mark.parametrize("extra_axes", [(), (1, 1, 1)])
def test_chain_with_scalar_constants(extra_axes):
    net = Net()
    x = net.dq(net.input(ALL_VALUES), 0.047, 5)
    shifted = net.node("Add", [x, net.const(np.full(extra_axes, 3.0), np.float32)])
    clipped = net.node("Clip", [shifted, net.const(0.0, np.float32), net.const(6.0, np.float32)])
    scaled = net.node("Div", [clipped, net.const(6.0, np.float32)])
    assert kinds(check_model(net.model(net.q(net.node("Mul", [x, scaled]), 0.04, 3)))) == ["table"]


@pytest.mark.parametrize(("op", "attributes"), [("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.1})])
def test_qoperator(op, attributes):
    net = Net()
    inputs = [
        net.input(ALL_VALUES, "uint8"), net.const(0.047, np.float32), net.const(120, np.uint8),
        net.const(0.021, np.float32), net.const(31, np.uint8),
    ]  # fmt: skip
    model = net.model(net.node(op, inputs, domain="com.microsoft", **attributes), dtype="uint8")
    assert kinds(check_model(model)) == ["table"]


@pytest.mark.parametrize("op", ["Relu", "Clip"])
def test_clamp_of_8_bit_values(op):
    net = Net(opset=14)
    limits = [net.const(-20, np.int8), net.const(30, np.int8)] if op == "Clip" else []
    x = net.node(op, [net.input((1, 4, 5, 5)), *limits])
    y = net.q(net.conv(net.dq(x, 0.031, 0), 0.031, (8, 4, 1, 1)), 0.9)
    assert kinds(check_model(net.model(y), exact=True)) == ["table", "conv"]


def test_table_behind_a_flattened_image_keeps_its_layout():
    net = Net()
    x = net.dq(net.input((1, 4, 6, 6)), 0.031, 7)
    image = net.dq(net.q(net.conv(x, 0.031, (8, 4, 3, 3)), 0.9), 0.9)
    flat = net.dq(net.q(net.node("Flatten", [image]), 1.3, 4), 1.3, 4)
    weights, _ = net.weights((5, 128), 0)
    graph = check_model(net.model(net.q(net.node("Gemm", [flat, weights], transB=1), 40.0)))
    assert kinds(graph) == ["conv", "table", "reshape", "conv"]


@pytest.mark.parametrize("op", ["Add", "Max", "Pow"])
def test_types_that_do_not_go_together_are_refused(op):
    """Such a file is no valid ONNX model, and onnxruntime says so when the table is to be made."""
    net = Net()
    x = net.dq(net.input(ALL_VALUES), 0.047, 5)
    three = net.const(3.0, np.float32)
    model = net.model(net.q(net.node(op, [x, three]), 0.031, -7))
    (constant,) = [tensor for tensor in model.graph.initializer if tensor.name == three]
    constant.CopyFrom(numpy_helper.from_array(np.int8(3), three))
    with pytest.raises(UnsupportedModel, match="onnxruntime cannot evaluate it"):
        import_model(model)
