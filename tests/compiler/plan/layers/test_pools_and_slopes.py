"""What pools, slopes and slices become, on one engine and on two: the bytes of the reference."""

import numpy as np
import pytest

from compiler.frontend import import_model
from hw.contract.params import preset
from tests.support.graphs import check
from tests.support.onnx_models import Net

TINY, BASE = preset("tiny"), preset("base")
TWO = TINY.replace(name="two", engines=2)


def graph_of(name: str):
    """A convolution, an operator, and another convolution."""
    net = Net(16)
    x = net.dq(net.node("Transpose", [net.input((1, 9, 7, 5))], perm=[0, 3, 1, 2]), 0.031, 7)
    x = net.dq(net.q(net.conv(x, 0.031, (20, 5, 3, 3), pads=[1] * 4), 0.9, 3), 0.9, 3)
    if name == "minimum":
        y = net.node("ReduceMin", [x], axes=[3])
    elif name == "sum":
        y = net.node("ReduceSum", [x, net.const([2], np.int64)])
    elif name == "slope":
        y = net.node("PRelu", [x, net.const(net.rng.normal(0, 1, (20, 1, 1)), np.float32)])
    else:
        y = net.node("Slice", [x, *(net.const(each, np.int64) for each in ([1, 1], [9, 7], [2, 3], [2, 3]))])
    y = net.dq(net.q(y, 0.9, 3), 0.9, 3)
    return import_model(net.model(net.q(net.conv(y, 0.9, (6, 20, 1, 1)), 40.0)))


@pytest.mark.parametrize("params, engines", [(TINY, 1), (TWO, 2), (BASE, 1)])
@pytest.mark.parametrize("name", ["minimum", "sum", "slope", "slice"])
def test_compiled(name, params, engines):
    check(graph_of(name), params, engines=engines)
