"""Root mean square normalisation, as one node and written out, against onnxruntime on the nodes as they are written."""

import dataclasses

import numpy as np
import pytest

from compiler import reference
from compiler.frontend import import_model
from compiler.frontend.problems import UnsupportedModel
from tests.support.golden_check import check_graph, check_model, kinds, random_inputs
from tests.support.onnx_models import Net
from tests.support.written_norms import Form, written


def _operand(net: Net, shape, dtype: str = "int8", scale: float = 0.03, zero: int = 5) -> str:
    return net.dq(net.input(shape, dtype), scale, zero, dtype)


def _judged(model, seed: int = 0) -> list[str]:
    graph = import_model(model)
    for check in check_graph(graph, reference.run_all(graph, random_inputs(graph, seed))):
        assert check.ok, check
    return kinds(graph)


FORMS = [
    dataclasses.replace(form, centred=False)
    for form in (
        Form(), Form(opset=18, square="mul"), Form(quotient="reciprocal", turned=True), Form(quotient="one"),
        Form(root="pow", axis=2), Form(quotient="rsqrt"), Form(square="mul", quotient="rsqrt", turned=True),
    )
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_every_written_form(form, dtype):
    net = Net(form.opset)
    gamma = net.rng.normal(0.5, 1, 70)
    gamma[:3] = 0, 1e-9, -1e-9
    y = written(net, _operand(net, (1, 30, 70), dtype), form, 1e-5, gamma)["y"]
    assert _judged(net.model(net.q(y, 0.04, 3, dtype), dtype=dtype)) == ["rmsnorm"]


def test_it_is_the_same_operator_as_the_node():
    graphs = []
    for as_node in (False, True):
        net = Net(opset=23)
        gamma, x = net.rng.normal(0.5, 1, 48).astype(np.float32), _operand(net, (1, 12, 48))
        node = net.node("RMSNormalization", [x, net.const(gamma)], epsilon=1e-3) if as_node else ""
        y = node or written(net, x, dataclasses.replace(FORMS[0], opset=23), 1e-3, gamma)["y"]
        graphs.append(import_model(net.model(net.q(y, 0.04, 3))))
    (mine,), (theirs,) = (graph.ops for graph in graphs)
    assert (mine.epsilon, mine.exponent) == (theirs.epsilon, theirs.exponent)
    np.testing.assert_array_equal(mine.requantise.scale, theirs.requantise.scale)
    assert len(mine.nodes) == 6 + 2  # of the computation, with both ends


def test_shapes_scales_and_zero_points_at_random():
    seed = int(np.random.default_rng().integers(1 << 32))
    print("seed", seed)
    rng = np.random.default_rng(seed)
    for case in range(16):
        rank = int(rng.integers(2, 5))
        shape = (*(int(size) for size in rng.integers(1, 7, rank - 1)), int(rng.integers(2, 600)))
        dtype = str(rng.choice(["int8", "uint8"]))
        info = np.iinfo(dtype)
        net = Net(23, seed + case)
        x = _operand(net, shape, dtype, float(rng.uniform(0.001, 1)), int(rng.integers(info.min, info.max + 1)))
        gain = net.const(net.rng.normal(0.5, 1, shape[-1]).astype(np.float32))
        y = net.node("RMSNormalization", [x, gain], epsilon=float(rng.choice([1e-6, 1e-5, 1e-2])))
        model = net.model(net.q(y, float(rng.uniform(0.01, 0.1)), 3, dtype), dtype=dtype)
        assert "rmsnorm" in _judged(model, case), (shape, dtype)


@pytest.mark.parametrize("zero", [-128, -5, 0, 127])
@pytest.mark.parametrize("spread", [1, 3, 128])
def test_rows_of_few_steps_and_of_one_sign(zero, spread):
    net = Net(23)
    x = _operand(net, (1, 40, 64), zero=zero)
    y = net.node("RMSNormalization", [x, net.const(np.ones(64, np.float32))], epsilon=1e-6)
    graph = import_model(net.model(net.q(y, 0.04, 3)))
    values = net.rng.integers(-spread, spread, (1, 40, 64)).clip(-128, 127).astype(np.int8)
    values[0, :3] = 9  # no deviation, and a mean that is not zero
    for check in check_graph(graph, reference.run_all(graph, {"x": values})):
        assert check.ok, check


@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 1e-3, 2.0, 1e3])
@pytest.mark.parametrize("behind", [None, "Add", "Mul"])
def test_epsilon_and_a_constant_behind(epsilon, behind):
    net = Net(23)
    x = _operand(net, (1, 40, 24))
    y = net.node("RMSNormalization", [x, net.const(np.full(24, 0.7, np.float32))], epsilon=epsilon)
    if behind:
        y = net.node(behind, [net.const(net.rng.normal(0, 1, 24).astype(np.float32)), y])
    step = 0.03 if epsilon < 1 else 0.03 / np.sqrt(epsilon)
    assert _judged(net.model(net.q(y, step))) == ["rmsnorm"]


@pytest.mark.parametrize("inner", ["variance", "steady", "root"])
def test_inner_values_that_are_read_elsewhere_are_not_lost(inner):
    net = Net()
    made = written(net, _operand(net, (1, 20, 32)), FORMS[0])
    model = net.model(net.q(made["y"], 0.04), net.q(made[inner], 0.05))
    with pytest.raises(UnsupportedModel, match=r"reads its (mean square|variance|deviation)"):
        import_model(model)
    assert "rmsnorm" not in kinds(check_model(model, fallback=True))


@pytest.mark.parametrize(("node", "place"), [("Pow", 1), ("Add", 1), ("Div", 0)])
def test_what_only_looks_like_it_is_refused(node, place):
    net = Net()
    x = _operand(net, (1, 20, 32))
    values = {"Pow": net.const(3.0, np.float32), "Add": net.const(np.full((20, 1), 1e-5), np.float32)}
    values["Div"] = net.dq(net.input((1, 20, 32), name="other"), 0.1)
    made = written(net, x, FORMS[0])
    next(each for each in net.nodes if each.op_type == node).input[place] = values[node]
    model = net.model(net.q(made["y"], 0.04))
    with pytest.raises(UnsupportedModel):
        import_model(model)
    assert "rmsnorm" not in kinds(check_model(model, fallback=True))


def test_other_axes_are_refused():
    net = Net(23)
    y = net.node("RMSNormalization", [_operand(net, (4, 6, 8)), net.const(np.ones((6, 8), np.float32))], axis=1)
    model = net.model(net.q(y, 0.04))
    with pytest.raises(UnsupportedModel, match="it must be the last"):
        import_model(model)
    check_model(model, fallback=True)
