"""How much of a model the accelerator has: layers on the CPU count with all that they multiply."""

import numpy as np
import onnx
import pytest

import caesura
from caesura.views.run_report import shares
from tests.support.onnx_models import Net


def upsampling(net, x):
    """4 x 6 x 6 to 8 x 12 x 12, and what it multiplies."""
    weights = net.const(net.rng.normal(0, 0.3, (4, 8, 2, 2)), np.float32)
    return net.node("ConvTranspose", [x, weights], strides=[2, 2]), 4 * 36 * 8 * 4


def recurrent(net, x):
    """24 steps of 6 values, 3 units."""
    x = net.node("Reshape", [x, net.const([24, 1, 6], np.int64)])
    weights = [net.const(net.rng.normal(0, 0.3, shape), np.float32) for shape in ((1, 9, 6), (1, 9, 3))]
    return net.node("GRU", [x, *weights], hidden_size=3), 24 * 9 * 9


@pytest.mark.parametrize("on_cpu", [upsampling, recurrent])
def test_products_on_the_cpu_are_counted(tmp_path, on_cpu):
    net = Net()
    x = net.dq(net.input((1, 4, 6, 6)), 0.05)
    x = net.dq(net.q(net.conv(x, 0.05, (4, 4, 1, 1)), 0.1), 0.1)
    y, macs = on_cpu(net, x)
    onnx.save(net.model(net.q(y, 0.1)), tmp_path / "m.onnx")
    found = shares(caesura.compile(tmp_path / "m.onnx", fallback=True))
    assert (found.macs, found.cpu_macs, found.cpu_layers) == (4 * 4 * 36, macs, 1)
    assert f"{100 * 576 // (576 + macs)} % of MACs" in found.sentence()
