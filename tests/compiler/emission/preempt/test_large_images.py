"""A convolution of a large image compiles in bounded work for each instruction, points included."""

import pytest

from benchmarks.counting import python_calls
from compiler.compile import compile_model
from hw.contract.isa import INSN_BYTES
from hw.contract.params import PRESETS
from hw.image import Image
from tests.support.onnx_models import Net


def wide(height: int, width: int):
    net = Net()
    x = net.dq(net.input((1, 3, height, width)), 0.05, 3)
    return net.model(net.q(net.conv(x, 0.05, (32, 3, 3, 3), strides=[2, 2], pads=[1] * 4), 0.2, 1))


def calls_for_each_instruction(height: int, width: int) -> tuple[float, Image]:
    with python_calls("compiler", "sim") as calls:
        image = compile_model(wide(height, width), PRESETS["base"], cache=False, jobs=1)
    return calls() / (len(image.code) // INSN_BYTES), image


@pytest.mark.parametrize(
    "height, width, most", [(540, 960, 585), pytest.param(1080, 1920, 1047, marks=pytest.mark.slow)]
)
def test_points_of_a_large_image(height, width, most):
    """``most`` calls of the compiler for each instruction: a tenth above what it made, for all the parts of LV2."""
    calls, image = calls_for_each_instruction(height, width)
    assert calls < most
    assert len(image.meta.cancel_points) > 1000
    # A strip of the input is hundreds of loads, and few ranges.
    assert max(len(point.live) for point in image.meta.cancel_points) < 100
