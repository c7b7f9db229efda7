"""Models that are channels last outside: their Transposes become the layout in memory, on every way in and out."""

import itertools

import pytest

from tests.support.golden_check import check_model
from tests.support.onnx_models import Net

FIRST, LAST = [0, 3, 1, 2], [0, 2, 3, 1]


def layers(graph):
    return [op.kind for op in graph.ops]


def channels_last(dtype, quantised_first=True):
    net = Net()
    x = net.input((1, 8, 6, 4), dtype)
    if dtype != "float32":
        x = net.dq(x, 0.031)
    elif quantised_first:
        x = net.dq(net.q(x, 0.031), 0.031)
    x = net.node("Transpose", [x], perm=FIRST)
    x = net.dq(net.q(x, 0.031), 0.031)
    x = net.dq(net.q(net.conv(x, 0.031, (8, 4, 3, 3)), 0.9), 0.9)
    return net, net.node("Transpose", [net.dq(net.q(net.conv(x, 0.9, (8, 8, 3, 3)), 9.0), 9.0)], perm=LAST)


@pytest.mark.parametrize("dtype, quantised_first", [("int8", True), ("float32", True), ("float32", False)])
def test_no_permutation_is_left(dtype, quantised_first):
    net, y = channels_last(dtype, quantised_first)
    graph = check_model(net.model(net.q(y, 9.0)), exact=True)
    assert layers(graph) == ["conv", "conv"]


def test_between_layers():
    net, y = channels_last("int8")
    y = net.dq(net.q(net.node("Relu", [net.dq(net.q(y, 9.0), 9.0)]), 9.0), 9.0)
    y = net.node("Transpose", [y], perm=FIRST)
    graph = check_model(net.model(net.q(net.conv(y, 9.0, (8, 8, 1, 1)), 90.0)), exact=True)
    assert layers(graph) == ["conv", "conv", "table", "conv"]


@pytest.mark.parametrize("first, second", list(itertools.product(itertools.permutations(range(3)), repeat=2)))
def test_any_order_of_a_float_input(first, second):
    net = Net()
    x = net.input((4, 6, 5), "float32")
    for perm in (first, second):
        x = net.node("Transpose", [x], perm=perm)
    x = net.dq(net.q(x, 0.02), 0.02)
    assert "host" not in layers(check_model(net.model(net.q(net.node("Relu", [x]), 0.01)), exact=True))


def test_a_float_input_that_others_read_goes_to_the_host():
    net = Net()
    x = net.input((1, 8, 8, 4), "float32")
    moved = net.node("Transpose", [x], perm=FIRST)
    y = net.q(net.conv(net.dq(net.q(moved, 0.031), 0.031), 0.031, (8, 4, 3, 3)), 0.9)
    other = net.q(net.node("ReduceMean", [moved], axes=[2, 3], keepdims=0), 0.02)
    assert "host" in layers(check_model(net.model(y, other), fallback=True))
