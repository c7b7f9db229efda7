"""Data that is moved in float between two quantisations: the second one may have other parameters."""

import numpy as np
import pytest

from tests.support.golden_check import check_model
from tests.support.onnx_models import Net


def moved(net: Net, kind: str) -> str:
    """An int8 input (scale 0.5, zero point 3), dequantised and moved."""
    x = net.dq(net.input((1, 4, 5, 5)), 0.5, 3)
    if kind == "Slice":
        return net.node("Slice", [x, *(net.const([n]) for n in (1, 4, 2))])
    if kind == "Gather":
        return net.node("Gather", [x, net.const([1])], axis=2)
    pads = net.const([0, 0, 1, 2, 0, 0, 0, 1])
    return net.node("Pad", [x, pads, net.const(float(kind), np.float32)])


@pytest.mark.parametrize("scale, zero_point, dtype", [(0.5, 3, "int8"), (0.1, -5, "int8"), (0.7, 100, "uint8")])
@pytest.mark.parametrize("kind", ["Slice", "Gather", "0", "0.33", "-1", "100"])
def test_stored_with_other_parameters(kind, scale, zero_point, dtype):
    net = Net()
    check_model(net.model(net.q(moved(net, kind), scale, zero_point, dtype), dtype=dtype))


@pytest.mark.parametrize("kind", ["Slice", "Gather", "-1"])
@pytest.mark.parametrize("reader", ["Conv", "Sigmoid", "Flatten"])
def test_read_in_float(kind, reader):
    net = Net()
    x = moved(net, kind)
    y = net.conv(x, 0.5, (8, 4, 1, 1)) if reader == "Conv" else net.node(reader, [x])
    check_model(net.model(net.q(y, 0.1, -5)))


def test_a_convolution_reads_padding_of_other_parameters():
    net = Net()
    x = net.dq(net.q(moved(net, "0.33"), 0.1, -5), 0.1, -5)
    check_model(net.model(net.q(net.conv(x, 0.1, (8, 4, 3, 3)), 0.2)), exact=True)
