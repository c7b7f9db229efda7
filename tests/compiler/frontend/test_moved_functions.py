"""Functions of one tensor in any position: behind each other, stored in between or not, and in front of what chooses
elements, as quantisers leave them in float."""

import random

import numpy as np
import pytest

from compiler.frontend import UnsupportedModel, import_model
from tests.support.fast_run import equals_onnxruntime
from tests.support.golden_check import check_model, kinds
from tests.support.onnx_models import Net

STORED = (0.05, 7)
SHAPE = (1, 12, 8, 7)


def ints(net: Net, *values) -> list[str]:
    return [net.const(value, np.int64) for value in values]


FUNCTIONS = {
    "LeakyRelu": lambda net, x: net.node("LeakyRelu", [x], alpha=0.1),
    "Elu": lambda net, x: net.node("Elu", [x], alpha=0.7),
    "Clip": lambda net, x: net.node("Clip", [x, net.const(-1.0, np.float32), net.const(4.0, np.float32)]),
    "Relu": lambda net, x: net.node("Relu", [x]),
    "HardSwish": lambda net, x: net.node("HardSwish", [x]),
    "HardSigmoid": lambda net, x: net.node("HardSigmoid", [x], alpha=1 / 6, beta=0.5),
    "PRelu": lambda net, x: net.node("PRelu", [x, net.const([0.2], np.float32)]),
    "SiLU": lambda net, x: net.node("Mul", [x, net.node("Sigmoid", [x])]),
}
MOVES = {
    "Slice": lambda net, x: net.node("Slice", [x, *ints(net, [1, 2], [7, 12], [2, 1])]),
    "Slice with steps": lambda net, x: net.node("Slice", [x, *ints(net, [0], [8], [2], [2])]),
    "Gather": lambda net, x: net.node("Gather", [x, *ints(net, [0, 3, 4, 11])], axis=1),
    "GatherND": lambda net, x: net.node("GatherND", [x, *ints(net, [[0, 3], [0, 5]])]),
    "Tile": lambda net, x: net.node("Tile", [x, *ints(net, [1, 1, 2, 1])]),
    "Expand": lambda net, x: net.node("Expand", [net.node("Slice", [x, *ints(net, [3], [4], [2])]), *ints(net, SHAPE)]),
    "Resize": lambda net, x: net.node("Resize", [x, "", net.const([1, 1, 2, 2], np.float32)], mode="nearest"),
    "Pad of edges": lambda net, x: net.node("Pad", [x, *ints(net, [0, 0, 1, 2, 0, 0, 2, 1])], mode="edge"),
    "mirror": lambda net, x: net.node("Pad", [x, *ints(net, [0, 0, 1, 2, 0, 0, 2, 1])], mode="reflect"),
    "Transpose": lambda net, x: net.node("Transpose", [x], perm=[0, 1, 3, 2]),
    "Split": lambda net, x: (net.node("Split", [x, *ints(net, [5, 7])], outputs=2, axis=1), net.nodes[-1].output[1])[1],
}
OTHERS = {
    "Pad": lambda net, x: net.node("Pad", [x, *ints(net, [0, 0, 1, 2, 0, 0, 2, 1])]),
    "Pad of a value": lambda net, x: net.node(
        "Pad", [x, *ints(net, [0, 0, 1, 2, 0, 0, 2, 1]), net.const(1.5, np.float32)]
    ),
    "wrap": lambda net, x: net.node("Pad", [x, *ints(net, [0, 0, 1, 2, 0, 0, 2, 1])], mode="wrap"),
    "less": lambda net, x: net.node("Pad", [x, *ints(net, [0, 0, -1, 0, 0, 0, 0, -1])]),
    "slopes": lambda net, x: net.node("PRelu", [x, net.const(net.rng.normal(0, 0.4, (12, 1, 1)), np.float32)]),
}  # fmt: skip
STEPS = FUNCTIONS | MOVES


def chain(names, stored: bool, opset: int = 14, steps=STEPS):
    """A model of steps one after the other, stored in 8 bits between them or not."""
    net = Net(opset)
    x = net.dq(net.input(SHAPE), *STORED)
    for name in names[:-1]:
        x = steps[name](net, x)
        x = net.dq(net.q(x, *STORED), *STORED) if stored else x
    return net.model(net.q(steps[names[-1]](net, x), *STORED))


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("function", ["Elu", "HardSwish", "SiLU"])
def test_elements_of_a_function(function, move):
    for names in ((function, move), (move, function), (function, move, "Elu")):
        found = kinds(check_model(chain(names, stored=False)))
        assert "host" not in found and found.count("table") == 1, names


def test_functions_of_both_parts_of_a_function():
    net = Net(14)
    x = net.node("HardSwish", [net.dq(net.input(SHAPE), *STORED)])
    net.node("Split", [x, *ints(net, [5, 7])], outputs=2, axis=1)
    left, right = net.nodes[-1].output
    ends = [net.q(left, *STORED), net.q(net.node("Elu", [right]), 0.04, -3)]
    assert kinds(check_model(net.model(*ends))).count("table") == 2


def test_a_function_behind_a_transpose_of_it():
    check_model(chain(("HardSwish", "Transpose", "Slice", "Elu"), stored=False))


@pytest.mark.parametrize("seed", range(12))
def test_random_chains(seed):
    """Of four or five steps, stored in 8 bits between each two; pads of all modes and slopes of channels among them."""
    draw, steps = random.Random(seed), STEPS | OTHERS
    wide = [name for name in steps if name not in ("Gather", "GatherND", "Split", "Slice")]  # slopes are of 12 channels
    names = (*draw.choices(wide, k=4), draw.choice(list(STEPS)))
    opset = 19 if "wrap" in names else 14
    try:
        check_model(chain(names, stored=True, opset=opset, steps=steps), seed=seed)
    except UnsupportedModel as error:
        pytest.fail(f"{names}: {error}")


@pytest.mark.parametrize("preset", ["tiny", "base"])
@pytest.mark.parametrize("names", [("HardSwish", "Slice", "Elu"), ("Elu", "Tile"), ("SiLU", "mirror", "HardSigmoid")])
def test_through_the_system(names, preset):
    equals_onnxruntime(chain(names, stored=False), preset)


@pytest.mark.parametrize("name", ["Pad", "Pad of a value"])
def test_a_constant_around_a_function_is_refused(name):
    with pytest.raises(UnsupportedModel, match=r"Pad '.*is not quantised \(float result of HardSwish"):
        import_model(chain(("HardSwish", name), stored=False, steps=STEPS | OTHERS))
