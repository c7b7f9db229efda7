"""A convolution of a large image compiles in time that grows with its instructions, points included."""

import time

import pytest

from compiler.compile import compile_model
from hw.contract.params import PRESETS
from tests.support.onnx_models import Net


def wide(height: int, width: int):
    net = Net()
    x = net.dq(net.input((1, 3, height, width)), 0.05, 3)
    return net.model(net.q(net.conv(x, 0.05, (32, 3, 3, 3), strides=[2, 2], pads=[1] * 4), 0.2, 1))


@pytest.mark.parametrize(
    "height, width, seconds", [(540, 960, 10), pytest.param(1080, 1920, 20, marks=pytest.mark.slow)]
)
def test_points_of_a_large_image(height, width, seconds):
    begin = time.process_time()  # twice of what it takes on a machine that does nothing else
    image = compile_model(wide(height, width), PRESETS["base"], cache=False, jobs=1)
    assert time.process_time() - begin < seconds
    assert len(image.meta.cancel_points) > 1000
    # A strip of the input is hundreds of loads, and few ranges.
    assert max(len(point.live) for point in image.meta.cancel_points) < 100
