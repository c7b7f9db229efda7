"""Shuffles of channels, compiled for the smallest machine and run: outputs are those of onnxruntime."""

from contextlib import closing

import numpy as np
import onnx
import pytest

from compiler import golden
from compiler.compile import compile_with_report
from compiler.frontend import import_model
from hw.contract.bus import HostCosts
from hw.contract.params import preset
from sim import backends
from sim.simulators import open_simulator
from sw.driver import Device
from sw.runtime import Session
from tests.support.fast_run import equals_onnxruntime
from tests.support.golden_check import random_inputs
from tests.support.onnx_models import Net
from tests.support.sampled import sampled
from tests.support.shuffles import SCALE, depthwise, half, image, pointwise, shuffled, stored, window

TINY = preset("tiny")
CASES = [  # groups, channels of each, rows and columns
    (2, 18, (5, 7)),
    (2, 29, (4, 5)),
    (2, 40, (3, 3)),
    (3, 20, (4, 5)),
    (4, 12, (7, 9)),
    (4, 27, (3, 1)),
]


def units(groups: int, depth: int, size: tuple[int, int]) -> onnx.ModelProto:
    """Two units as in ShuffleNetV2 where there are two groups; and readers of all kinds behind them."""
    net, channels = Net(), groups * depth
    y = shuffled(net, image(net, channels, size), groups, channels, size)
    for _ in range(2 if groups == 2 else 0):
        kept, x = half(net, y), half(net, y, last=True)
        x = net.dq(pointwise(net, x, depth, depth), SCALE)
        x = net.dq(pointwise(net, depthwise(net, x, depth), depth, depth), SCALE)
        y = shuffled(net, net.dq(stored(net, net.node("Concat", [kept, x], axis=1)), SCALE), 2, channels, size)
    ends = [pointwise(net, depthwise(net, y, channels), channels, 9), pointwise(net, y, channels, 12, strides=[2, 2])]
    return net.model(*ends)


@pytest.mark.parametrize(("groups", "depth", "size"), sampled(CASES, 3))
def test_readers_take_the_order(groups, depth, size):
    equals_onnxruntime(units(groups, depth, size), "tiny")


@pytest.mark.parametrize(("groups", "depth", "size"), CASES)
@pytest.mark.parametrize("readers", [1, 2])
def test_what_others_read_is_shuffled(groups, depth, size, readers):
    net, channels = Net(), groups * depth
    y = shuffled(net, image(net, channels, (size[0] + 2, size[1] + 2)), groups, channels, (size[0] + 2, size[1] + 2))
    ends = [window(net, y, channels), stored(net, net.node("Relu", [y]))]
    compiled = equals_onnxruntime(net.model(*ends[:readers]), "tiny")
    assert [op.kind for op in compiled.graph.ops].count("shuffle") == 1


def test_an_input_of_the_model():
    net = Net()
    y = shuffled(net, net.dq(net.input((1, 40, 4, 5)), SCALE), 2, 40)
    equals_onnxruntime(net.model(pointwise(net, y, 40, 8), window(net, y, 40)), "tiny")


@pytest.mark.parametrize("channels", [58, 60])
def test_parts_of_an_input_of_the_model(channels):
    """It has channels last, as it lies in memory. A half of 29 channels ends within a group."""
    net, part = Net(), channels // 2
    x = net.dq(net.input((1, 4, 5, channels)), SCALE)
    x = net.node("Transpose", [x], perm=[0, 3, 1, 2])
    y = shuffled(net, x, 2, channels)
    kept, other = half(net, y), half(net, y, last=True)
    z = net.dq(pointwise(net, other, part, part), SCALE)
    end = window(net, net.dq(stored(net, net.node("Concat", [kept, z], axis=1)), SCALE), channels)
    equals_onnxruntime(net.model(end), "tiny")


def test_on_the_rtl():
    model = units(2, 29, (4, 5))
    inputs = random_inputs(import_model(model))
    with closing(open_simulator(TINY, backends.DEFAULT_BACKEND, costs=HostCosts.free())) as bus:
        device = Device(bus)
        found, _ = Session(device, device.load(compile_with_report(model, TINY, jobs=1, cache=False).image)).run(inputs)
    for name, wanted in golden.golden_outputs(model, inputs).items():
        np.testing.assert_array_equal(found[name], wanted)
