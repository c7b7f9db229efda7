"""Add, Sub, Mul of two tensors, with the rounding of onnxruntime's kernels."""

import numpy as np
import onnx
import pytest

from compiler.frontend import import_model
from compiler.frontend.problems import UnsupportedModel
from compiler.frontend.requantise import add_multipliers
from compiler.frontend.values import Quantisation
from tests.support.golden_check import check_model, kinds
from tests.support.onnx_models import Net, sandwich

SHAPE = (1, 6, 24, 20)
SCALES = [(0.5, 0.5, 1.0), (0.01, 0.01, 0.02), (0.25, 1.0, 2.0), (0.0371, 0.0193, 0.0422), (0.03, 0.017, 0.04)]


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("zeros", [(0, 0, 0), (3, 5, 7)])
@pytest.mark.parametrize("scales", SCALES)
def test_add(scales, zeros, dtype):
    inputs = [(SHAPE, scales[0], zeros[0]), (SHAPE, scales[1], zeros[1])]
    graph = check_model(sandwich("Add", inputs, (scales[2], zeros[2]), dtype=dtype))
    assert kinds(graph) == ["eltwise"]


@pytest.mark.parametrize("scales", SCALES[:3])
@pytest.mark.parametrize("zero", [0, 7, -128])
def test_add_with_power_of_two_ratios_is_exact(scales, zero):
    inputs = [(SHAPE, scales[0], 3), (SHAPE, scales[1], -5)]
    check_model(sandwich("Add", inputs, (scales[2], zero)), exact=True)


def test_multipliers_stay_in_their_registers():
    for exponent in range(-12, 13, 3):
        a = Quantisation(np.float32(0.7 * 2.0**exponent), 17, "int8")
        b = Quantisation(np.float32(0.013), -99, "int8")
        by = add_multipliers(a, b, Quantisation(np.float32(0.02), 101, "int8"))
        assert max(abs(by.ma), abs(by.mb)) < 2**22
        assert 255 * (abs(by.ma) + abs(by.mb)) + abs(by.bias) < 2**31


@pytest.mark.parametrize("zeros", [(0, 0, 0), (3, 5, 7)])
@pytest.mark.parametrize("scales", [(0.5, 0.5, 0.5), (0.01, 0.02, 0.04), (0.03, 0.017, 0.04)])
def test_mul(scales, zeros):
    inputs = [(SHAPE, scales[0], zeros[0]), (SHAPE, scales[1], zeros[1])]
    assert kinds(check_model(sandwich("Mul", inputs, (scales[2], zeros[2])))) == ["eltwise"]


def test_sub():
    inputs = [(SHAPE, 0.031, 3), (SHAPE, 0.042, -5)]
    assert kinds(check_model(sandwich("Sub", inputs, (0.05, 7)))) == ["eltwise"]


@pytest.mark.parametrize("op", ["Add", "Mul"])
@pytest.mark.parametrize("small", [(1, 6, 1, 1), (1, 1, 1, 1)])
@pytest.mark.parametrize("swapped", [False, True])
def test_broadcast_over_pixels(op, small, swapped):
    shapes = [small, SHAPE] if swapped else [SHAPE, small]
    inputs = [(shapes[0], 0.0371, 3), (shapes[1], 0.0193, -5)]
    assert kinds(check_model(sandwich(op, inputs, (0.0422, 7)))) == ["eltwise"]


@pytest.mark.parametrize("shape", [(4, 9), (2, 4, 9)])
def test_matrices(shape):
    inputs = [(shape, 0.0371, 3), (shape, 0.0193, -5)]
    assert kinds(check_model(sandwich("Add", inputs, (0.0422, 7)))) == ["eltwise"]


@pytest.mark.parametrize("op", ["Add", "Mul"])
@pytest.mark.parametrize("shape", [(1, 6, 1, 1), (6, 1, 1), (20,), SHAPE])
def test_quantised_constant(op, shape):
    net = Net()
    x = net.dq(net.input(SHAPE), 0.0371, 3)
    constant = net.dq(net.const(net.array(shape)), 0.0193, -5)
    assert kinds(check_model(net.model(net.q(net.node(op, [x, constant]), 0.0422, 7)))) == ["eltwise"]


