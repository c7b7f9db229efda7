"""Operators of transformers: products of computed tensors, softmax, layer normalisation, class tokens."""

import numpy as np
import pytest

from compiler import reference
from compiler.frontend import import_model
from compiler.frontend.problems import UnsupportedModel
from tests.support.golden_check import check_graph, check_model, kinds, random_inputs
from tests.support.onnx_models import Net


def _stored(net: Net, x: str, scale: float, zero: int = 0, dtype: str = "int8") -> str:
    return net.dq(net.q(x, scale, zero, dtype), scale, zero, dtype)


def _operand(net: Net, shape, name: str, dtype: str = "int8") -> str:
    return net.dq(net.input(shape, dtype, name), 0.03, 5, dtype)


def _heads(net: Net, x: str, heads: int, width: int, perm) -> str:
    split = net.node("Reshape", [x, net.const([0, -1, heads, width], np.int64)])
    return net.node("Transpose", [split], perm=perm)


def attention(
    heads: int = 3, width: int = 8, length: int = 10, mask: tuple[int, ...] | None = None, causal: str = ""
) -> Net:
    """Heads split and joined as exporters write it; its last tensor is what ``Net.model`` takes."""
    net = Net(opset=17)
    q, k, v = (_operand(net, (1, length, heads * width), name) for name in "qkv")
    q, v = (_heads(net, x, heads, width, (0, 2, 1, 3)) for x in (q, v))
    scores = _stored(net, net.node("MatMul", [q, _heads(net, k, heads, width, (0, 2, 3, 1))]), 0.2)
    scores = _stored(net, net.node("Div", [scores, net.const(8**0.5, np.float32)]), 0.08)
    if mask:
        scores = _stored(net, net.node("Add", [scores, _operand(net, mask, "mask")]), 0.1)
    if causal:
        scores = _stored(net, _causal(net, scores, length, causal), 0.12, 60)
    weights = _stored(net, net.node("Softmax", [scores], axis=-1), 1 / 255, -128)
    mixed = _stored(net, net.node("MatMul", [weights, v]), 0.02)
    mixed = net.node("Transpose", [mixed], perm=(0, 2, 1, 3))
    net.last = net.q(net.node("Reshape", [mixed, net.const([0, -1, heads * width], np.int64)]), 0.02)
    return net


def _causal(net: Net, scores: str, length: int, form: str) -> str:
    """A mask of all rows, as a constant that is added, or as a choice. The lowest stored value still has an
    exponential."""
    kept = np.tri(length, dtype=bool)
    if form == "where":
        return net.node("Where", [net.const(kept), scores, net.const(-20.0, np.float32)])
    added = np.where(kept, 0, -128).astype(np.int8)[None, None]
    return net.node("Add", [scores, net.dq(net.const(added), {"saturated": 0.3, "huge": 2.6e36}[form])])


def _judged(model) -> list[str]:
    graph = import_model(model)

    values = reference.run_all(graph, random_inputs(graph, 3))
    for check in check_graph(graph, values):
        assert check.ok, check
    return kinds(graph)


@pytest.mark.parametrize("mask", [None, (1, 1, 1, 10), (10,)])
def test_heads_are_read_where_they_lie(mask):
    net = attention(mask=mask)
    found = _judged(net.model(net.last))
    assert "permute" not in found
    assert [kind for kind in found if kind in ("product", "softmax")] == ["product", "softmax", "product"]


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("form", ["where", "saturated", "huge"])
def test_a_causal_mask_is_a_constant_of_all_rows(form, heads):
    net = attention(heads, causal=form)
    found = _judged(net.model(net.last))
    assert found.count("softmax") == 1 and found.count("eltwise") == 1


@pytest.mark.parametrize("perm", [(0, 1, 2), (0, 2, 1)])
@pytest.mark.parametrize("rank", [2, 3])
def test_product_of_computed_matrices(rank, perm):
    net = Net(opset=17)
    lead = (4,)[: rank - 2]
    b_shape = (12, 7) if perm == (0, 1, 2) else (7, 12)
    a, b = _operand(net, (*lead, 9, 12), "a", "uint8"), _operand(net, (*lead, *b_shape), "b")
    if perm != (0, 1, 2):
        b = net.node("Transpose", [b], perm=perm if rank == 3 else (1, 0))
    graph = check_model(net.model(net.q(net.node("MatMul", [a, b]), 0.1)), exact=True)
    assert kinds(graph).count("product") == 1 and "permute" not in kinds(graph)


