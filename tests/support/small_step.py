"""A decoder of one token in 8 bits, one layer of attention over keys and values of the past, small enough to read."""

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.support.onnx_models import Net

HEADS, KEY_HEADS, SIZE, WIDTH, WORDS, POSITIONS = 4, 2, 16, 64, 40, 32
STEP = 0.0517  #: of keys and values


def small_step(
    heads: int = HEADS, key_heads: int = KEY_HEADS, size: int = SIZE, seed: int = 0, *, embedded: bool = False
) -> onnx.ModelProto:  # fmt: skip
    """Return a model ``ids``, ``position``, ``past_key``, ``past_value`` → ``y``, ``key``, ``value``; the dimension
    ``past`` is dynamic. ``embedded``: instead of ``ids`` it is given ``x``, float [1, 1, width]."""
    net = Net(21, seed)
    width = heads * size

    def real(x: str, scale: float) -> str:
        return net.dq(net.q(x, scale), scale)

    def dense(x: str, to: int, scale: float) -> str:
        weights = net.dq(net.const(net.array((width, to), limit=40)), 0.004)
        return real(net.node("MatMul", (x, weights)), scale)

    def apart(x: str, count: int) -> str:
        shaped = net.node("Reshape", (x, net.const(np.array([1, 1, count, size]))))
        return net.node("Transpose", (shaped,), perm=[0, 2, 1, 3])

    def looked_up(rows: int, index: str) -> str:
        return net.dq(net.node("Gather", (net.const(net.array((rows, width))), index)), 0.02)

    def shared(x: str, *tail: int) -> str:
        if heads == key_heads:
            return x
        wide = net.node("Unsqueeze", (x, net.const(np.array([2]))))
        ones = net.const(np.array([1, 1, heads // key_heads, 1, 1]))
        wide = net.node("Expand", (wide, ones))
        return net.node("Reshape", (wide, net.const(np.array([1, heads, -1, size]))))

    token = net.input((1, 1, width), "float32", "x") if embedded else net.input((1, 1), "int64", "ids")
    position = net.input((1, 1), "int64", "position")
    shape = (1, key_heads, "past", size)
    pasts = [net.input(shape, "float32", name) for name in ("past_key", "past_value")]
    token = real(token, 0.02) if embedded else looked_up(WORDS, token)
    x = real(net.node("Add", (token, looked_up(POSITIONS, position))), 0.0411)
    query = apart(dense(x, width, STEP), heads)
    states = []
    for past in pasts:
        new = apart(dense(x, key_heads * size, STEP), key_heads)
        states.append(real(net.node("Concat", (real(past, STEP), new), axis=2), STEP))
    keys = net.node("Transpose", (shared(states[0]),), perm=[0, 1, 3, 2])
    scores = real(net.node("MatMul", (query, keys)), 0.0613)
    weights = net.dq(net.q(net.node("Softmax", (scores,), axis=-1), 1 / 256, -128), 1 / 256, -128)
    mixed = real(net.node("MatMul", (weights, shared(states[1]))), STEP)
    mixed = net.node(
        "Reshape", (net.node("Transpose", (mixed,), perm=[0, 2, 1, 3]), net.const(np.array([1, 1, width])))
    )
    y = dense(mixed, WORDS, 0.0973)
    names = {y: "y", states[0]: "key", states[1]: "value"}
    for node in net.nodes:
        for ends in (node.input, node.output):
            ends[:] = [names.get(name, name) for name in ends]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 1, WORDS))]
    grown = (1, key_heads, "past + 1", size)
    outputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, grown) for name in ("key", "value")]
    graph = helper.make_graph(net.nodes, "small_step", net.inputs, outputs, net.initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model)
    return model
