"""The NumPy reference against arithmetic written out in loops, and its errors."""

import numpy as np
import pytest

from compiler import reference
from compiler.frontend import import_model
from compiler.ir import Conv, Eltwise, Graph, Pad, Pool, Requantisation, Table, Tensor
from tests.support.onnx_models import Net


def _graph(*tensors: Tensor) -> Graph:
    return Graph("g", {tensor.name: tensor for tensor in tensors})


def _round(total: int, scale: float, zero: int, lo: int = -128, hi: int = 127) -> int:
    return int(np.clip(np.rint(np.float32(total) * np.float32(scale)) + zero, lo, hi))


def test_convolution_by_loops():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (1, 5, 6, 4)).astype(np.uint8)
    weights = rng.integers(-128, 128, (6, 3, 2, 2)).astype(np.int8)
    scale = rng.uniform(0.001, 0.01, 6).astype(np.float32)
    bias = rng.integers(-500, 500, 6).astype(np.int32)
    op = Conv(
        "c", ["x"], "y", weights=weights, weight_zero_point=3, bias=bias,
        requantise=Requantisation(scale, -7, -100, 90), strides=(2, 1), pads=(1, 0, 1, 2), dilations=(1, 2), groups=2,
    )  # fmt: skip
    graph = _graph(Tensor("x", x.shape, "uint8", 1.0, 130), Tensor("y", (1, 3, 6, 6), "int8", 1.0, -7))
    given = reference.run_op(op, graph, {"x": x})["y"]
    for row in range(3):
        for column in range(6):
            for channel in range(6):
                total = int(bias[channel])
                for i in range(3):
                    for j in range(2):
                        y, z = row * 2 + i - 1, column + 2 * j
                        if 0 <= y < 5 and 0 <= z < 6:
                            group = channel // 3 * 2
                            taps = x[0, y, z, group : group + 2].astype(int) - 130
                            total += int(taps @ (weights[channel, i, j].astype(int) - 3))
                assert given[0, row, column, channel] == _round(total, scale[channel], -7, -100, 90)


@pytest.mark.parametrize("include", [False, True])
def test_average_by_loops(include):
    x = np.random.default_rng(0).integers(-128, 128, (1, 5, 5, 3)).astype(np.int8)
    how = Requantisation(np.array([0.7], np.float32), 4, -128, 127)
    op = Pool("p", ["x"], "y", "avg", (3, 3), (2, 2), (1, 1, 1, 1), how, include, bias=2)
    graph = _graph(Tensor("x", x.shape, "int8", 1.0, -5), Tensor("y", (1, 3, 3, 3), "int8", 1.0, 4))
    given = reference.run_op(op, graph, {"x": x})["y"]
    for row in range(3):
        for column in range(3):
            rows = slice(max(0, 2 * row - 1), 2 * row + 2)
            columns = slice(max(0, 2 * column - 1), 2 * column + 2)
            part = x[0, rows, columns].astype(int) + 5
            count = 9 if include else part[..., 0].size
            for channel in range(3):
                total = int(part[..., channel].sum()) + 2 * count
                wanted = _round(total, np.float32(0.7) / np.float32(count), 4)
                assert given[0, row, column, channel] == wanted


def test_padding_never_wins_a_maximum():
    x = np.full((1, 2, 2, 1), -128, np.int8)
    how = Requantisation(np.ones(1, np.float32), 0, -128, 127)
    op = Pool("p", ["x"], "y", "max", (3, 3), (1, 1), (1, 1, 1, 1), how)
    graph = _graph(Tensor("x", x.shape, "int8"), Tensor("y", x.shape, "int8"))
    assert (reference.run_op(op, graph, {"x": x})["y"] == -128).all()


def test_ties_round_to_even_and_the_bias_comes_first():
    a = np.array([[1, 2, 3, 5]], np.int8)
    b = np.zeros((1, 4), np.int8)
    graph = _graph(*(Tensor(name, (1, 4), "int8") for name in "aby"))
    half = np.array([0.5], np.float32)
    after = Eltwise("e", ["a", "b"], "y", "add", Requantisation(half, 1, -128, 127))
    before = Eltwise("e", ["a", "b"], "y", "add", Requantisation(half, 0, -128, 127), bias=2)
    assert reference.run_op(after, graph, {"a": a, "b": b})["y"].tolist() == [[1, 2, 3, 3]]
    assert reference.run_op(before, graph, {"a": a, "b": b})["y"].tolist() == [[2, 2, 2, 4]]


def test_table_is_indexed_by_raw_bytes():
    graph = _graph(Tensor("x", (1, 3), "int8"), Tensor("y", (1, 3), "uint8"))
    op = Table("t", ["x"], "y", table=np.arange(256, dtype=np.uint8)[::-1].copy())
    x = np.array([[-1, 0, 1]], np.int8)
    assert reference.run_op(op, graph, {"x": x})["y"].tolist() == [[0, 255, 254]]


def test_padding_uses_the_raw_value():
    graph = _graph(Tensor("x", (1, 1, 1, 1), "int8"), Tensor("y", (1, 1, 3, 1), "int8"))
    op = Pad("p", ["x"], "y", pads=(0, 1, 0, 1), value=0x85)
    assert reference.run_op(op, graph, {"x": np.ones((1, 1, 1, 1), np.int8)})["y"].ravel().tolist() == [-123, 1, -123]


@pytest.mark.parametrize("value", [np.zeros((1, 3, 6, 5), np.int8), np.zeros((1, 3, 6, 6), np.float32)])
def test_inputs_of_wrong_shape_or_type_are_refused(value):
    net = Net()
    x = net.dq(net.input((1, 3, 6, 6)), 0.031, 7)
    graph = import_model(net.model(net.q(net.conv(x, 0.031, (8, 3, 3, 3)), 0.9)))
    with pytest.raises(ValueError, match=r"input 'x' must be int8 \[1, 3, 6, 6\]"):
        reference.run(graph, {"x": value})