def test_qlinear_matmul_of_computed_matrices():
    net = Net(opset=13)
    a, b = net.input((5, 12), "uint8", "a"), net.input((12, 6), "uint8", "b")
    params = [net.const(v, t) for v, t in ((0.1, np.float32), (3, np.uint8), (0.2, np.float32), (9, np.uint8))]
    out = [net.const(0.9, np.float32), net.const(100, np.uint8)]
    y = net.node("QLinearMatMul", [a, *params[:2], b, *params[2:], *out])
    found = kinds(check_model(net.model(y, dtype="uint8"), exact=True))
    assert [kind for kind in found if kind != "reshape"] == ["product"]


@pytest.mark.parametrize("epsilon", [1e-5, 1e-3])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_layer_normalisation(dtype, epsilon):
    net = Net(opset=17)
    x = _operand(net, (1, 30, 70), "x", dtype)
    gain, shift = net.rng.normal(0.5, 1, 70).astype(np.float32), net.rng.normal(0, 1, 70).astype(np.float32)
    gain[:3] = 0, 1e-9, -1e-9  # channels that are all shift
    y = net.node("LayerNormalization", [x, net.const(gain), net.const(shift)], axis=-1, epsilon=epsilon)
    assert _judged(net.model(net.q(y, 0.04, 3, dtype), dtype=dtype)) == ["layernorm"]


@pytest.mark.parametrize("axis", [0, 1])
def test_layer_normalisation_over_other_axes_is_refused(axis):
    net = Net(opset=17)
    x = _operand(net, (4, 6, 8), "x")
    shape = (4, 6, 8)[axis:]
    y = net.node("LayerNormalization", [x, net.const(np.ones(shape, np.float32))], axis=axis)
    with pytest.raises(UnsupportedModel, match="it must be the last"):
        import_model(net.model(net.q(y, 0.04)))


@pytest.mark.parametrize(
    ("gain", "epsilon", "step", "message"),
    [
        (np.nan, 1e-5, 0.04, "not a finite number"),
        (1, np.inf, 0.04, "epsilon inf"),
        (1, -1.0, 0.04, "epsilon -1"),
        (1, 1e30, 0.04, "epsilon 1e"),
        (3e38, 1e-5, 1e-9, "no float32"),
    ],
)
def test_layer_normalisation_with_absurd_numbers_is_refused(gain, epsilon, step, message):
    net = Net(opset=17)
    gains = np.full(24, gain, np.float32)
    y = net.node("LayerNormalization", [_operand(net, (1, 6, 24), "x"), net.const(gains)], axis=-1, epsilon=epsilon)
    with pytest.raises(UnsupportedModel, match=message):
        import_model(net.model(net.q(y, step)))


@pytest.mark.parametrize("step", [1e-30, 1e30])
def test_softmax_in_absurd_steps_is_refused(step):
    net = Net(opset=17)
    y = net.q(net.node("Softmax", [_operand(net, (1, 6, 24), "x")], axis=-1), step)
    with pytest.raises(UnsupportedModel, match="probabilities need steps near 1/256"):
        import_model(net.model(net.q(net.node("Relu", [net.dq(y, step)]), step)))


def test_a_class_token_joins_and_is_taken_out():
    net = Net(opset=17)
    token = net.dq(net.const(net.array((1, 1, 24))), 0.04, 2)
    tokens = _stored(net, net.node("Concat", [token, _operand(net, (1, 6, 24), "x")], axis=1), 0.03, 5)
    first = net.node("Gather", [tokens, net.const(0, np.int64)], axis=1)
    y = net.node("Slice", [tokens, net.const([2]), net.const([5]), net.const([1])])
    graph = import_model(net.model(net.q(net.node("Relu", [_stored(net, first, 0.03, 5)]), 0.03, 5)))
    assert "slice" in kinds(graph) and graph.tensors[graph.outputs[0].tensor].size == 24
    assert _judged(net.model(net.q(y, 0.03, 5)))[-1] == "slice"