def test_relu_behind_add_is_fused():
    net = Net()
    a, b = (net.dq(net.input(SHAPE, name=name), 0.04, 3) for name in ("a", "b"))
    graph = check_model(net.model(net.q(net.node("Relu", [net.node("Add", [a, b])]), 0.05, -128)))
    assert kinds(graph) == ["eltwise"]


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("constant", [False, True])
def test_qoperator(op, constant):
    net = Net()
    b = net.const(net.array((1, 6, 1, 1), "uint8")) if constant else net.input(SHAPE, "uint8", "b")
    inputs = [
        net.input(SHAPE, "uint8", "a"), net.const(0.0371, np.float32), net.const(120, np.uint8),
        b, net.const(0.0193, np.float32), net.const(99, np.uint8),
        net.const(0.0422, np.float32), net.const(131, np.uint8),
    ]  # fmt: skip
    model = net.model(net.node(op, inputs, domain="com.microsoft"), dtype="uint8")
    assert kinds(check_model(model)) == ["eltwise"]


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_a_constant_of_several_scales_is_refused(op):
    """Where the first of them would do for a channel only. onnxruntime refuses it as well."""
    net = Net()
    inputs = [
        net.input(SHAPE, "uint8", "a"), net.const(0.0371, np.float32), net.const(120, np.uint8),
        net.const(net.array((1, 6, 1, 1), "uint8")), net.const(0.0193, np.float32), net.const(99, np.uint8),
        net.const(0.0422, np.float32), net.const(131, np.uint8),
    ]  # fmt: skip
    model = net.model(net.node(op, inputs, domain="com.microsoft"), dtype="uint8")
    scale = next(one for one in model.graph.initializer if one.name == inputs[4])
    scale.CopyFrom(onnx.numpy_helper.from_array(np.linspace(0.01, 0.02, 6, dtype=np.float32), inputs[4]))
    with pytest.raises(UnsupportedModel, match=r"several scales|6 scales"):
        import_model(model)


def test_residual_block_with_different_layers():
    net = Net()
    x = net.dq(net.input((1, 4, 8, 8)), 0.031, 7)
    left = net.dq(net.q(net.conv(x, 0.031, (8, 4, 3, 3), pads=[1, 1, 1, 1]), 0.9, 3), 0.9, 3)
    right = net.dq(net.q(net.conv(x, 0.031, (8, 4, 1, 1)), 0.7, -4), 0.7, -4)
    graph = check_model(net.model(net.q(net.node("Add", [left, right]), 1.1, 1)))
    assert kinds(graph) == ["conv", "conv", "eltwise"]


EXTREMES = ["Min", "Max"]
TARGETS = [((0.031, 3), (0.031, 3), (0.031, 3)), ((0.031, 3), (0.031, 3), (0.05, -7)), ((0.5, 0), (0.3, -5), (0.4, 7))]


@pytest.mark.parametrize("op", EXTREMES)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("stored", TARGETS)
def test_smaller_and_larger_are_exact(op, dtype, stored):
    *operands, target = [(scale, zero % 256 if dtype == "uint8" else zero) for scale, zero in stored]
    graph = check_model(sandwich(op, [(SHAPE, *one) for one in operands], target, dtype=dtype), exact=True)
    tables = sum(one != target for one in operands) if operands[0] != operands[1] else 0
    assert kinds(graph) == ["table"] * tables + ["eltwise"]


@pytest.mark.parametrize("op", EXTREMES)
@pytest.mark.parametrize("small", [(1, 6, 1, 1), (1, 1, 1, 1)])
@pytest.mark.parametrize("swapped", [False, True])
def test_smaller_and_larger_with_broadcast(op, small, swapped):
    shapes = [small, SHAPE] if swapped else [SHAPE, small]
    check_model(sandwich(op, [(shapes[0], 0.04, 3), (shapes[1], 0.03, -5)], (0.035, 7)), exact=True)


