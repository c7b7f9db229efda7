"""Where tensors of ONNX have their channels last, operators on them leave them so, and nothing is permuted."""

import numpy as np
import pytest

from compiler import ir
from tests.support.golden_check import check_model
from tests.support.onnx_models import Net

SHAPE = (1, 5, 6, 7)
P = (0.05, 3)


def stored(net, real):
    return net.dq(net.q(real, *P), *P)


def permutes(net, *results) -> list[ir.Permute]:
    graph = check_model(net.model(*(net.q(result, *P) for result in results)))
    return [op for op in graph.ops if isinstance(op, ir.Permute)]


def rows(net, name):
    """A product of matrices, which ends in rows, as an image with channels last."""
    x = net.dq(net.input((30, 8), name=name), *P)
    weights, _ = net.weights((8, 7), None)
    flat = stored(net, net.node("MatMul", [x, weights]))
    return net.node("Reshape", [flat, net.const(SHAPE, np.int64)])


def image(net, name):
    """A convolution, whose result lies as an image."""
    return stored(net, net.conv(net.dq(net.input((1, 8, 6, 7), name=name), *P), P[0], (5, 8, 1, 1)))


OTHERS = {
    "a table": lambda net, x: x,
    "another": lambda net, x: rows(net, "x2"),
    "one value": lambda net, x: net.dq(net.input((1,), name="x2"), *P),
    "a row": lambda net, x: net.dq(net.input((7,), name="x2"), *P),
    "a constant row": lambda net, x: net.dq(net.const(net.array((7,))), *P),
    "a constant": lambda net, x: net.dq(net.const(net.array(SHAPE)), *P),
    "constant rows": lambda net, x: net.dq(net.const(net.array((6, 7))), *P),
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("op", ["Add", "Mul"])
def test_element_by_element(op, other):
    net = Net()
    x = rows(net, "x1")
    assert not permutes(net, net.node(op, [stored(net, net.node("Tanh", [x])), OTHERS[other](net, x)]))


@pytest.mark.parametrize("op", ["Add", "Mul", "Concat"])
def test_an_image_stays_one(op):
    """One operand is permuted, not both, and the result is an image."""
    net = Net()
    axis = {"axis": 3} if op == "Concat" else {}
    assert len(permutes(net, net.node(op, [image(net, "x1"), rows(net, "x2")], **axis))) == 1


def test_joined_and_cut():
    """What a shifted window is made of."""
    net = Net()
    x = rows(net, "x1")
    ends = [
        net.node("Slice", [x, *(net.const([n], np.int64) for n in (low, high, 1))]) for low, high in ((2, 5), (0, 2))
    ]
    moved = stored(net, net.node("Concat", [stored(net, end) for end in ends], axis=1))
    assert not permutes(net, net.node("Add", [moved, x]))


def test_windows_put_back_are_read_as_rows():
    net = Net()
    x = net.dq(net.input((4, 9, 8)), *P)
    weights, _ = net.weights((8, 10), None)
    y = net.node("Reshape", [stored(net, net.node("MatMul", [x, weights])), net.const([1, 2, 2, 3, 3, 10], np.int64)])
    y = net.node("Reshape", [net.node("Transpose", [y], perm=[0, 1, 3, 2, 4, 5]), net.const([1, 6, 6, 10], np.int64)])
    part = net.node("Slice", [y, net.const([0], np.int64), net.const([4], np.int64), net.const([2], np.int64)])
    (move,) = permutes(net, stored(net, part))
    assert move.perm[-1] == 5  # ten channels at a time


def test_equal_permutes_are_made_once():
    net = Net()
    x = rows(net, "x1")
    results = [net.conv(x, P[0], (4, 5, 1, 1)), net.conv(x, P[0], (6, 5, 3, 3))]
    assert len(permutes(net, *results)) == 1
