"""Operators that exporters write, each in a small model, compiled for two machines and run on the fast model: outputs
are those of onnxruntime, and nothing runs on the CPU."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest

from tests.support.fast_run import equals_onnxruntime
from tests.support.onnx_models import Net
from tests.support.sampled import sampled

SHAPE, STORED = (1, 24, 10, 9), (0.9, 3)

Case = Callable[[Net, str], str]  #: makes an operator of the real tensor of SHAPE in front; returns its result


def _ints(net: Net, *values) -> list[str]:
    return [net.const(value, np.int64) for value in values]


def _slice(net: Net, x: str, *bounds) -> str:
    return net.node("Slice", [x, *_ints(net, *bounds)])


def _split(net: Net, x: str, axis: int, number: int, *sizes: int) -> str:
    net.node("Split", [x, *_ints(net, sizes)], outputs=len(sizes), axis=axis)
    return net.nodes[-1].output[number]


def _transposed(net: Net, x: str, weights: tuple[int, ...], **attributes) -> str:
    return net.node("ConvTranspose", [x, net.weights(weights, 1)[0]], **attributes)


CASES: dict[str, Case] = {
    "split of channels": lambda net, x: _split(net, x, 1, 1, 12, 12),
    "split of odd channels": lambda net, x: _split(net, x, 1, 1, 5, 13, 6),
    "split of rows": lambda net, x: _split(net, x, -2, 0, 3, 7),
    "split of columns": lambda net, x: _split(net, x, 3, 1, 4, 5),
    "slice of rows and columns": lambda net, x: _slice(net, x, [1, 2], [-1, 8], [2, 3]),
    "slice of every second pixel": lambda net, x: _slice(net, x, [1, 0], [10, 9], [2, 3], [2, 2]),
    "slice of every third channel": lambda net, x: _slice(net, x, [1], [24], [1], [3]),
    "maximum of an image": lambda net, x: net.node("ReduceMax", [x], axes=[2, 3]),
    "minimum of an image": lambda net, x: net.node("ReduceMin", [x], axes=[2, 3]),
    "minimum of channels": lambda net, x: net.node("ReduceMin", [x], axes=[1]),
    "maximum of columns": lambda net, x: net.node("ReduceMax", [x], axes=[3]),
    "blocks to channels": lambda net, x: net.node("SpaceToDepth", [_slice(net, x, [0], [8], [3])], blocksize=2),
    "channels to blocks": lambda net, x: net.node("DepthToSpace", [x], blocksize=2, mode="DCR"),
    "channels to blocks of each": lambda net, x: net.node("DepthToSpace", [x], blocksize=2, mode="CRD"),
    "largest of three": lambda net, x: net.node("Max", [_split(net, x, 1, number, 8, 8, 8) for number in range(3)]),
    "zero channels behind": lambda net, x: net.node("Pad", [x, *_ints(net, [0, 0, 0, 0, 0, 24, 0, 0])]),
    "a mirror around": lambda net, x: net.node("Pad", [x, *_ints(net, [0, 0, 1, 2, 0, 0, 3, 1])], mode="reflect"),
    "nearest pixels": lambda net, x: net.node("Resize", [x, "", net.const([1, 1, 2, 3], "float32")], mode="nearest"),
    "nearest pixels of fewer": lambda net, x: net.node("Resize", [x, "", net.const([1, 1, 0.7, 1.5], "float32")]),
    "several indices": lambda net, x: net.node("Gather", [x, *_ints(net, [3, 2, 20, 21, 22])], axis=1),
    "tiles": lambda net, x: net.node("Tile", [x, *_ints(net, [1, 2, 1, 2])]),
    "an expanded pixel": lambda net, x: net.node(
        "Expand", [_slice(net, x, [3, 4], [4, 5], [2, 3]), *_ints(net, [1, 24, 7, 5])]
    ),
    "a triangle": lambda net, x: net.node("Where", [net.const(np.tri(10, 9) > 0), x, net.const(-1.5, "float32")]),
    "edges around": lambda net, x: net.node("Pad", [x, *_ints(net, [0, 0, 1, 2, 0, 0, 3, 1])], mode="edge"),
}
SUMS: dict[str, Case] = {
    "sum of an image": lambda net, x: net.node("ReduceSum", [x, *_ints(net, [2, 3])]),
    "sum of channels": lambda net, x: net.node("ReduceSum", [x, *_ints(net, [1])]),
    "slopes of channels": lambda net, x: net.node(
        "PRelu", [x, net.const(net.rng.normal(0, 0.4, (24, 1, 1)), "float32")]
    ),
    "transposed convolution": lambda net, x: _transposed(net, x, (24, 6, 2, 2), strides=[2, 2]),
    "transposed convolution of wide channels": lambda net, x: _transposed(
        net, x, (24, 40, 3, 3), strides=[2, 2], pads=[1] * 4, output_padding=[1, 1]
    ),
    "transposed convolution of each channel": lambda net, x: _transposed(
        net, x, (24, 1, 4, 4), strides=[2, 2], pads=[1] * 4, group=24
    ),
    "linear interpolation": lambda net, x: net.node(
        "Resize", [x, "", net.const([1, 1, 2, 4], "float32")], mode="linear"
    ),
    "batch normalisation": lambda net, x: net.node(
        "BatchNormalization",
        [
            x,
            *(
                net.const(net.rng.uniform(low, high, 24), "float32")
                for low, high in ((-2, 2), (-9, 9), (-9, 9), (1, 2))
            ),
        ],
    ),
    "mean of rows": lambda net, x: net.node("ReduceMean", [x], axes=[2]),
    "mean of everything": lambda net, x: net.node("ReduceMean", [x]),
}


def model_of(case: Case, target=STORED, seed: int = 0) -> onnx.ModelProto:
    """A convolution, the operator, and a table behind it, so that the operator stands amid the network."""
    net = Net(seed=seed)
    x = net.dq(net.input((1, 5, *SHAPE[2:])), 0.031, 7)
    y = case(net, net.dq(net.q(net.conv(x, 0.031, (SHAPE[1], 5, 3, 3), pads=[1] * 4), *STORED), *STORED))
    stored = net.dq(net.q(y, *target), *target)
    return net.model(net.q(net.node("LeakyRelu", [stored], alpha=0.1), *target))


@pytest.mark.parametrize("preset", sampled(["tiny", "base"], 1))
@pytest.mark.parametrize("name", CASES)
def test_exact(name, preset):
    equals_onnxruntime(model_of(CASES[name]), preset)


@pytest.mark.parametrize("preset", sampled(["base", "tiny"], 1))
@pytest.mark.parametrize("name", SUMS)
def test_sums_but_for_ties(name, preset):
    equals_onnxruntime(model_of(SUMS[name], (2.7, 5)), preset, least=0.98)
