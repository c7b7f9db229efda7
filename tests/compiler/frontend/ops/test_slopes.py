"""PRelu with a slope for each channel of an image."""

import numpy as np
import pytest

from compiler.frontend import import_model
from compiler.frontend.problems import UnsupportedModel
from tests.support.golden_check import check_model, kinds
from tests.support.onnx_models import Net

SHAPE = (1, 20, 16, 14)


def model_of(target, dtype="int8", shape=SHAPE, slopes=None, scale=0.0371):
    net = Net(16)
    x = net.dq(net.input(shape, dtype), scale, 5, dtype)
    given = net.rng.normal(0.2, 0.3, (20, *(1,) * (len(shape) - 2))) if slopes is None else slopes
    return net.model(net.q(net.node("PRelu", [x, net.const(given, np.float32)]), *target, dtype), dtype=dtype)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("target", [(0.0371, 5), (0.02, 9)])
@pytest.mark.parametrize("shape", [SHAPE, (1, 20, 60)])
def test_slopes_of_channels(shape, target, dtype):
    assert kinds(check_model(model_of(target, dtype, shape)))[-1] == "slope"


def test_slopes_of_whole_steps_are_exact():
    slopes = np.linspace(-1, 1.5, 11).repeat(2)[:20].reshape(20, 1, 1)
    check_model(model_of((0.5, -3), slopes=slopes, scale=0.5), exact=True)


def test_one_slope_is_a_table():
    assert kinds(check_model(model_of((0.02, 9), slopes=[0.2]))) == ["table"]


def test_a_clamp_is_part_of_it():
    net = Net(16)
    x = net.dq(net.input(SHAPE), 0.0371, 5)
    y = net.node("PRelu", [x, net.const(net.rng.normal(0, 0.3, (20, 1, 1)), np.float32)])
    y = net.node("Clip", [y, net.const(-0.2, np.float32), net.const(1.5, np.float32)])
    assert kinds(check_model(net.model(net.q(y, 0.02, 3)))) == ["slope"]


def test_other_slopes_are_refused():
    with pytest.raises(UnsupportedModel, match=r"slopes of shape \(14,\) for \(1, 20, 16, 14\)") as error:
        import_model(model_of((0.02, 9), slopes=np.ones(14)))
    assert len(error.value.nodes) == 1
