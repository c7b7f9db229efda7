"""Concatenations of concatenations: the parts are made where they belong in the outermost one."""

from compiler import ir
from compiler.frontend import import_model
from compiler.plan.layers.lower import lower
from compiler.plan.layers.step import ModelStep
from compiler.plan.memory.sharing import BufferSharing
from hw.contract.params import preset
from tests.support.onnx_models import Net


def test_parts_of_parts_are_in_place():
    net = Net(16)
    x = net.dq(net.q(net.conv(net.dq(net.input((1, 6, 5, 4)), 0.03, 7), 0.03, (6, 6, 1, 1)), 0.9), 0.9)
    y = net.node("ConvTranspose", [x, net.weights((6, 40, 4, 4), 1)[0]], strides=[2, 2], pads=[1] * 4)
    y = net.dq(net.q(y, 0.31, 3), 0.31, 3)
    graph = import_model(net.model(net.q(net.conv(y, 0.31, (4, 40, 1, 1)), 40.0)))
    params = preset("tiny")
    steps = [ModelStep.alone(layer) for layer in lower(graph, params)]
    inside = BufferSharing(graph, steps, params).inside
    joined = [op for op in graph.ops if isinstance(op, ir.Concat)]
    assert len(joined) == 3
    assert {name: op.output for op in joined for name in op.inputs} == {name: at for name, (at, _) in inside.items()}
