"""Masks of a float model become finite: softmax gives the same, and 8 bits are left for the scores."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from compiler.quantise.fitting_masks import fitting_masks
from sim.host import session
from tests.support.onnx_models import Net

KEYS = 24


def _model(form: str, masked: float = -1e9) -> onnx.ModelProto:
    net = Net(opset=17)
    x, kept = net.input((1, 2, KEYS, KEYS), "float32"), np.tri(KEYS, dtype=bool)
    if form == "add":
        scores = net.node("Add", [net.const(np.where(kept, 0, masked), np.float32), x])
    elif form == "add more":
        scores = net.node("Add", [x, net.const(np.where(kept, net.rng.normal(size=(KEYS, KEYS)), masked), np.float32)])
    elif form == "where full":
        whole = np.full((KEYS, KEYS), masked)
        scores = net.node(
            "Where", [net.const(kept), net.node("Div", [x, net.const(1.5, np.float32)]), net.const(whole, np.float32)]
        )
    elif form == "where":
        scores = net.node("Where", [net.const(kept), x, net.const(masked, np.float32)])
    else:
        scores = net.node("Where", [net.const(~kept[None]), net.const(np.full(1, masked), np.float32), x])
    return net.model(net.node("Softmax", [scores], axis=-1), dtype="float32")


def _feeds(count: int = 3) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(2)
    return [{"x": rng.normal(0, 3, (1, 2, KEYS, KEYS)).astype(np.float32)} for _ in range(count)]


@pytest.mark.parametrize("masked", [-1e4, -1e9, float(np.finfo(np.float32).min), -np.inf])
@pytest.mark.parametrize("form", ["add", "add more", "where", "where not", "where full"])
def test_softmax_gives_the_same(form, masked):
    model, feeds = _model(form, masked), _feeds()
    made = fitting_masks(model, feeds)
    onnx.checker.check_model(made)
    for feed in feeds:
        wanted, found = (session(one).run(None, feed)[0] for one in (model, made))
        np.testing.assert_allclose(found, wanted, atol=1 / 512)


@pytest.mark.parametrize("form", ["add", "add more", "where", "where not", "where full"])
def test_no_value_is_far_below_the_scores(form):
    made = fitting_masks(_model(form), _feeds())
    values = [numpy_helper.to_array(one) for one in made.graph.initializer]
    assert -30 < min(value.min() for value in values if value.dtype == np.float32) < -10
    assert {node.op_type for node in made.graph.node} <= {"Where", "Add", "Mul", "Softmax"}


@pytest.mark.parametrize("form", ["add", "where"])
def test_other_values_stay(form):
    model = _model(form, -5.0)
    assert fitting_masks(model, _feeds()) is model


def test_a_row_that_keeps_nothing_stays():
    net = Net(opset=17)
    scores = net.node("Add", [net.input((1, KEYS), "float32"), net.const(np.full((1, KEYS), -np.inf), np.float32)])
    model = net.model(net.node("Softmax", [scores]), dtype="float32")
    assert fitting_masks(model, []) is model


@pytest.mark.parametrize(("axis", "stays"), [(1, True), (-2, True), (2, False), (-1, False)])
def test_a_softmax_over_another_axis_stays(axis, stays):
    net = Net(opset=17)
    kept = net.const(np.tri(KEYS, dtype=bool))
    scores = net.node("Where", [kept, net.input((2, KEYS, KEYS), "float32"), net.const(-np.inf, np.float32)])
    model = onnx.shape_inference.infer_shapes(net.model(net.node("Softmax", [scores], axis=axis), dtype="float32"))
    feeds = [{"x": np.zeros((2, KEYS, KEYS), np.float32)}]
    assert (fitting_masks(model, feeds) is model) == stays


def test_a_condition_of_one_value_is_no_mask():
    net = Net(opset=17)
    scores = net.node("Where", [net.const(True), net.input((2, KEYS), "float32"), net.const(-np.inf, np.float32)])
    model = net.model(net.node("Softmax", [scores]), dtype="float32")
    assert fitting_masks(model, []) is model
