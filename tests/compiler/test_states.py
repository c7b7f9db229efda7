"""Which inputs and outputs of a model are states, and why others are none."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from compiler import states_of
from tests.support.onnx_models import Net
from tests.support.step_models import PAST, StepNet, step_model

NETS = [
    StepNet(),
    StepNet(operators=True),
    StepNet(operators=True, inside=False),
    StepNet(operators=True, joined=False),
]


@pytest.mark.parametrize("net", NETS)
def test_keys_and_values_of_each_layer(net):
    found = states_of(step_model(net))
    assert [(state.past, state.present) for state in found.found] == net.states and not found.refused
    assert {(state.axis, state.label) for state in found.found} == {(2, PAST)} and found.label == PAST


def grown(*, axis: int = 1, order=("past", "new"), dims=(1, PAST, 4), out=("present",), more=(), reads="past"):
    """A model of one Concat. ``out``: outputs; ``more``: (operator, input, output) in front or behind."""
    nodes = [helper.make_node(kind, [source], [made]) for kind, source, made in more]
    nodes.append(helper.make_node("Concat", [reads if name == "past" else name for name in order], ["both"], axis=axis))
    nodes += [helper.make_node("Identity", ["both"], [name]) for name in out]
    new = helper.make_tensor_value_info("new", TensorProto.FLOAT, (1, 1, 4))
    past = helper.make_tensor_value_info("past", TensorProto.FLOAT, dims)
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in out or ("both",)]
    return helper.make_model(helper.make_graph(nodes, "g", [past, new], outputs))


def test_what_hands_on_is_passed():
    (state,) = states_of(grown(more=[("Identity", "past", "alias")], reads="alias")).found
    assert (state.past, state.new, state.present, state.node, state.axis) == ("past", "new", "present", "both", 1)


def test_a_model_for_one_length_has_states_without_a_label():
    (state,) = states_of(grown(dims=(1, 7, 4))).found
    assert state.label is None
    assert not states_of(grown(dims=(1, 7, 4), order=("new", "past"))).refused


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (lambda: grown(order=("new", "past")), "Concat 'both' does not append one tensor behind it"),
        (lambda: grown(order=("past", "new", "new")), "Concat 'both' does not append one tensor behind it"),
        (lambda: grown(axis=2), "Concat 'both' appends along axis 2, and axis 1 grows"),
        (lambda: grown(dims=(1, PAST, "width")), "it has 2 dynamic dimensions behind the first, and one grows"),
        (lambda: grown(dims=(1, None, 4)), "its dynamic dimension has no name"),
        (lambda: grown(out=("present", "again")), "2 outputs are what Concat 'both' makes of it"),
        (
            lambda: grown(out=(), more=[("Relu", "past", "alias")], reads="alias"),
            "no Concat or Attention appends to it",
        ),
    ],
)
def test_what_looks_like_a_past_and_is_none(model, reason):
    found = states_of(model())
    assert not found.found and found.refused == {"past": reason}
    assert found.told() == f"input 'past' is no past of a state: {reason}"


def test_a_present_must_be_given_out():
    model = step_model(StepNet(layers=1))
    del model.graph.output[1:]
    assert [reason[:20] for reason in states_of(model).refused.values()] == ["no output is what Co"] * 2


def test_states_have_one_dimension():
    model = step_model(StepNet(layers=1))
    model.graph.input[3].type.tensor_type.shape.dim[2].dim_param = "other"
    found = states_of(model)
    assert [state.past for state in found.found] == ["past_key_values.0.key"]
    assert found.refused == {"past_key_values.0.value": "its dimension is 'other', and that of states before it 'past'"}


def test_other_models_have_none():
    net = Net()
    x = net.input((1, "rows", 4), "float32")
    y = net.node("Concat", [x, net.const(np.zeros((1, 1, 4)), np.float32)], axis=1)
    graph = helper.make_graph(
        [*net.nodes, helper.make_node("Relu", [y], ["z"])], "g", net.inputs,
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)], net.initializers,
    )  # fmt: skip
    found = states_of(onnx.helper.make_model(graph))
    assert not found.found and not found.refused
