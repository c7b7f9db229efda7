"""What is a function of one tensor is one table, which equals onnxruntime for all 256 bytes, and a part of what makes
that tensor."""

import numpy as np
import pytest

from compiler import ir
from compiler.frontend import import_model
from compiler.plan.lowered_model import LoweredModel
from compiler.plan.options import Options
from hw.contract.params import preset
from tests.support.golden_check import check_model, kinds
from tests.support.onnx_models import Net

ALL_VALUES = (1, 4, 16, 16)
TYPES = {"int8": (-128, 5), "uint8": (0, 131)}  #: zero points of what is never negative, and of what may be


class Stored(Net):
    """A network that stores each result: every method returns a dequantised tensor."""

    def __init__(self, dtype: str):
        super().__init__(opset=14)
        self.dtype, (self.low, self.middle) = dtype, TYPES[dtype]

    def quantised(self, real, scale, zero=None):
        return self.q(real, scale, self.middle if zero is None else zero, self.dtype)

    def stored(self, real, scale, zero=None):
        return self.dq(self.quantised(real, scale, zero), scale, self.middle if zero is None else zero, self.dtype)

    def given(self, shape=ALL_VALUES, name="x"):
        return self.dq(self.input(shape, self.dtype, name), 0.047, self.middle, self.dtype)

    def scalar(self, value, scale):
        return self.dq(self.const(np.array(value, self.dtype)), scale, 0, self.dtype)


def silu(net, x):
    return net.node("Mul", [x, net.stored(net.node("Sigmoid", [x]), 1 / 256, net.low)])


def hardswish(net, x):
    return net.node("Mul", [net.stored(net.node("HardSigmoid", [x], alpha=1 / 6), 1 / 255, net.low), x])


def written_hardswish(net, x):
    shifted = net.stored(net.node("Add", [x, net.scalar(3, 1.0)]), 0.06)
    clipped = net.node("Clip", [shifted, net.const(0.0, np.float32), net.const(6.0, np.float32)])
    product = net.stored(net.node("Mul", [x, net.stored(clipped, 6 / 255, net.low)]), 0.2)
    return net.node("Div", [product, net.scalar(6, 1.0)])


def gelu(net, x):
    inner = net.stored(net.node("Div", [x, net.scalar(113, 0.0125)]), 0.034)
    erf = net.stored(net.node("Erf", [inner]), 1 / 127)
    sum_ = net.stored(net.node("Add", [erf, net.scalar(100, 0.01)]), 2 / 255, net.low)
    return net.node("Mul", [net.stored(net.node("Mul", [x, sum_]), 0.08), net.scalar(50, 0.01)])


def squared(net, x):
    moved = net.node("Reshape", [x, net.const([1, 1024], np.int64)])
    return net.node("Mul", [net.stored(net.node("Tanh", [moved]), 0.008), moved])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("function", [silu, hardswish, written_hardswish, gelu, squared])
def test_a_function_of_one_tensor_is_one_table(function, dtype):
    net = Stored(dtype)
    model = net.model(net.quantised(function(net, net.given()), 0.04), dtype=dtype)
    graph = check_model(model, exact=True)
    assert [kind for kind in kinds(graph) if kind not in ("reshape", "permute")] == ["table"] * (
        1 + (function in (gelu, written_hardswish))  # the last factor is a table of the product, joined when layered
    )


@pytest.mark.parametrize("function", [silu, hardswish, written_hardswish, gelu])
def test_what_makes_the_tensor_takes_the_table(function):
    net = Stored("int8")
    x = net.stored(net.conv(net.given((1, 8, 5, 6)), 0.047, (12, 8, 1, 1)), 0.05)
    graph = check_model(net.model(net.quantised(function(net, x), 0.04)), exact=True)
    assert [layer.kind for layer in layers(graph)] == ["conv+table"]


def layers(graph):
    return LoweredModel.of(graph, preset("base"), Options()).layers


@pytest.mark.parametrize("function", [silu, gelu])
@pytest.mark.parametrize("bias", [False, True])
def test_through_the_reshapes_around_a_product(function, bias):
    """A MatMul with a bias reaches the compiler as Reshape, Gemm, Reshape, or as it was written."""
    net = Stored("int8")
    x = net.given((1, 24, 16))
    weights, scale = net.weights((16, 40), None)
    if bias:
        flat = net.node("Reshape", [x, net.const([24, 16], np.int64)])
        product = net.node("Gemm", [flat, weights, net.bias(40, np.float32(0.047) * scale)])
        product = net.node("Reshape", [net.stored(product, 0.09), net.const([1, 24, 40], np.int64)])
    else:
        product = net.stored(net.node("MatMul", [x, weights]), 0.09)
    graph = check_model(net.model(net.quantised(function(net, product), 0.05)))
    assert [layer.kind for layer in layers(graph)] == ["conv+table"]


@pytest.mark.parametrize("reader", ["operator", "output"])
def test_a_step_that_somebody_else_reads_stays(reader):
    net = Stored("int8")
    x = net.given()
    gate = net.quantised(net.node("Sigmoid", [x]), 1 / 256, -128)
    real = net.dq(gate, 1 / 256, -128)
    result = net.quantised(net.node("Mul", [x, real]), 0.04)
    other = gate if reader == "output" else net.quantised(net.node("Add", [real, net.given(name="x2")]), 0.05)
    graph = check_model(net.model(result, other))
    assert sum(isinstance(op, ir.Eltwise) for op in graph.ops) == (1 if reader == "output" else 2)


def test_a_tensor_times_a_function_of_its_mean_stays():
    net = Stored("int8")
    x = net.given()
    mean = net.stored(net.node("GlobalAveragePool", [x]), 0.02)
    gate = net.stored(net.node("Sigmoid", [mean]), 1 / 256, -128)
    graph = import_model(net.model(net.quantised(net.node("Mul", [x, gate]), 0.04)))
    assert kinds(graph) == ["pool", "table", "eltwise"]


def test_a_product_of_two_tensors_stays():
    net = Stored("int8")
    x, gate = net.given(), net.stored(net.node("Sigmoid", [net.given(name="x2")]), 1 / 256, -128)
    graph = check_model(net.model(net.quantised(net.node("Mul", [x, gate]), 0.04)))
    assert kinds(graph) == ["table", "eltwise"]
