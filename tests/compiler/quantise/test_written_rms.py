"""Nodes of root mean square normalisations that are written out: found, and left out of quantisation."""

import dataclasses

import numpy as np
import onnx
import pytest

from compiler import quantise
from compiler.quantise.written_rms import rms_nodes
from tests.support.golden_check import check_model, kinds
from tests.support.onnx_models import Net
from tests.support.written_norms import Form, written

WIDTH = 24
FORMS = {
    "div": Form(), "reciprocal": Form(quotient="reciprocal"), "one": Form(opset=18, quotient="one", turned=True),
    "rsqrt": Form(square="mul", quotient="rsqrt"),
}  # fmt: skip


def _model(form: Form, gamma=None, break_at: str = "") -> tuple[onnx.ModelProto, list[str]]:
    """A residual sum, the normalisation and a product; the names of the nodes of the second."""
    net = Net(form.opset)
    x = net.input((1, 10, WIDTH), "float32")
    total = net.node("Add", [net.node("MatMul", [x, net.const(net.rng.normal(0, 0.3, (WIDTH, WIDTH)), "float32")]), x])
    first = len(net.nodes)
    y = written(net, total, dataclasses.replace(form, centred=False), 1e-5, gamma)["y"]
    inside = net.nodes[first:]
    if break_at:
        next(node for node in inside if node.op_type == break_at).op_type = "Sub"
    weights = net.const(net.rng.normal(0, 0.3, (WIDTH, WIDTH)), "float32")
    model = net.model(net.node("MatMul", [y, weights]), dtype="float32")
    return model, [node.name for node in inside if node.op_type != "Constant"]


@pytest.mark.parametrize("gamma", [None, np.linspace(0.5, 1.5, WIDTH)])
@pytest.mark.parametrize("form", FORMS)
def test_all_nodes_are_found(form, gamma):
    model, inside = _model(FORMS[form], gamma)
    assert sorted(rms_nodes(model)) == sorted(inside)


def test_what_only_looks_like_it_is_not():
    model, _ = _model(Form(), break_at="Add")
    assert rms_nodes(model) == []


@pytest.mark.parametrize("form", FORMS)
def test_quantised_it_is_one_operator(form, tmp_path):
    model, _ = _model(FORMS[form], np.linspace(0.5, 1.5, WIDTH))
    rng = np.random.default_rng(0)
    feeds = [{"x": rng.normal(0, 1, (1, 10, WIDTH)).astype(np.float32)} for _ in range(3)]
    quantise.quantise(quantise.prepared(model), feeds, tmp_path / "q.onnx")
    found = kinds(check_model(onnx.load(tmp_path / "q.onnx")))
    assert [kind for kind in found if kind != "reshape"] == ["conv", "eltwise", "rmsnorm", "conv"]
