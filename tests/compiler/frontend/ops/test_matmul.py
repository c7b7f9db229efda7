"""Fully connected layers."""

import numpy as np
import pytest

from tests.support.golden_check import check_model, kinds
from tests.support.onnx_models import Net


@pytest.mark.parametrize("axis", [None, 1])
@pytest.mark.parametrize("shape", [(1, 20), (5, 20), (2, 3, 20)])
def test_matmul(shape, axis):
    net = Net()
    weights, _ = net.weights((20, 7), axis)
    x = net.dq(net.input(shape), 0.04, -9)
    graph = check_model(net.model(net.q(net.node("MatMul", [x, weights]), 0.7, 5)))
    assert kinds(graph)[-1] == "conv"


@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("with_bias", [False, True])
def test_gemm(trans_b, with_bias):
    net = Net()
    weights, scale = net.weights((7, 20) if trans_b else (20, 7), 1 - trans_b)
    x = net.dq(net.input((3, 20)), 0.04, -9)
    bias = [net.bias(7, np.float32(0.04) * scale)] if with_bias else []
    graph = check_model(net.model(net.q(net.node("Gemm", [x, weights, *bias], transB=trans_b), 0.7, 5)), exact=True)
    assert kinds(graph) == ["conv"]


def test_gemm_with_alpha_and_beta():
    net = Net()
    weights, _ = net.weights((20, 7), None)
    x = net.dq(net.input((3, 20)), 0.04, -9)
    bias = net.const(net.rng.normal(0, 3, (1, 7)), np.float32)
    check_model(net.model(net.q(net.node("Gemm", [x, weights, bias], alpha=0.5, beta=2.0), 0.7, 5)))


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("between", [False, True])
def test_matmul_and_add(between, swapped):
    net = Net()
    weights, scale = net.weights((20, 7), None)
    x = net.dq(net.input((3, 20)), 0.04, -9)
    result = net.node("MatMul", [x, weights])
    if between:
        result = net.dq(net.q(result, 0.6, 3), 0.6, 3)
        bias = net.dq(net.const(net.array((7,))), 0.1)
    else:
        bias = net.bias(7, np.float32(0.04) * scale)
    operands = [bias, result] if swapped else [result, bias]
    graph = check_model(net.model(net.q(net.node("Add", operands), 0.7, 5)))
    assert kinds(graph) == (["conv", "eltwise"] if between else ["conv"])


def test_transposed_weights_stay_quantised():
    net = Net()
    weights, _ = net.weights((7, 20), 0)
    x = net.dq(net.input((3, 20)), 0.04, -9)
    transposed = net.node("Transpose", [weights], perm=[1, 0])
    assert kinds(check_model(net.model(net.q(net.node("MatMul", [x, transposed]), 0.7, 5)))) == ["conv"]


def test_qlinear_matmul():
    net = Net(opset=10)
    inputs = [
        net.input((4, 20), "uint8"), net.const(0.031, np.float32), net.const(120, np.uint8),
        net.const(net.array((20, 6))), net.const(0.01, np.float32), net.const(0, np.int8),
        net.const(1.1, np.float32), net.const(128, np.uint8),
    ]  # fmt: skip
    model = net.model(net.node("QLinearMatMul", inputs), dtype="uint8")
    assert kinds(check_model(model, exact=True)) == ["conv"]


def test_qgemm():
    net = Net()
    inputs = [
        net.input((4, 20), "uint8"), net.const(0.031, np.float32), net.const(120, np.uint8),
        net.const(net.array((6, 20))), net.const(net.rng.uniform(0.01, 0.02, 6), np.float32),
        net.const(np.zeros(6), np.int8), net.const(net.rng.integers(-999, 999, 6), np.int32),
        net.const(1.1, np.float32), net.const(128, np.uint8),
    ]  # fmt: skip
    model = net.model(net.node("QGemm", inputs, domain="com.microsoft", transB=1), dtype="uint8")
    assert kinds(check_model(model, exact=True)) == ["conv"]


def test_matmul_integer_with_scale_behind():
    net = Net()
    x = net.q(net.input((3, 20), "float32"), 0.02, 128, "uint8")
    total = net.node("MatMulInteger", [x, net.const(net.array((20, 7))), net.const(128, np.uint8)])
    real = net.node("Mul", [net.node("Cast", [total], to=1), net.const(0.0002, np.float32)])
    assert kinds(check_model(net.model(net.q(real, 0.05)))) == ["conv"]


@pytest.mark.parametrize("op", ["Add", "Sub"])
def test_an_integer_behind_matmul_integer_is_its_bias(op):
    net = Net()
    x = net.q(net.input((3, 20), "float32"), 0.02, 128, "uint8")
    total = net.node("MatMulInteger", [x, net.const(net.array((20, 7))), net.const(128, np.uint8)])
    moved = net.node(op, [total, net.const(net.rng.integers(5000, 20000, 7), np.int32)])
    real = net.node("Mul", [net.node("Cast", [moved], to=1), net.const(0.0002, np.float32)])
    assert kinds(check_model(net.model(net.q(real, 0.05)))) == ["conv"]


@pytest.mark.parametrize("quantised_between", [False, True])
def test_flattened_image_is_read_as_it_lies(quantised_between):
    net = Net()
    x = net.dq(net.input((1, 4, 6, 6)), 0.031, 7)
    image = net.dq(net.q(net.conv(x, 0.031, (8, 4, 3, 3)), 0.9), 0.9)
    flat = net.node("Flatten", [image])
    if quantised_between:
        flat = net.dq(net.q(flat, 0.9), 0.9)
    weights, _ = net.weights((5, 128), 0)
    graph = check_model(net.model(net.q(net.node("Gemm", [flat, weights], transB=1), 40.0)), exact=True)
    assert kinds(graph) == ["conv", "reshape", "conv"]


def test_flattened_batch_is_read_as_it_lies():
    net = Net()
    x = net.dq(net.input((2, 4, 3, 3)), 0.031, 7)
    image = net.dq(net.q(net.conv(x, 0.031, (8, 4, 2, 2)), 0.9), 0.9)
    flat = net.node("Reshape", [image, net.const([2, -1], np.int64)])
    weights, _ = net.weights((32, 5), None)
    graph = check_model(net.model(net.q(net.node("MatMul", [flat, weights]), 40.0)), exact=True)
    assert kinds(graph) == ["conv", "reshape", "conv"]


@pytest.mark.parametrize("shape", [(1, 1, 5, 20), (2, 3, 5, 20)])
def test_products_of_rank_4_move_no_data(shape):
    net = Net()
    x = net.dq(net.input(shape), 0.04, -9)
    left, right = (net.dq(net.q(net.node("MatMul", [x, net.weights((20, 7), 1)[0]]), 0.7, 5), 0.7, 5) for _ in range(2))
    graph = check_model(net.model(net.q(net.node("Add", [left, right]), 1.0, 3)))
    assert "permute" not in kinds(graph)


def test_a_product_of_rows_that_lie_between_others():
    """As of states side by side: the matrix is read in two axes, and the result has three."""
    net = Net()
    x = net.dq(net.input((6, 2, 3, 8)), 0.031, 7)
    x = net.node("Reshape", [net.node("Transpose", [x], perm=[0, 2, 1, 3]), net.const([6, 3, 16], np.int64)])
    check_model(net.model(net.q(net.node("MatMul", [x, net.weights((16, 5), 1)[0]]), 0.3)), exact=True)
