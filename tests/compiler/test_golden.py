"""The layer check finds what it should find, and tolerates what its rule says."""

import numpy as np
import pytest

from compiler import golden, reference
from compiler.frontend import import_model
from tests.support.golden_check import check_graph, random_inputs
from tests.support.onnx_models import Net, sandwich


def _values(model):
    graph = import_model(model)
    return graph, reference.run_all(graph, random_inputs(graph))


def _damaged(value: np.ndarray, count: int, step: int = 1) -> np.ndarray:
    flat = value.astype(np.int64).ravel()
    flat[:count] += np.where(flat[:count] > 0, -step, step)
    return flat.reshape(value.shape).astype(value.dtype)


def test_one_wrong_element_of_a_convolution_fails():
    net = Net()
    x = net.dq(net.input((1, 3, 6, 6)), 0.031, 7)
    graph, values = _values(net.model(net.q(net.conv(x, 0.031, (8, 3, 3, 3)), 0.9)))
    op = graph.ops[0]
    assert golden.check_layer(graph, op, values, values[op.output]).ok
    check = golden.check_layer(graph, op, values, _damaged(values[op.output], 1))
    assert (check.ok, check.exact_required, check.mismatches, check.max_diff) == (False, True, 1, 1)
    assert check.name == op.name


@pytest.mark.parametrize(("count", "step", "ok"), [(0, 0, True), (2, 1, True), (3, 1, False), (1, 2, False)])
def test_tolerance_of_an_addition(count, step, ok):
    shape = (1, 6, 16, 20)  # 1920 elements: 0.1 % rounded up are two
    graph, values = _values(sandwich("Add", [(shape, 0.5, 0), (shape, 1.0, 0)], (1.5 * 2**0.5, 0)))
    op = graph.ops[0]
    check = golden.check_layer(graph, op, values, _damaged(values[op.output], count, step))
    assert (check.ok, check.mismatches, check.exact_required) == (ok, count, False)


def test_movement_must_be_exact():
    net = Net()
    parts = [net.input((1, 4, 5, 5), name=name) for name in ("a", "b")]
    graph, values = _values(net.model(net.node("Concat", parts, axis=1)))
    op = graph.ops[-1]
    assert not golden.check_layer(graph, op, values, _damaged(values[op.output], 1)).ok


def test_a_layer_is_judged_on_the_data_it_had():
    net = Net()
    x = net.dq(net.input((1, 3, 6, 6)), 0.031, 7)
    y = net.dq(net.q(net.conv(x, 0.031, (8, 3, 3, 3)), 0.9), 0.9)
    graph, values = _values(net.model(net.q(net.conv(y, 0.9, (4, 8, 1, 1)), 30.0)))
    first, second = graph.ops
    values[first.output] = _damaged(values[first.output], 5, 40)
    values.update(reference.run_op(second, graph, values))
    checks = check_graph(graph, values)
    assert [check.ok for check in checks] == [False, True]


def test_only_rounding_ties_are_excused():
    inputs = [((1, 6, 24, 20), 0.013, 0)]
    model = sandwich("AveragePool", inputs, (0.013, 0), kernel_shape=[2, 2], strides=[2, 2])
    graph, values = _values(model)
    op = graph.ops[0]
    check = golden.check_layer(graph, op, values, values[op.output])
    assert check.ok
    assert check.ties == check.mismatches > 0
    assert not golden.check_layer(graph, op, values, _damaged(values[op.output], 20)).ok


def test_a_float_bias_may_be_rounded_where_onnxruntime_has_no_integer_kernel():
    """MatMul on three axes, a float bias and Relu run in float there: its bias has not become an integer."""
    net = Net(seed=72)
    x = net.dq(net.input((1, 512, 8), "uint8"), 0.04, 120, "uint8")
    bias = net.const(net.rng.normal(0, 2, 128), np.float32)
    total = net.node("Add", [net.node("MatMul", [x, net.weights((8, 128), None)[0]]), bias])
    graph, values = _values(net.model(net.q(net.node("Relu", [total]), 0.035, 5, "uint8"), dtype="uint8"))
    op = graph.ops[-1]
    check = golden.check_layer(graph, op, values, values[op.output])
    assert check.ok and not check.exact_required
    assert check.ties == check.mismatches > golden.TOLERATED * check.elements
    assert not golden.check_layer(graph, op, values, _damaged(values[op.output], 200)).ok


def _several_operators(kind):
    """A node that has no operator of its own."""
    net = Net(17)
    x = net.dq(net.input((1, 4, 12, 11)), 0.04, 3)
    if kind == "ConvTranspose":
        y = net.node(kind, [x, net.weights((4, 8, 3, 3), None)[0]], strides=[2, 2])
        return _values(net.model(net.q(y, 0.9, 5)))
    y = net.node(kind, [x, "", net.const([1, 1, 4, 4], np.float32)], mode="linear")
    return _values(net.model(net.q(y, 0.04, 3)))


@pytest.mark.parametrize("kind", ["ConvTranspose", "Resize"])
def test_what_several_operators_compute_is_judged_by_the_node(kind):
    graph, values = _several_operators(kind)
    (op,) = [op for op in graph.ops if graph.tensors[op.output].onnx_name]
    assert golden.judged(graph, op)
    check = golden.check_layer(graph, op, values, values[op.output])
    assert check.ok and check.max_diff <= 1 and check.ties == check.mismatches
    assert not golden.check_layer(graph, op, values, _damaged(values[op.output], 1, 2)).ok
    assert not golden.check_layer(graph, op, values, _damaged(values[op.output], values[op.output].size // 50)).ok


def test_half_way_cases_of_an_interpolation_are_ties():
    """More of them than others may differ: onnxruntime's coordinates are float32."""
    graph, values = _several_operators("Resize")
    check = golden.check_layer(graph, graph.ops[-1], values, values[graph.ops[-1].output])
    assert check.ties > golden.TOLERATED * check.elements


def test_another_name_is_not_judged():
    net = Net()
    x = net.dq(net.input((1, 3, 6, 6)), 0.031, 7)
    y = net.node("Reshape", [net.q(net.conv(x, 0.031, (8, 3, 3, 3)), 0.9), net.const([1, -1], np.int64)])
    graph, _ = _values(net.model(y))
    assert [golden.judged(graph, op) for op in graph.ops if op.kind == "reshape"].count(True) == 0


def test_sessions_are_cached(monkeypatch):
    graph, values = _values(sandwich("Relu", [((1, 6, 4, 4), 0.05, 0)], (0.05, 0)))
    op = graph.ops[0]
    golden.check_layer(graph, op, values, values[op.output])

    def refuse(*_):
        raise AssertionError("a second session")

    monkeypatch.setattr(golden, "_session_and_kernels", refuse)
    assert golden.check_layer(graph, op, values, values[op.output]).ok


def test_golden_outputs_by_name():
    model = sandwich("Relu", [((1, 2), 0.5, 0)], (0.5, 0))
    outputs = golden.golden_outputs(model, {"x0": np.array([[-3, 4]], np.int8)})
    assert [value.tolist() for value in outputs.values()] == [[[0, 4]]]
