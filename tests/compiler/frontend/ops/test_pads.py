"""Pad on any axes and in all modes; where a convolution takes over what surrounds an image is in test_conv."""

import numpy as np
import pytest

from compiler.frontend import import_model
from compiler.frontend.problems import UnsupportedModel
from tests.support.golden_check import check_model, kinds
from tests.support.onnx_models import Net

SHAPE = (1, 6, 5, 4)


def padded(net: Net, x: str, pads, mode: str = "constant", value: float | None = None) -> str:
    more = [] if value is None else [net.const(value, np.float32)]
    return net.node("Pad", [x, net.const(pads, np.int64), *more], mode=mode)


PADS = {
    "channels": [0, 0, 0, 0, 0, 6, 0, 0],
    "channels in front": [0, 3, 0, 0, 0, 0, 0, 0],
    "all but images": [0, 1, 2, 3, 0, 4, 0, 1],
    "less rows, more columns": [0, 0, -1, 2, 0, 0, -2, 0],
}


@pytest.mark.parametrize("form", ["quantised", "requantised", "read in float"])
@pytest.mark.parametrize("value", [None, -0.5])
@pytest.mark.parametrize("name", PADS)
def test_a_constant_around_any_axes(name, value, form):
    net = Net()
    y = padded(net, net.dq(net.input(SHAPE), 0.25, 7), PADS[name], value=value)
    y = net.node("Sigmoid", [y]) if form == "read in float" else y
    graph = check_model(
        net.model(net.q(y, *((0.25, 7) if form == "quantised" else (0.4, -3)))), exact=form == "quantised"
    )
    assert "concat" in kinds(graph)


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
@pytest.mark.parametrize("pads", [[0, 0, 1, 2, 0, 0, 3, 1], [0, 2, 0, 0, 0, 1, 0, 0], [0, 0, 2, 0, 0, 0, 0, 0]])
def test_what_stands_at_the_ends(mode, pads):
    net = Net(opset=19)
    x = net.dq(net.q(net.conv(net.dq(net.input(SHAPE), 0.031, 7), 0.031, (6, 6, 1, 1)), 0.9), 0.9)
    y = net.dq(net.q(padded(net, x, pads, mode), 0.9), 0.9)
    channels = 6 + pads[1] + pads[5]
    check_model(net.model(net.q(net.conv(y, 0.9, (4, channels, 3, 3)), 20.0)), exact=True)


def test_a_sequence_of_tokens():
    net = Net()
    y = padded(net, net.dq(net.input((1, 7, 12)), 0.031, 7), [0, 0, 0, 0, 2, 0])
    assert kinds(check_model(net.model(net.q(y, 0.031, 7)), exact=True)) == ["concat"]


@pytest.mark.parametrize("mode", ["constant", "edge"])
def test_8_bit_values(mode):
    net = Net()
    constant = [net.const(-3, np.int8)] if mode == "constant" else []
    pads = net.const([0, 2, 0, 1, 0, 0, 0, 0], np.int64)
    check_model(net.model(net.node("Pad", [net.input(SHAPE), pads, *constant], mode=mode)), exact=True)


def test_the_cpu_reads_what_was_padded():
    net = Net()
    y = padded(net, net.dq(net.input(SHAPE), 0.25, 7), PADS["all but images"])
    y = net.node("CumSum", [y, net.const(2, np.int64)])
    assert kinds(check_model(net.model(net.q(y, 0.9)), fallback=True)) == ["host"]


@pytest.mark.parametrize(
    ("pads", "value", "reason"),
    [
        (PADS["channels"], 0.33, "its value 0.33 is not a multiple of the scale"),
        ([0, -3, 0, 0, 0, -3, 0, 0], None, "pads -3 and -3 of an axis of 6"),
    ],
)
def test_other_pads_are_refused(pads, value, reason):
    net = Net()
    y = padded(net, net.dq(net.input(SHAPE), 0.25, 7), pads, value=value)
    with pytest.raises(UnsupportedModel, match=reason) as error:
        import_model(net.model(net.q(y, 0.25, 7)))
    assert len(error.value.nodes) == 1
