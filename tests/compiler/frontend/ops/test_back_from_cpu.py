"""8-bit results of the CPU go on as 8-bit tensors on the accelerator."""

import numpy as np
import pytest

from tests.support.golden_check import check_model
from tests.support.onnx_models import Net


def qlinear_conv(net, x, scale, shape, out, dtype):
    given = [(scale, np.float32), (3, dtype), (net.array(shape), np.int8), (0.0123, np.float32), (0, np.int8)]
    return net.node("QLinearConv", [x, *(net.const(*each) for each in [*given, (out, np.float32), (3, dtype)])])


ON_CPU = {
    "GatherElements": lambda net, x: net.node(
        "GatherElements", [x, net.const(np.broadcast_to([5, 0, 3], (1, 8, 6, 3)), np.int64)], axis=3
    ),
    "Slice": lambda net, x: net.node("Slice", [x, *(net.const([each], np.int64) for each in (5, -7, 2, -1))]),
    "Where": lambda net, x: net.node("Where", [net.const(np.ones((1, 1, 1, 1), bool)), x, x]),
    "CumSum": lambda net, x: net.q(net.node("CumSum", [net.dq(x, 0.9, 3), net.const(2, np.int64)]), 0.9, 3),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", [name for name in ON_CPU if name != "CumSum"])
def test_into_qoperator_form(name, dtype):
    net = Net()
    y = qlinear_conv(net, net.input((1, 4, 8, 8), dtype), 0.031, (8, 4, 3, 3), 0.9, dtype)
    y = qlinear_conv(net, ON_CPU[name](net, y), 0.9, (8, 8, 1, 1), 9.0, dtype)
    graph = check_model(net.model(y, dtype=dtype), fallback=True, exact=True)
    assert [op.kind for op in graph.ops] == ["conv", "host", "conv"]


@pytest.mark.parametrize("name", ON_CPU)
def test_into_qdq_form(name):
    net = Net()
    y = qlinear_conv(net, net.input((1, 4, 8, 8)), 0.031, (8, 4, 3, 3), 0.9, np.int8)
    y = net.dq(ON_CPU[name](net, y), 0.9, 3)
    graph = check_model(net.model(net.q(net.conv(y, 0.9, (8, 8, 1, 1)), 9.0)), fallback=True, exact=True)
    assert [op.kind for op in graph.ops] == ["conv", "host", "conv"]


def test_int32_results_stay_on_the_cpu():
    net = Net()
    y = net.node("Cast", [net.input((1, 4, 8, 8))], to=6)
    y = net.node("Cast", [net.node("Abs", [y])], to=1)
    graph = check_model(net.model(net.q(y, 0.9)), fallback=True)
    assert {op.kind for op in graph.ops} == {"host"}
