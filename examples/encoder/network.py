"""The encoder and its gradient, in NumPy.

    embed 25→D: the sum of what stands for the row, for the column and for the patch; it needs no bias
    2 layers of
        multi-head attention, add, layer normalisation
        D→FFN, gelu, FFN→D, add, layer normalisation
    mean over the tokens
    classify D→10

A batch is [N, L, features]: sequences of one length. No token is padding, so there is no mask. Queries are scaled by
1 / √(head size) in their projection (``SCALED``), not between the products of attention.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from examples.encoder.tokens import FEATURES

Array = NDArray[np.float32]
Parameters = dict[str, Array]
Backward = Callable[[Array], Array]  #: gradient of a result → gradient of what it was computed from

WIDTH = 64
HEADS = 4
HIDDEN = 128
LAYERS = 2
CLASSES = 10
EPSILON = 1e-5
PROJECTIONS = ("query", "key", "value")


def initial_parameters(rng: np.random.Generator) -> Parameters:
    """Draw weights [outputs, inputs] with variance 1 / inputs; biases are zero and normalisations neutral. Keys are
    `<layer>.weight` and `<layer>.bias`."""
    parameters: Parameters = {}

    def dense(name: str, inputs: int, outputs: int) -> None:
        parameters[f"{name}.weight"] = (rng.standard_normal((outputs, inputs)) / np.sqrt(inputs)).astype(np.float32)
        parameters[f"{name}.bias"] = np.zeros(outputs, np.float32)

    def norm(name: str) -> None:
        parameters[f"{name}.weight"] = np.ones(WIDTH, np.float32)
        parameters[f"{name}.bias"] = np.zeros(WIDTH, np.float32)

    dense("embed", FEATURES, WIDTH)
    del parameters["embed.bias"]
    for layer in range(LAYERS):
        for name in (*PROJECTIONS, "output"):
            dense(f"layer{layer}.{name}", WIDTH, WIDTH)
        norm(f"layer{layer}.norm1")
        dense(f"layer{layer}.expand", WIDTH, HIDDEN)
        dense(f"layer{layer}.contract", HIDDEN, WIDTH)
        norm(f"layer{layer}.norm2")
        parameters[f"layer{layer}.query.weight"] /= np.float32(np.sqrt(WIDTH // HEADS))
    dense("classify", WIDTH, CLASSES)
    return parameters


def logits(parameters: Parameters, tokens: Array) -> Array:
    """Return the class scores [N, 10] of sequences [N, L, 25]."""
    return _Pass(parameters).scores(tokens)[0]


def loss_and_gradient(parameters: Parameters, tokens: Array, labels: NDArray[np.int64]) -> tuple[float, Parameters]:
    """Return the mean cross-entropy of a batch and its gradient, which has the keys of `parameters`."""
    run = _Pass(parameters)
    scores, backward = run.scores(tokens)
    rows = np.arange(len(labels))
    probabilities = _softmax(scores)
    loss = float(-np.log(probabilities[rows, labels] + 1e-12).mean())
    probabilities[rows, labels] -= 1
    backward(probabilities / np.float32(len(labels)))
    return loss, run.gradient


class _Pass:
    """One pass forward. Each method returns its result and how to go back, which enters gradients of parameters."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self.gradient: Parameters = {}

    def scores(self, tokens: Array) -> tuple[Array, Backward]:
        x, embed = self.dense("embed", tokens)
        layers = []
        for layer in range(LAYERS):
            x, back = self.layer(f"layer{layer}", x)
            layers.append(back)
        length = np.float32(x.shape[1])
        scores, classify = self.dense("classify", x.mean(axis=1))

        def backward(d_scores: Array) -> Array:
            d_x = np.broadcast_to(classify(d_scores)[:, np.newaxis] / length, x.shape)
            for back in reversed(layers):
                d_x = back(d_x)
            return embed(d_x)

        return scores, backward

    def layer(self, name: str, x: Array) -> tuple[Array, Backward]:
        """[N, L, D] → [N, L, D]."""
        attended, attention = self.attention(name, x)
        middle, norm1 = self.norm(f"{name}.norm1", x + attended)
        hidden, expand = self.dense(f"{name}.expand", middle)
        active, slope = _gelu(hidden)
        added, contract = self.dense(f"{name}.contract", active)
        result, norm2 = self.norm(f"{name}.norm2", middle + added)

        def backward(d_result: Array) -> Array:
            d_sum = norm2(d_result)
            d_sum = norm1(d_sum + expand(contract(d_sum) * slope))
            return d_sum + attention(d_sum)

        return result, backward

    def attention(self, name: str, x: Array) -> tuple[Array, Backward]:
        """[N, L, D] → [N, L, D], the projection behind the heads included."""
        projected = [self.dense(f"{name}.{each}", x) for each in PROJECTIONS]
        query, key, value = (_heads(result) for result, _ in projected)
        weights = _softmax(query @ key.swapaxes(2, 3))
        result, output = self.dense(f"{name}.output", _joined(weights @ value))

        def backward(d_result: Array) -> Array:
            d_mixed = _heads(output(d_result))
            d_weights = d_mixed @ value.swapaxes(2, 3)
            d_products = weights * (d_weights - (d_weights * weights).sum(axis=3, keepdims=True))
            gradients = d_products @ key, d_products.swapaxes(2, 3) @ query, weights.swapaxes(2, 3) @ d_mixed
            d_query, d_key, d_value = (
                back(_joined(each)) for (_, back), each in zip(projected, gradients, strict=True)
            )
            return d_query + d_key + d_value

        return result, backward

    def dense(self, name: str, x: Array) -> tuple[Array, Backward]:
        """[..., inputs] → [..., outputs]."""
        weight, bias = self.parameters[f"{name}.weight"], self.parameters.get(f"{name}.bias")
        flat = x.reshape(-1, x.shape[-1])
        result = flat @ weight.T if bias is None else flat @ weight.T + bias

        def backward(d_result: Array) -> Array:
            d_flat = d_result.reshape(-1, len(weight))
            self.gradient[f"{name}.weight"] = d_flat.T @ flat
            if bias is not None:
                self.gradient[f"{name}.bias"] = d_flat.sum(axis=0)
            return (d_flat @ weight).reshape(x.shape)

        return result.reshape(*x.shape[:-1], len(weight)), backward

    def norm(self, name: str, x: Array) -> tuple[Array, Backward]:
        """Layer normalisation over the last axis."""
        weight, bias = self.parameters[f"{name}.weight"], self.parameters[f"{name}.bias"]
        centred = x - x.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(EPSILON))
        normal = centred / deviation

        def backward(d_result: Array) -> Array:
            self.gradient[f"{name}.weight"] = (d_result * normal).sum(axis=(0, 1))
            self.gradient[f"{name}.bias"] = d_result.sum(axis=(0, 1))
            d_normal = d_result * weight
            along = (d_normal * normal).mean(axis=-1, keepdims=True)
            return (d_normal - d_normal.mean(axis=-1, keepdims=True) - normal * along) / deviation

        return normal * weight + bias, backward


def _heads(x: Array) -> Array:
    """[N, L, D] → [N, heads, L, D / heads]."""
    return x.reshape(*x.shape[:2], HEADS, -1).swapaxes(1, 2)


def _joined(x: Array) -> Array:
    """[N, heads, L, D / heads] → [N, L, D]."""
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


def _softmax(x: Array) -> Array:
    shifted = np.exp(x - x.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def _gelu(x: Array) -> tuple[Array, Array]:
    """Gelu in its form with tanh, and its slope."""
    square = x * x
    curve = np.tanh(np.float32(np.sqrt(2 / np.pi)) * x * (1 + np.float32(0.044715) * square))
    inner = np.float32(np.sqrt(2 / np.pi)) * (1 + np.float32(3 * 0.044715) * square)
    half = np.float32(0.5)
    return half * x * (1 + curve), half * (1 + curve) + half * x * (1 - curve * curve) * inner
