"""Pooling in both forms, with the rounding of onnxruntime's kernels."""

import numpy as np
import pytest

from compiler.frontend import UnsupportedModel, import_model
from tests.support.fast_run import equals_onnxruntime
from tests.support.golden_check import check_model, kinds
from tests.support.onnx_models import Net, sandwich

WINDOWS = {
    "2x2": {"kernel_shape": [2, 2], "strides": [2, 2]},
    "3x3": {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    "asymmetric": {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [0, 1, 1, 0]},
    "ceil": {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
    "same": {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
}


@pytest.mark.parametrize("form", ["qdq", "int8"])
@pytest.mark.parametrize("window", WINDOWS)
def test_max_pool(window, form):
    if form == "qdq":
        model = sandwich("MaxPool", [((1, 6, 12, 10), 0.05, 7)], (0.05, 7), **WINDOWS[window])
    else:
        net = Net()
        model = net.model(net.node("MaxPool", [net.input((1, 6, 12, 10))], **WINDOWS[window]))
    assert kinds(check_model(model, exact=True)) == ["pool"]


def test_max_pool_that_requantises():
    model = sandwich("MaxPool", [((1, 6, 12, 10), 0.05, 7)], (0.071, -3), **WINDOWS["2x2"])
    assert kinds(check_model(model)) == ["pool"]


@pytest.mark.parametrize("include", [0, 1])
@pytest.mark.parametrize("scales", [(0.5, 0.5), (0.0131, 0.0187)])
@pytest.mark.parametrize("zeros", [(0, 0), (7, 7), (5, 8)])
@pytest.mark.parametrize("window", ["2x2", "3x3", "asymmetric", "same"])
def test_average_pool(window, zeros, scales, include):
    inputs = [((1, 6, 24, 20), scales[0], zeros[0])]
    model = sandwich("AveragePool", inputs, (scales[1], zeros[1]), count_include_pad=include, **WINDOWS[window])
    assert kinds(check_model(model)) == ["pool"]


def test_average_pool_with_ceil_mode():
    model = sandwich("AveragePool", [((1, 6, 12, 10), 0.0131, 5)], (0.0187, 8), opset=19, **WINDOWS["ceil"])
    assert kinds(check_model(model)) == ["pool"]


@pytest.mark.parametrize("zeros", [(0, 0), (7, 7), (5, 8)])
@pytest.mark.parametrize("scales", [(0.5, 0.5), (0.013, 0.013), (0.0131, 0.0187)])
def test_global_average_pool(scales, zeros):
    model = sandwich("GlobalAveragePool", [((1, 300, 4, 6), scales[0], zeros[0])], (scales[1], zeros[1]))
    assert kinds(check_model(model)) == ["pool"]


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("op", ["QLinearAveragePool", "QLinearGlobalAveragePool"])
def test_qoperator(op, last):
    net = Net()
    inputs = [
        net.input((1, 6, 12, 10), "uint8"), net.const(0.0131, np.float32), net.const(120, np.uint8),
        net.const(0.0117, np.float32), net.const(131, np.uint8),
    ]  # fmt: skip
    more = {"kernel_shape": [2, 2], "strides": [2, 2]} if op == "QLinearAveragePool" else {}
    model = net.model(net.node(op, inputs, domain="com.microsoft", channels_last=last, **more), dtype="uint8")
    assert "pool" in kinds(check_model(model))


CEILED = {
    "3x3": ((1, 6, 7, 8), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "unlike sides": ((2, 6, 9, 7), {"kernel_shape": [4, 5], "strides": [3, 4], "pads": [2, 2, 1, 2]}),
    "no pads": ((1, 6, 8, 8), {"kernel_shape": [3, 3], "strides": [2, 2]}),
    "a signal": ((1, 6, 7), {"kernel_shape": [5], "strides": [4], "pads": [2, 2]}),
    "dilated": ((1, 6, 9, 9), {"kernel_shape": [2, 2], "strides": [3, 3], "pads": [1, 1, 1, 1], "dilations": [3, 2]}),
}


@pytest.mark.parametrize("zeros", [(0, 0), (7, 7), (5, 8)])
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("case", CEILED)
def test_ceil_mode(case, op, zeros):
    shape, window = CEILED[case]
    model = sandwich(op, [(shape, 0.0131, zeros[0])], (0.0131, zeros[1]), opset=19, ceil_mode=1, **window)
    assert kinds(check_model(model)) == ["pool"]


def test_ceil_mode_that_changes_nothing_may_count_pads():
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1, "count_include_pad": 1}
    model = sandwich("AveragePool", [((1, 6, 9, 11), 0.0131, 5)], (0.0131, 8), opset=19, **window)
    assert kinds(check_model(model)) == ["pool"]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"pads": [1] * 4, "ceil_mode": 1, "count_include_pad": 1}, "ceil_mode together with count_include_pad, and"),
        ({"ceil_mode": 1, "count_include_pad": 1}, "ceil_mode together with count_include_pad, and"),
        ({"auto_pad": "SAME_UPPER", "dilations": [2, 2]}, "auto_pad SAME_UPPER with dilations, which onnxruntime pads"),
    ],
)
def test_windows_on_which_onnxruntime_disagrees_with_itself_are_refused(more, reason):
    window = {"kernel_shape": [3, 3], "strides": [2, 2], **more}
    with pytest.raises(UnsupportedModel, match=reason):
        import_model(sandwich("AveragePool", [((1, 6, 8, 8), 0.05, 7)], (0.05, 7), opset=19, **window))