@pytest.mark.parametrize("op", EXTREMES)
def test_a_clamp_behind_the_smaller_or_larger_is_part_of_it(op):
    net = Net()
    a, b = (net.dq(net.input(SHAPE, name=name), 0.04, 3) for name in ("a", "b"))
    for scale in (0.04, 0.05):
        graph = check_model(net.model(net.q(net.node("Relu", [net.node(op, [a, b])]), scale, 3)), exact=True)
        assert kinds(graph) == ["eltwise"]


@pytest.mark.parametrize("op", EXTREMES)
def test_smaller_and_larger_of_a_constant(op):
    net = Net()
    x, constant = net.dq(net.input(SHAPE), 0.0371, 3), net.dq(net.const(net.array((6, 1, 1))), 0.0193, -5)
    graph = check_model(net.model(net.q(net.node(op, [x, constant]), 0.0371, 3)), exact=True)
    assert kinds(graph) == ["eltwise"]  # the constant is requantised by the compiler


@pytest.mark.parametrize("op", EXTREMES)
def test_smaller_and_larger_of_one_tensor_are_a_table(op):
    net = Net()
    x = net.dq(net.input(SHAPE), 0.0371, 3)
    model = net.model(net.q(net.node(op, [x, net.const(0.5, np.float32)]), 0.0422, 7))
    assert kinds(check_model(model, exact=True)) == ["table"]


@pytest.mark.parametrize("op", EXTREMES)
@pytest.mark.parametrize("alike", [True, False])
def test_smallest_and_largest_of_several(op, alike):
    scales = [0.04] * 4 if alike else [0.03, 0.04, 0.05, 0.02]
    shapes = [(1, 6, 1, 1), SHAPE, SHAPE, (1, 1, 1, 1)]
    model = sandwich(op, [(shape, scale, 3) for shape, scale in zip(shapes, scales, strict=True)], (0.04, 3))
    graph = check_model(model, exact=True)
    assert sorted(kinds(graph)) == ["eltwise"] * 3 + ["table"] * (0 if alike else 3)


@pytest.mark.parametrize("op", EXTREMES)
def test_clamped_largest_of_tensors_and_a_constant(op):
    net = Net()
    a, b = (net.dq(net.input(SHAPE, name=name), 0.04, 3) for name in ("a", "b"))
    constant = net.dq(net.const(net.array((6, 1, 1))), 0.0193, -5)
    y = net.node("Relu", [net.node(op, [a, constant, b])])
    assert kinds(check_model(net.model(net.q(y, 0.05, -3)), exact=True)).count("eltwise") == 2


def test_sum_of_two_is_an_addition():
    inputs = [(SHAPE, 0.031, 3), (SHAPE, 0.042, -5)]
    assert kinds(check_model(sandwich("Sum", inputs, (0.05, 7)))) == ["eltwise"]


@pytest.mark.parametrize("op", ["Add", "Mul", "Max"])
@pytest.mark.parametrize("shape", [(1, 6, 1, 1), (6, 1, 1), (1, 1, 1, 7), (7,), ()])
def test_a_constant_for_several_images(op, shape):
    net = Net()
    x = net.dq(net.input((3, 6, 5, 7)), 0.03, 3)
    check_model(net.model(net.q(net.node(op, [x, net.dq(net.const(net.array(shape)), 0.02, -5)]), 0.05)))


def test_a_row_for_several_images_is_refused():
    net = Net()
    x, row = (net.dq(net.input(shape, name=name), 0.03) for name, shape in (("x", (3, 6, 5, 7)), ("row", (1, 1, 1, 7))))
    with pytest.raises(UnsupportedModel, match=r"shape \(1, 1, 1, 7\) broadcast to \(3, 6, 5, 7\)"):
        import_model(net.model(net.q(net.node("Add", [x, row]), 0.05)))
