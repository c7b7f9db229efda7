"""Resize and Upsample, by nearest pixels: copies, for all ways to count coordinates and to round."""

import numpy as np
import pytest

from compiler.frontend import import_model
from compiler.frontend.problems import UnsupportedModel
from tests.support.golden_check import check_model, kinds
from tests.support.onnx_models import Net

SHAPE = (1, 6, 8, 6)
PARAMS = (0.25, 7)


def model_of(scales=None, sizes=None, shape=SHAPE, opset=19, target=PARAMS, **attributes):
    net = Net(opset)
    x = net.dq(net.input(shape), *PARAMS)
    by = ["", net.const(scales, np.float32)] if sizes is None else ["", "", net.const(sizes, np.int64)]
    return net.model(net.q(net.node("Resize", [x, *by], **attributes), *target))


@pytest.mark.parametrize("nearest_mode", ["floor", "round_prefer_floor", "round_prefer_ceil", "ceil"])
@pytest.mark.parametrize("mode", ["asymmetric", "half_pixel", "pytorch_half_pixel", "align_corners"])
@pytest.mark.parametrize("scale", [2, 3, 1.5, 0.5, 0.7])
def test_nearest_pixels(scale, mode, nearest_mode):
    model = model_of([1, 1, scale, scale], coordinate_transformation_mode=mode, nearest_mode=nearest_mode)
    assert set(kinds(check_model(model, exact=True))) <= {"repeat", "slice", "concat"}


@pytest.mark.parametrize("factors", [(2, 2), (4, 3), (1, 2), (20, 1)])
def test_whole_factors_are_one_copy(factors):
    how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    assert kinds(check_model(model_of([1, 1, *factors], **how), exact=True)) == ["repeat"]
    sizes = [1, 6, 8 * factors[0], 6 * factors[1]]
    assert kinds(check_model(model_of(sizes=sizes, **how), exact=True)) == ["repeat"]


def test_a_pixel_fills_an_image():
    for mode in ("nearest", "linear"):
        graph = check_model(model_of(sizes=[2, 6, 7, 5], shape=(2, 6, 1, 1), mode=mode), exact=True)
        assert kinds(graph) == ["repeat"]


def test_some_axes_only():
    graph = check_model(model_of([2], axes=[-1]), exact=True)
    assert kinds(graph) == ["repeat"]


@pytest.mark.parametrize("shape", [(1, 6, 8), (2, 6, 8, 5)])
def test_between_convolutions(shape):
    """Pixels are repeated as they lie, also those of sequences."""
    net, ones = Net(13), (1,) * (len(shape) - 2)
    x = net.dq(net.q(net.conv(net.dq(net.input(shape), 0.03, 7), 0.03, (6, 6, *ones)), 0.9), 0.9)
    y = net.node("Resize", [x, "", net.const([1, 1, *(2 for _ in ones)], np.float32)], mode="nearest")
    y = net.dq(net.q(y, 0.9), 0.9)
    graph = check_model(net.model(net.q(net.conv(y, 0.9, (4, 6, *ones)), 20.0)), exact=True)
    before, repeat, *_ = (op for op in graph.ops if op.kind in ("conv", "repeat"))
    assert repeat.inputs == [before.output]


@pytest.mark.parametrize("form", ["requantised", "read in float"])
def test_stored_otherwise_behind_it(form):
    net = Net(13)
    y = net.node("Resize", [net.dq(net.input(SHAPE), *PARAMS), "", net.const([1, 1, 2, 2], np.float32)])
    y = net.node("Sigmoid", [y]) if form == "read in float" else y
    assert kinds(check_model(net.model(net.q(y, 0.4, -3)))) == ["repeat", "table"]


def test_8_bit_values():
    net = Net(13)
    y = net.node("Resize", [net.input(SHAPE), "", net.const([1, 1, 2, 2], np.float32)], mode="nearest")
    assert kinds(check_model(net.model(y), exact=True)) == ["repeat"]


def test_an_older_operator_set():
    net = Net(10)
    y = net.node("Resize", [net.dq(net.input(SHAPE), *PARAMS), net.const([1, 1, 2, 3], np.float32)])
    assert kinds(check_model(net.model(net.q(y, *PARAMS)), exact=True)) == ["repeat"]


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"mode": "cubic"}, "mode 'cubic'"),
        ({"keep_aspect_ratio_policy": "not_larger"}, "keep_aspect_ratio_policy 'not_larger'; state sizes or scales"),
    ],
)
def test_others_are_refused(attributes, reason):
    with pytest.raises(UnsupportedModel, match=reason) as error:
        import_model(model_of(sizes=[1, 6, 16, 12], **attributes))
    assert len(error.value.nodes) == 1
