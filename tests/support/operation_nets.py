"""Small quantised networks with attentions of different head sizes over a dynamic length, for tests."""

from collections.abc import Sequence

import numpy as np
import onnx

from tests.support.onnx_models import Net

X = (0.02, 3)  #: scale and zero point of what is stored, but scores and weights
_WEIGHTS = (1 / 255, -128)


def attention_net(attentions: Sequence[tuple[int, int]], width: int, dimension="L", seed: int = 0) -> onnx.ModelProto:
    """Over int8 (1, L, ``width``): an attention for each of ``attentions`` (heads, head size), with products with
    weights before it, and one product with weights behind all."""
    net = Net(seed=seed)
    x, channels = net.dq(net.input((1, dimension, width)), *X), width
    for heads, size in attentions:
        query, key, value = (_dense(net, x, channels, heads * size) for _ in range(3))
        x, channels = attention(net, query, key, value, heads, size), heads * size
    return net.model(net.q(_product(net, x, channels, width), *X))


def attention(net: Net, query: str, key: str, value: str, heads: int, size: int) -> str:
    """Scores, softmax and sums, as exporters write them, of dequantised (1, L, heads * size)."""
    split = net.const([0, -1, heads, size], np.int64)
    turned = [
        net.node("Transpose", [net.node("Reshape", [x, split])], perm=perm)
        for x, perm in zip((query, key, value), ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)), strict=True)
    ]
    root = size**0.5
    products = _stored(net, net.node("MatMul", turned[:2]), (root / 20, 0))
    scores = _stored(net, net.node("Div", [products, net.const(root, np.float32)]), (1 / 20, 0))
    weights = _stored(net, net.node("Softmax", [scores], axis=-1), _WEIGHTS)
    mixed = _stored(net, net.node("MatMul", [weights, turned[2]]), (0.01, 3))
    joined = net.const([0, -1, heads * size], np.int64)
    return net.node("Reshape", [net.node("Transpose", [mixed], perm=[0, 2, 1, 3]), joined])


def _dense(net: Net, x: str, inputs: int, outputs: int) -> str:
    return _stored(net, _product(net, x, inputs, outputs), X)


def _product(net: Net, x: str, inputs: int, outputs: int) -> str:
    weights = net.rng.integers(-127, 128, (inputs, outputs)).astype(np.int8)
    return net.node("MatMul", [x, net.dq(net.const(weights), 0.0123 / inputs**0.5)])


def _stored(net: Net, x: str, quantisation: tuple[float, int]) -> str:
    return net.dq(net.q(x, *quantisation), *quantisation)
