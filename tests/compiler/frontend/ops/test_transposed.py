"""ConvTranspose, as convolutions whose results take turns: equal to onnxruntime's floats, stored."""

import numpy as np
import pytest

from compiler import golden, reference
from compiler.frontend import import_model
from compiler.frontend.problems import UnsupportedModel
from tests.support.golden_check import check_model, kinds, random_inputs
from tests.support.onnx_models import Net

IMAGE, LINE = (1, 6, 5, 4), (1, 6, 9)


def model_of(shape, weights, target=(0.31, 3), axis=1, clip=None, dtype="int8", **attributes):
    net = Net(19)
    x = net.dq(net.input(shape, dtype), 0.0317, 7, dtype)
    bias = net.const(net.rng.normal(0, 2, weights[1] * attributes.get("group", 1)), np.float32)
    y = net.node("ConvTranspose", [x, net.weights(weights, axis)[0], bias], **attributes)
    y = net.node("Clip", [y, *(net.const(limit, np.float32) for limit in clip)]) if clip else y
    return net.model(net.q(y, *target, dtype), dtype=dtype)


def equal(model):
    """Import a model, and compare whole outputs: onnxruntime has no integer kernel, its floats are summed otherwise."""
    graph = check_model(model)
    inputs = random_inputs(graph)
    (found,), (wanted,) = reference.run(graph, inputs).values(), golden.golden_outputs(model, inputs).values()
    assert np.abs(wanted.astype(float)).std() > 5
    assert np.count_nonzero(found != wanted) <= found.size // 1000
    return graph


@pytest.mark.parametrize(
    "weights, attributes",
    [
        ((6, 8, 2, 2), {"strides": [2, 2]}),
        ((6, 40, 3, 3), {"strides": [2, 2], "pads": [1] * 4, "output_padding": [1, 1]}),
        ((6, 40, 3, 3), {"strides": [2, 2], "pads": [1] * 4}),
        ((6, 40, 4, 4), {"strides": [2, 2], "pads": [1] * 4}),
        ((6, 8, 3, 3), {"pads": [1] * 4}),
        ((6, 8, 3, 2), {"strides": [3, 4], "pads": [1, 0, 2, 1]}),
        ((6, 4, 3, 3), {"strides": [2, 2], "pads": [1] * 4, "dilations": [2, 2]}),
        ((6, 4, 2, 2), {"strides": [2, 2], "pads": [1] * 4}),
        ((6, 4, 5, 5), {"strides": [2, 2], "pads": [3] * 4}),
        ((6, 1, 4, 4), {"strides": [2, 2], "pads": [1] * 4, "group": 6}),
        ((6, 4, 4, 4), {"strides": [2, 2], "pads": [1] * 4, "group": 2}),
        ((6, 4, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
        ((6, 4, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
        ((6, 4, 3, 3), {"strides": [2, 2], "auto_pad": "VALID"}),
        ((6, 4, 3, 3), {"strides": [2, 2], "output_shape": [10, 9]}),
    ],
)
def test_images(weights, attributes):
    assert set(kinds(equal(model_of(IMAGE, weights, **attributes)))) <= {"conv", "concat", "reshape", "slice"}


@pytest.mark.parametrize("axis", [None, 1])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_types_and_scales(dtype, axis):
    equal(model_of((2, *IMAGE[1:]), (6, 8, 2, 2), axis=axis, dtype=dtype, target=(0.4, 60), strides=[2, 2]))


@pytest.mark.parametrize(
    "weights, attributes",
    [
        ((6, 4, 16), {"strides": [8], "pads": [4, 4]}),
        ((6, 40, 4), {"strides": [2], "pads": [1, 1]}),
        ((6, 1, 3), {"strides": [2], "pads": [1, 1], "output_padding": [1], "group": 6}),
    ],
)
def test_sequences(weights, attributes):
    equal(model_of(LINE, weights, **attributes))


def test_small_channels_of_columns_share_a_convolution():
    assert kinds(import_model(model_of(IMAGE, (6, 8, 2, 2), strides=[2, 2]))).count("conv") == 2
    assert kinds(import_model(model_of(IMAGE, (6, 40, 2, 2), strides=[2, 2]))).count("conv") == 2  # the same pixels
    assert kinds(import_model(model_of(IMAGE, (6, 40, 4, 4), strides=[2, 2], pads=[1] * 4))).count("conv") == 4


def test_a_clamp_is_part_of_it():
    graph = equal(model_of(IMAGE, (6, 8, 2, 2), clip=(-6.0, 9.0), strides=[2, 2]))
    assert "table" not in kinds(graph)


@pytest.mark.parametrize("op", ["Mul", "Add"])
def test_a_constant_behind_it(op):
    net = Net(16)
    y = net.node(
        "ConvTranspose", [net.dq(net.input(IMAGE), 0.0317, 7), net.weights((6, 8, 2, 2), 1)[0]], strides=[2, 2]
    )
    y = net.node(op, [y, net.const(net.rng.uniform(0.5, 1.5, (8, 1, 1)), np.float32)])
    assert "eltwise" not in kinds(equal(net.model(net.q(y, 0.31, 3))))


def test_it_takes_padding_over():
    net = Net(16)
    x = net.node("Pad", [net.dq(net.input(IMAGE), 0.0317, 7), net.const([0, 0, 1, 2, 0, 0, 0, 1], np.int64)])
    y = net.node("ConvTranspose", [x, net.weights((6, 8, 4, 4), 1)[0]], strides=[2, 2], pads=[1] * 4)
    assert "pad" not in kinds(equal(net.model(net.q(y, 0.31, 3))))


def test_others_are_refused():
    with pytest.raises(UnsupportedModel, match="its weights are quantised along axis 0; quantise along axis 1"):
        import_model(model_of(IMAGE, (6, 8, 2, 2), axis=0, strides=[2, 2]))
    net = Net(16)
    y = net.node("ConvTranspose", [net.dq(net.input((1, 6, 3, 3, 3)), 0.03), net.weights((6, 8, 2, 2, 2), 1)[0]])
    with pytest.raises(UnsupportedModel, match="3-dimensional transposed convolution"):
        import_model(net.model(net.q(y, 0.31)))


def test_strides_beyond_reason_are_refused():
    net = Net(17)
    weights, _ = net.weights((4, 3, 2, 2), None)
    y = net.node("ConvTranspose", [net.dq(net.input((1, 4, 3, 3)), 0.04, 3), weights], strides=[100, 100])
    with pytest.raises(UnsupportedModel, match="4096 places in a stride at most"):
        import_model(net.model(net.q(y, 0.04, 3)))
