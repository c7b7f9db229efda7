"""The verifier names operator and tensor of what is wrong."""

import dataclasses

import numpy as np
import pytest

from compiler.frontend import import_model
from compiler.ir import CompileError, Graph
from compiler.verify import verify
from tests.support.onnx_models import Net


def _graph() -> Graph:
    net = Net()
    x = net.dq(net.input((1, 3, 6, 6)), 0.031, 7)
    y = net.dq(net.q(net.conv(x, 0.031, (8, 3, 3, 3)), 0.9), 0.9)
    pooled = net.node("MaxPool", [y], kernel_shape=[2, 2], strides=[2, 2])
    return import_model(net.model(net.q(pooled, 0.9)))


def _break_order(graph):
    graph.ops.reverse()


def _break_name(graph):
    graph.ops[1].name = graph.ops[0].name


def _break_tensor(graph):
    graph.ops[1].inputs = ["nowhere"]


def _break_shape(graph):
    graph.tensors[graph.ops[0].output].shape = (1, 5, 4, 8)


def _break_dtype(graph):
    graph.tensors[graph.ops[0].output].dtype = "float32"


def _break_zero_point(graph):
    graph.tensors[graph.ops[0].output].zero_point = 200


def _break_bias(graph):
    graph.ops[0].bias = graph.ops[0].bias.astype(np.int64)


def _break_scale(graph):
    graph.ops[0].requantise.scale = np.ones(3, np.float32)


def _break_clamp(graph):
    graph.ops[0].requantise.hi = 255


def _break_port(graph):
    graph.outputs[0] = dataclasses.replace(graph.outputs[0], shape=(1, 8, 2, 3))


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (_break_order, "read before anything computes it"),
        (_break_name, "two operators have this name"),
        (_break_tensor, "no tensor 'nowhere'"),
        (_break_shape, "expected"),
        (_break_dtype, "is float32"),
        (_break_zero_point, "zero point 200 is not int8"),
        (_break_bias, "bias is int64"),
        (_break_scale, r"not float32 \(1,\) or \(8,\)"),
        (_break_clamp, "not within int8"),
        (_break_port, "does not hold tensor"),
    ],
)
def test_broken_graph(break_it, message):
    graph = _graph()
    verify(graph)
    break_it(graph)
    with pytest.raises(CompileError, match=message):
        verify(graph)
