"""Tile and Expand, Gather of several indices, and Where with a constant condition."""

import numpy as np
import pytest

from compiler.frontend import import_model
from compiler.frontend.problems import UnsupportedModel
from tests.support.golden_check import check_model, kinds
from tests.support.onnx_models import Net

PARAMS = (0.25, 7)


def model_of(op, shape, *constants, target=PARAMS, form="quantised", **attributes):
    net = Net(16)
    x = net.input(shape) if form == "8 bits" else net.dq(net.input(shape), *PARAMS)
    y = net.node(op, [x, *(net.const(one, np.int64) for one in constants)], **attributes)
    return net.model(y if form == "8 bits" else net.q(y, *target))


FORMS = pytest.mark.parametrize("form", ["quantised", "8 bits"])


@FORMS
@pytest.mark.parametrize(
    "shape, wanted", [((1, 6, 1, 1), (1, 6, 5, 4)), ((6, 1, 4), (2, 6, 5, 4)), ((1, 7), (3, 1)), ((2, 5, 3), (1, 1, 1))]
)
def test_expand(shape, wanted, form):
    found = set(kinds(check_model(model_of("Expand", shape, wanted, form=form), exact=True)))
    assert found <= {"repeat", "reshape", "permute"}


@FORMS
@pytest.mark.parametrize("shape, times", [((1, 6, 5, 4), (1, 2, 1, 3)), ((1, 1, 7), (2, 5, 1)), ((3, 4), (1, 2))])
def test_tile(shape, times, form):
    found = set(kinds(check_model(model_of("Tile", shape, times, form=form), exact=True)))
    assert found <= {"repeat", "concat", "permute"}


@FORMS
@pytest.mark.parametrize("axis", [1, 2, -1])
@pytest.mark.parametrize("indices", [[0, 2], [3, 1, 0, 2], [0, 0, 1, 1], [-1, 0], [[0, 1], [3, 2]], [2, 2, 2]])
def test_several_indices(indices, axis, form):
    check_model(model_of("Gather", (1, 6, 5, 4), indices, axis=axis, form=form), exact=True)


def test_stored_otherwise_behind_indices():
    graph = check_model(model_of("Gather", (1, 6, 5, 4), [3, 1], axis=1, target=(0.4, -3)))
    assert kinds(graph)[-1] == "table"


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (
            model_of("Gather", (1, 200, 3), np.random.default_rng(0).permutation(200), axis=1),
            "200 indices in .* stretches",
        ),
        (model_of("Tile", (2, 3), [1, 100]), r"repeats \[1, 100\] of a tensor"),
    ],
)
def test_too_many_parts_are_refused(model, reason):
    with pytest.raises(UnsupportedModel, match=reason) as error:
        import_model(model)
    assert len(error.value.nodes) == 1


@pytest.mark.parametrize("value", [-np.inf, -9.0, 1.1])
@pytest.mark.parametrize("target", [PARAMS, (0.31, 3)])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("shape", [(1, 2, 9, 9), (1, 9, 9)])
def test_where(shape, first, target, value):
    net = Net(16)
    x, mask = net.dq(net.input(shape), *PARAMS), net.const(np.tril(np.ones((9, 9), bool)))
    other = net.const(value, np.float32)
    y = net.node("Where", [mask, x, other] if first else [mask, other, x])
    graph = check_model(net.model(net.q(y, *target)), exact=target == PARAMS)
    assert kinds(graph)[-1] == "eltwise"


def test_where_with_one_value_in_all_places():
    net = Net(16)
    x, mask = net.dq(net.input((1, 9, 9)), *PARAMS), net.const(np.tril(np.ones((9, 9), bool)))
    y = net.node("Where", [mask, x, net.const(np.full((9, 9), -np.inf), np.float32)])
    assert kinds(check_model(net.model(net.q(y, *PARAMS)), exact=True))[-1] == "eltwise"


@pytest.mark.parametrize(
    ("other", "reason"), [("tensor", "between two computed tensors"), ("constant", "has shape .*; it may be one value")]
)
def test_other_choices_are_refused(other, reason):
    net = Net(16)
    x, mask = net.dq(net.input((1, 9, 9)), *PARAMS), net.const(np.tril(np.ones((9, 9), bool)))
    second = (
        net.dq(net.input((1, 9, 9), name="z"), *PARAMS) if other == "tensor" else net.const(np.arange(9), np.float32)
    )
    with pytest.raises(UnsupportedModel, match=reason):
        import_model(net.model(net.q(net.node("Where", [mask, x, second]), *PARAMS)))
