"""Resize and Upsample: by nearest pixels copies, for all ways to count coordinates and to round; linear as blends."""

import numpy as np
import pytest

from compiler import golden, reference
from compiler.frontend import import_model
from compiler.frontend.problems import UnsupportedModel
from tests.support.golden_check import check_model, kinds, random_inputs
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


def interpolated(x, factor, axis, half):
    """``x`` along ``axis`` in ``factor`` times as many steps, in float64; pixels beyond the edge are those at it."""
    place = (np.arange(x.shape[axis] * factor) + 0.5 * half) / factor - 0.5 * half
    low = np.floor(place).astype(int)
    before, behind = (np.take(x, np.clip(low + i, 0, x.shape[axis] - 1), axis) for i in (0, 1))
    part = (place - low).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    return before * (1 - part) + behind * part


@pytest.mark.parametrize("target", [PARAMS, (0.21, -3)])
@pytest.mark.parametrize("mode", ["half_pixel", "pytorch_half_pixel", "asymmetric"])
@pytest.mark.parametrize(
    "shape, factors",
    [
        (SHAPE, (2, 2)),
        (SHAPE, (4, 4)),
        (SHAPE, (8, 8)),
        ((2, 6, 9, 5), (3, 1)),
        ((1, 6, 2, 1), (2, 5)),
        ((1, 6, 9), (4,)),
        ((1, 3, 5, 4), (16, 16)),
        ((1, 2, 3, 2), (32, 16)),
        ((1, 3, 4, 3), (5, 30)),
        ((1, 5, 4), (200,)),
        ((1, 64, 3, 4), (16, 16)),
    ],
)
def test_linear_interpolation(shape, factors, mode, target):
    """What is stored is the nearest integer; where two are, onnxruntime may store the other one."""
    model = model_of([1, 1, *factors], shape=shape, mode="linear", coordinate_transformation_mode=mode, target=target)
    graph = check_model(model)
    assert set(kinds(graph)) <= {"blend", "slice", "concat", "repeat", "reshape", "permute"}
    (given,) = random_inputs(graph).values()
    real = (given.astype(float) - PARAMS[1]) * np.float32(PARAMS[0])
    for axis, factor in enumerate(factors, start=2):
        real = interpolated(real, factor, axis, mode != "asymmetric")
    wanted = np.clip(real / np.float32(target[0]) + target[1], -128, 127)
    (found,) = reference.run(graph, random_inputs(graph)).values()
    assert np.abs(found - wanted).max() <= 0.5 + 1e-4
    (golden_one,) = golden.golden_outputs(model, random_inputs(graph)).values()
    assert np.count_nonzero(found != golden_one) <= found.size * (0.06 if 3 in factors else 0.01)


def test_a_clamp_is_part_of_a_blend():
    net = Net(16)
    y = net.node("Resize", [net.dq(net.input(SHAPE), *PARAMS), "", net.const([1, 1, 2, 2], np.float32)], mode="linear")
    assert "table" not in kinds(check_model(net.model(net.q(net.node("Relu", [y]), *PARAMS)), exact=True))


@pytest.mark.parametrize(
    ("scales", "attributes", "reason"),
    [
        ([1, 1, 2, 2], {"coordinate_transformation_mode": "align_corners"}, "8 to 16 pixels; .* not where corners are"),
        ([1, 1, 1.5, 1.5], {}, "8 to 12 pixels; the accelerator interpolates to whole multiples"),
        ([1, 1, 66, 66], {}, "factors 66 by 66 need weights up to 17161; .* resize in two steps"),
    ],
)
def test_other_interpolation_is_refused(scales, attributes, reason):
    with pytest.raises(UnsupportedModel, match=reason) as error:
        import_model(model_of(scales, mode="linear", **attributes))
    assert len(error.value.nodes) == 1


def test_a_long_line_of_nearest_pixels():
    """What onnxruntime is asked grows with its length, not with the square of that."""
    net = Net(17)
    y = net.node("Resize", [net.dq(net.input((1, 2, 100_000)), 0.04, 3), "", net.const([1, 1, 2], np.float32)])
    assert import_model(net.model(net.q(y, 0.04, 3))).tensors


@pytest.mark.parametrize(("size", "length", "mode", "told"), [
    (10**9, 8, "nearest", "1 to 16,777,216 may be left"),
    (10_000, 5000, "linear", "linear interpolation along axis 2 of 5000, of 4096 at most"),
])  # fmt: skip
def test_sizes_beyond_reason_are_refused(size, length, mode, told):
    net = Net(17)
    x = net.dq(net.input((1, 2, length)), 0.04, 3)
    y = net.node("Resize", [x, "", "", net.const([1, 2, size], np.int64)], mode=mode)
    with pytest.raises(UnsupportedModel, match=told):
        import_model(net.model(net.q(y, 0.04, 3)))
