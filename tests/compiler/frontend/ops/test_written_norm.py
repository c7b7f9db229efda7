"""Layer normalisation written out in single operators, against onnxruntime on the nodes as they are written."""

import numpy as np
import pytest

from compiler import reference
from compiler.frontend import import_model
from compiler.frontend.problems import UnsupportedModel
from tests.support.golden_check import check_graph, check_model, kinds, random_inputs
from tests.support.onnx_models import Net
from tests.support.written_norms import Form, written


def _operand(net: Net, shape, dtype: str = "int8", scale: float = 0.03) -> str:
    return net.dq(net.input(shape, dtype), scale, 5, dtype)


def _gains(net: Net, channels: int) -> tuple[np.ndarray, np.ndarray]:
    gamma, beta = net.rng.normal(0.5, 1, channels), net.rng.normal(0, 1, channels)
    gamma[:3] = (0, 1e-9, -1e-9)[: len(gamma[:3])]  # channels that are all bias
    return gamma, beta


def _judged(model, seed: int = 0, **options) -> list[str]:
    graph = import_model(model, **options)
    for check in check_graph(graph, reference.run_all(graph, random_inputs(graph, seed))):
        assert check.ok, check
    return kinds(graph)


FORMS = [
    Form(), Form(axis=2), Form(opset=18), Form(opset=18, axis=2), Form(square="mul"), Form(square="twice"),
    Form(quotient="reciprocal"), Form(quotient="one", turned=True), Form(root="pow"), Form(quotient="rsqrt"),
    Form(square="mul", quotient="reciprocal", turned=True), Form(opset=16, turned=True),
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_every_form_is_one_layer_normalisation(form, dtype):
    net = Net(form.opset)
    y = written(net, _operand(net, (1, 30, 70), dtype), form, 1e-5, *_gains(net, 70))["y"]
    assert _judged(net.model(net.q(y, 0.04, 3, dtype), dtype=dtype)) == ["layernorm"]


def test_it_is_the_same_operator_as_the_node():
    graphs = []
    for as_node in (False, True):
        net = Net(opset=17)
        gamma, beta = _gains(net, 48)
        x = _operand(net, (1, 12, 48))
        inputs = [x, net.const(gamma, np.float32), net.const(beta, np.float32)]
        node = net.node("LayerNormalization", inputs, epsilon=1e-3) if as_node else ""
        y = node or written(net, x, Form(), 1e-3, gamma, beta)["y"]
        graphs.append(import_model(net.model(net.q(y, 0.04, 3))))
    (mine,), (theirs,) = (graph.ops for graph in graphs)
    assert (mine.epsilon, mine.exponent) == (theirs.epsilon, theirs.exponent)
    np.testing.assert_array_equal(mine.bias, theirs.bias)
    np.testing.assert_array_equal(mine.requantise.scale, theirs.requantise.scale)
    assert len(mine.nodes) == 9 + 2  # of the computation, with both ends


@pytest.mark.parametrize("gamma", [None, 0.7, [[0.7] * 24]])
@pytest.mark.parametrize("beta", [None, -0.2])
@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 1e-3, 2.0, 3e3])
def test_scale_bias_and_epsilon(gamma, beta, epsilon):
    net = Net()
    y = written(net, _operand(net, (1, 40, 24)), Form(), epsilon, gamma, beta)["y"]
    step = 0.03 if epsilon < 1 else 0.03 / np.sqrt(epsilon)
    assert _judged(net.model(net.q(y, step))) == ["layernorm"]


@pytest.mark.parametrize("gamma", [0.0, 1e-9, -1e-9])
def test_channels_that_are_all_bias_are_exact(gamma):
    """Also where the bias lies near a half step."""
    net = Net()
    beta = (net.rng.integers(-120, 120, 64) + net.rng.choice([0.46, 0.49, 0.51, 0.54], 64)) * 0.01
    y = written(net, _operand(net, (1, 40, 64)), Form(), 1e-5, np.full(64, gamma), beta)["y"]
    graph = check_model(net.model(net.q(y, 0.01)), exact=True)
    assert kinds(graph) == ["layernorm"]


def test_shapes_at_random():
    seed = int(np.random.default_rng().integers(1 << 32))
    print("seed", seed)
    rng = np.random.default_rng(seed)
    for case in range(12):
        rank = int(rng.integers(2, 5))
        shape = (*(int(size) for size in rng.integers(1, 7, rank - 1)), int(rng.integers(2, 130)))
        form = FORMS[rng.integers(len(FORMS))]
        net = Net(form.opset, seed + case)
        x = _operand(net, shape, scale=float(rng.uniform(0.001, 1)))
        inner = Form(form.opset, int(rng.choice([-1, rank - 1])), form.square, form.root, form.quotient, form.turned)
        y = written(net, x, inner, float(rng.choice([1e-6, 1e-2])), *_gains(net, shape[-1]))["y"]
        assert "layernorm" in _judged(net.model(net.q(y, 0.05)), case), (shape, inner)


