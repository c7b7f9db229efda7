"""The network and its gradient, in NumPy.

    conv1 3x3 1→8, relu
    conv2 3x3 stride 2 8→24, relu ─┬─ conv3 3x3 24→24 ─ add, relu
                                   └────────────────────┘
    maxpool 2x2
    fc 96→10

Feature maps are [N, C, H, W] and convolutions pad by one on every side: 8x8 after conv1, 4x4 after conv2 and
conv3, 2x2 after pooling. One image costs 116,160 multiply-accumulates.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Array = NDArray[np.float32]
Parameters = dict[str, Array]

# name: (input channels, output channels, stride)
CONVOLUTIONS = {"conv1": (1, 8, 1), "conv2": (8, 24, 2), "conv3": (24, 24, 1)}
FC_INPUTS, FC_OUTPUTS = 96, 10
KERNEL = 3
PAD = 1


def initial_parameters(rng: np.random.Generator) -> Parameters:
    """Draw He-initialised weights; biases are zero. Keys are `<layer>.weight` and `<layer>.bias`."""
    parameters: Parameters = {}
    for name, (inputs, outputs, _) in CONVOLUTIONS.items():
        parameters[f"{name}.weight"] = _he(rng, (outputs, inputs, KERNEL, KERNEL))
        parameters[f"{name}.bias"] = np.zeros(outputs, np.float32)
    parameters["fc.weight"] = _he(rng, (FC_OUTPUTS, FC_INPUTS))
    parameters["fc.bias"] = np.zeros(FC_OUTPUTS, np.float32)
    return parameters


def logits(parameters: Parameters, images: Array) -> Array:
    """Return the class scores [N, 10] of images [N, 1, 8, 8]."""
    return _forward(parameters, images)[0]


def loss_and_gradient(parameters: Parameters, images: Array, labels: NDArray[np.int64]) -> tuple[float, Parameters]:
    """Return the mean cross-entropy of a batch and its gradient, which has the keys of `parameters`."""
    scores, kept = _forward(parameters, images)
    rows = np.arange(len(labels))
    shifted = scores - scores.max(axis=1, keepdims=True)
    probabilities = np.exp(shifted) / np.exp(shifted).sum(axis=1, keepdims=True)
    loss = float(-np.log(probabilities[rows, labels] + 1e-12).mean())

    d_scores = probabilities
    d_scores[rows, labels] -= 1
    d_scores /= np.float32(len(labels))

    gradient: Parameters = {"fc.weight": d_scores.T @ kept["flat"], "fc.bias": d_scores.sum(axis=0)}
    d_pooled = (d_scores @ parameters["fc.weight"]).reshape(kept["pooled"].shape)
    d_sum = _max_pool_backward(d_pooled, kept["sum"], kept["pooled"]) * (kept["sum"] > 0)
    d_conv3_input = _conv_backward("conv3", parameters, kept["map2"], d_sum, gradient)
    d_map2 = (d_sum + d_conv3_input) * (kept["map2"] > 0)
    d_map1 = _conv_backward("conv2", parameters, kept["map1"], d_map2, gradient) * (kept["map1"] > 0)
    _conv_backward("conv1", parameters, images, d_map1, gradient)
    return loss, gradient


def _forward(parameters: Parameters, images: Array) -> tuple[Array, dict[str, Array]]:
    """Return the scores and the feature maps that the gradient needs (each after its relu)."""
    map1 = np.maximum(_conv("conv1", parameters, images), 0)
    map2 = np.maximum(_conv("conv2", parameters, map1), 0)
    total = np.maximum(map2 + _conv("conv3", parameters, map2), 0)
    pooled = _pool_windows(total).max(axis=(3, 5))
    flat = pooled.reshape(len(images), -1)
    scores = flat @ parameters["fc.weight"].T + parameters["fc.bias"]
    return scores, {"map1": map1, "map2": map2, "sum": total, "pooled": pooled, "flat": flat}


def _he(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    fan_in = np.prod(shape[1:])
    return (rng.standard_normal(shape) * np.sqrt(2 / fan_in)).astype(np.float32)


def _windows(inputs: Array, stride: int) -> Array:
    """Return the padded input's kernel windows, [N, C, H', W', 3, 3]."""
    padded = np.pad(inputs, ((0, 0), (0, 0), (PAD, PAD), (PAD, PAD)))
    return sliding_window_view(padded, (KERNEL, KERNEL), axis=(2, 3))[:, :, ::stride, ::stride]


def _conv(name: str, parameters: Parameters, inputs: Array) -> Array:
    windows = _windows(inputs, CONVOLUTIONS[name][2])
    outputs = np.tensordot(windows, parameters[f"{name}.weight"], axes=((1, 4, 5), (1, 2, 3)))
    return (outputs + parameters[f"{name}.bias"]).transpose(0, 3, 1, 2)


def _conv_backward(name: str, parameters: Parameters, inputs: Array, d_outputs: Array, gradient: Parameters) -> Array:
    """Enter the layer's two gradients into `gradient` and return the gradient of its input."""
    stride = CONVOLUTIONS[name][2]
    gradient[f"{name}.bias"] = d_outputs.sum(axis=(0, 2, 3))
    gradient[f"{name}.weight"] = np.tensordot(d_outputs, _windows(inputs, stride), axes=((0, 2, 3), (0, 2, 3)))

    d_windows = np.tensordot(d_outputs, parameters[f"{name}.weight"], axes=((1,), (0,)))  # [N, H', W', C, 3, 3]
    batch, channels, height, width = inputs.shape
    rows, columns = d_outputs.shape[2:]
    d_padded = np.zeros((batch, channels, height + 2 * PAD, width + 2 * PAD), np.float32)
    for ky in range(KERNEL):
        for kx in range(KERNEL):
            target = d_padded[:, :, ky : ky + rows * stride : stride, kx : kx + columns * stride : stride]
            target += d_windows[..., ky, kx].transpose(0, 3, 1, 2)
    return d_padded[:, :, PAD:-PAD, PAD:-PAD]


def _pool_windows(inputs: Array) -> Array:
    """View [N, C, H, W] as 2x2 windows: [N, C, H/2, 2, W/2, 2]."""
    batch, channels, height, width = inputs.shape
    return inputs.reshape(batch, channels, height // 2, 2, width // 2, 2)


def _max_pool_backward(d_pooled: Array, inputs: Array, pooled: Array) -> Array:
    """Send each gradient to the largest element of its window, or in equal parts to several that tie."""
    largest = _pool_windows(inputs) == pooled[:, :, :, np.newaxis, :, np.newaxis]
    share = d_pooled[:, :, :, np.newaxis, :, np.newaxis] / largest.sum(axis=(3, 5), keepdims=True)
    return (largest * share).reshape(inputs.shape).astype(np.float32)