DILATED = {
    "by 2": ((1, 6, 12, 10), {"kernel_shape": [3, 3], "dilations": [2, 2], "pads": [2, 2, 2, 2]}),
    "by 2 and 3 with strides": ((1, 6, 13, 15), {"kernel_shape": [2, 3], "dilations": [3, 2], "strides": [2, 1]}),
    "a signal": ((1, 6, 20), {"kernel_shape": [3], "dilations": [4], "strides": [2], "pads": [1, 2]}),
}


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "AveragePool of padding"])
@pytest.mark.parametrize("case", DILATED)
def test_dilations(case, op):
    shape, window = DILATED[case]
    more = {"count_include_pad": 1} if "padding" in op else {}
    model = sandwich(op.split()[0], [(shape, 0.0131, 7)], (0.0131, 7), opset=19, **window, **more)
    assert kinds(check_model(model, exact=op == "MaxPool")) == ["pool"]


@pytest.mark.parametrize("preset", ["tiny", "base"])
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_through_the_system(op, preset):
    net = Net(19)
    x = net.dq(net.input((1, 5, 13, 11)), 0.031, 7)
    x = net.dq(net.q(net.conv(x, 0.031, (24, 5, 3, 3), pads=[1] * 4), 0.9, 3), 0.9, 3)
    y = net.node(op, [x], kernel_shape=[3, 3], dilations=[2, 2], pads=[2, 2, 2, 2], strides=[2, 2], ceil_mode=1)
    target = (0.9, 3) if op == "MaxPool" else (0.71, 3)
    equals_onnxruntime(net.model(net.q(y, *target)), preset, least=1 if op == "MaxPool" else 0.99)


def test_one_dimensional():
    model = sandwich("MaxPool", [((1, 6, 20), 0.05, 7)], (0.05, 7), kernel_shape=[3], strides=[2], pads=[1, 0])
    assert kinds(check_model(model, exact=True)) == ["pool"]


def test_pooled_values_may_be_reshaped_before_they_are_stored():
    net = Net()
    x = net.dq(net.input((1, 8, 4, 4)), 0.031, 7)
    flat = net.node("Flatten", [net.node("GlobalAveragePool", [x])])
    y = net.dq(net.q(flat, 0.02, 3), 0.02, 3)
    weights, _ = net.weights((8, 5), None)
    graph = check_model(net.model(net.q(net.node("MatMul", [y, weights]), 0.3)))
    assert kinds(graph) == ["pool", "reshape", "conv"]