def test_quantised_scale_and_bias_and_values_dequantised_once_for_each_reader():
    net = Net()
    stored = net.input((1, 20, 32))
    made = written(net, net.dq(stored, 0.03, 5), Form())
    sub = next(node for node in net.nodes if node.op_type == "Sub")
    sub.input[0] = net.dq(stored, 0.03, 5)
    net.nodes.insert(net.nodes.index(sub), net.nodes.pop())
    scaled = net.node("Mul", [net.dq(net.const(net.array((32,))), 0.01), made["y"]])
    y = net.node("Sub", [scaled, net.dq(net.const(net.array((1, 1, 32))), 0.005)])
    assert _judged(net.model(net.q(y, 0.04))) == ["layernorm"]


def test_a_constant_behind_the_node_is_taken_in():
    net = Net(opset=17)
    y = net.node("LayerNormalization", [_operand(net, (1, 20, 32)), net.const(np.ones(32, np.float32))])
    y = net.node("Add", [net.const(net.rng.normal(0, 1, 32).astype(np.float32)), y])
    assert _judged(net.model(net.q(y, 0.04))) == ["layernorm"]


@pytest.mark.parametrize("shape", [(20, 1), (20, 32), (1, 20, 1), (1, 1, 1, 32)])
def test_a_constant_that_is_not_one_value_per_channel_is_refused(shape):
    net = Net()
    y = written(net, _operand(net, (1, 20, 32)), Form())["y"]
    y = net.node("Mul", [y, net.const(np.full(shape, 0.5), np.float32)])
    model = net.model(net.q(y, 0.04))
    with pytest.raises(UnsupportedModel, match="it must be one value per channel"):
        import_model(model)
    check_model(model, fallback=True)


def test_the_normalised_value_may_be_read_before_its_scale():
    net = Net()
    x = _operand(net, (1, 20, 32))
    y = written(net, x, Form())["y"]
    scaled = net.node("Mul", [y, net.const(net.rng.normal(0, 1, 32).astype(np.float32))])
    assert _judged(net.model(net.q(y, 0.04), net.q(scaled, 0.04))) == ["layernorm", "layernorm"]


@pytest.mark.parametrize("inner", ["mean", "d", "square", "variance", "steady", "root"])
def test_inner_values_that_are_read_elsewhere_are_not_lost(inner):
    net = Net()
    made = written(net, _operand(net, (1, 20, 32)), Form(), 1e-5, *_gains(net, 32))
    model = net.model(net.q(made["y"], 0.04), net.q(made[inner], 0.05))
    with pytest.raises(UnsupportedModel, match=r"QuantizeLinear .* reads its"):
        import_model(model)
    assert "layernorm" not in kinds(check_model(model, fallback=True))


def test_an_inner_value_that_is_an_output_is_not_lost():
    net = Net()
    made = written(net, _operand(net, (1, 20, 32)), Form())
    model = net.model(made["y"], made["variance"], dtype="float32")
    with pytest.raises(UnsupportedModel, match="its variance is an output of the model"):
        import_model(model)
    check_model(model, fallback=True)


@pytest.mark.parametrize(
    ("node", "place", "value"),
    [("Pow", 1, "three"), ("Add", 1, "per row"), ("Sub", 0, "other"), ("Div", 0, "other")],
)
def test_what_only_looks_like_it_is_refused(node, place, value):
    net = Net()
    x = _operand(net, (1, 20, 32))
    values = {"three": net.const(3.0, np.float32), "per row": net.const(np.full((20, 1), 1e-5), np.float32)}
    values["other"] = net.dq(net.input((1, 20, 32), name="other"), 0.1)
    made = written(net, x, Form())
    next(each for each in net.nodes if each.op_type == node).input[place] = values[value]
    model = net.model(net.q(made["y"], 0.04))
    with pytest.raises(UnsupportedModel):
        import_model(model)
    assert "layernorm" not in kinds(check_model(model, fallback=True))


def test_other_axes_are_refused():
    net = Net()
    made = written(net, _operand(net, (2, 20, 32)), Form(axis=1))
    model = net.model(net.q(made["y"], 0.04))
    with pytest.raises(UnsupportedModel):
        import_model(model)
    check_model(model, fallback=True)


@pytest.mark.parametrize(
    ("epsilon", "gamma", "message"),
    [(np.inf, 1.0, "epsilon inf"), (-1.0, 1.0, "epsilon -1"), (1e-5, np.nan, "not a finite number")],
)
def test_absurd_numbers_are_refused(epsilon, gamma, message):
    net = Net()
    y = written(net, _operand(net, (1, 6, 24)), Form(), epsilon, gamma)["y"]
    with pytest.raises(UnsupportedModel, match=message):
        import_model(net.model(net.q(y, 0.04)))


def test_its_input_must_be_quantised():
    net = Net()
    a, b = _operand(net, (1, 6, 24)), net.dq(net.input((1, 6, 24), name="b"), 0.1)
    model = net.model(net.q(written(net, net.node("Add", [a, b]), Form())["y"], 0.04))
    with pytest.raises(UnsupportedModel, match=r"ReduceMean .* is not quantised"):
        import_model(model)
    check_model(model, fallback=True)
