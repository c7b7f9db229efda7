"""Decoders of one token, quantised by the project's own path and run step by step in onnxruntime."""

from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from compiler import import_model, quantise, reference, states_of
from compiler.quantise.state_scales import StateNotStored, one_scale_each
from tests.support.golden_check import check_graph, kinds
from tests.support.step_models import PAST, StepNet, feed_of, quantised_step_model, run_steps, step_model

NETS = {
    "written out": StepNet(),
    "written out, shapes computed": StepNet(shapes="computed", position="one", key_heads=1),
    "written out, biased, learned positions": StepNet(biased=True, rotated=False, key_heads=4),
    "operators": StepNet(operators=True),
    "operators, heads apart": StepNet(operators=True, joined=False, biased=True),
    "operators, Concat in front": StepNet(operators=True, inside=False, layers=1),
    "operators, no positions": StepNet(operators=True, position="none", key_heads=4, layers=1),
}


@pytest.fixture(scope="module", params=NETS)
def quantised(request, tmp_path_factory):
    net, path = NETS[request.param], tmp_path_factory.mktemp("step") / "q.onnx"
    return net, quantised_step_model(net, path)


def _signal_to_noise(net: StepNet, model: onnx.ModelProto, made: onnx.ModelProto, length: int) -> float:
    signal = noise = 0.0
    (tokens,) = net.tokens(1, length, seed=1)
    for wanted, got in zip(run_steps(model, net, tokens), run_steps(made, net, tokens), strict=True):
        signal += np.square(wanted["logits"]).sum()
        noise += np.square(wanted["logits"] - got["logits"]).sum()
    return 10 * np.log10(signal / noise)


def test_it_is_near_the_float_one(quantised):
    net, made = quantised
    assert _signal_to_noise(net, step_model(net), made, 12) > 25
    assert not {"Attention", "RotaryEmbedding", "Neg"} & {node.op_type for node in made.graph.node}


@pytest.mark.parametrize("as_written", [False, True])
def test_a_present_comes_back_as_it_is(quantised, as_written):
    net, made = quantised
    before = None
    for found in run_steps(made, net, net.tokens(1, 8, seed=5)[0], as_written=as_written):
        for _, name in net.states if before else ():
            np.testing.assert_array_equal(found[name][:, :, :-1], before[name])
        before = found
    assert before["present.0.key"].shape[2] == 8


def test_each_state_has_one_scale(quantised):
    net, made = quantised
    found = states_of(made).found
    assert [(state.past, state.present) for state in found] == net.states
    makers = {name: node for node in made.graph.node for name in node.output}
    for state in found:
        concat = makers[state.node]
        backs = [makers[name] for name in (*concat.input, state.present)]
        stores = [makers[node.input[0]] for node in backs]
        assert [node.op_type for node in (*backs, *stores)] == ["DequantizeLinear"] * 3 + ["QuantizeLinear"] * 3
        assert len({tuple(node.input[1:]) for node in (*backs, *stores)}) == 1
        assert stores[0].input[0] == state.past and stores[2].input[0] == state.node
    assert len({makers[state.present].input[1] for state in found}) == len(found)


def test_the_past_stays_open(quantised):
    _, made = quantised
    dims = [value.type.tensor_type.shape.dim for value in made.graph.input if "past" in value.name]
    assert {each[2].dim_param for each in dims} == {PAST}


def test_tables_are_looked_up_in_8_bits(quantised):
    net, made = quantised
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in made.graph.initializer}
    readers = {name: node for node in made.graph.node for name in node.input}
    gathers = [node for node in made.graph.node if node.op_type == "Gather" and node.input[0] in constants]
    assert len(gathers) == 1 + {"none": 0}.get(net.position, 2 if net.rotated else 1)
    for node in gathers:
        assert constants[node.input[0]].dtype == np.int8
        back = readers[node.output[0]]
        assert back.op_type == "DequantizeLinear" and constants[back.input[1]].shape == ()


def test_the_accelerator_takes_a_step_of_one_length(quantised):
    net, made = quantised
    graph = import_model(made, sizes={PAST: 7})
    found = kinds(graph)
    assert found.count("product") == found.count("softmax") * 2 == net.layers * 2
    assert found.count("rmsnorm") == 2 * net.layers + 1
    ops = {op.output: op for op in graph.ops}
    appends = [op for op in graph.ops if op.kind == "append"]
    assert len(appends) == len(net.states)
    for op in appends:  # nothing is stored in other steps on the way
        tensors = [graph.tensors[name] for name in (*op.results, *op.inputs[:2])]
        assert len({tensor.scale for tensor in tensors}) == 1
        assert ops[op.inputs[1]].kind in ("permute", "reshape", "eltwise", "conv", "table")


def test_every_operator_keeps_to_the_contract(quantised):
    net, made = quantised
    sequence = [feed_of(net, token, at) for at, token in enumerate(net.tokens(1, 8, seed=3)[0])]
    *_, (feed, wanted) = quantise.StepModel(made).steps(sequence)
    graph = import_model(made, sizes={PAST: 7})
    assert [check for check in check_graph(graph, reference.run_all(graph, feed)) if not check.ok] == []
    found = reference.run(graph, feed)
    for _, present in net.states[:2]:  # of the first layer: behind it, softmax may differ by a step
        np.testing.assert_array_equal(found[present], wanted[present])


def test_ranges_are_those_of_all_steps():
    net = StepNet(layers=1)
    model = step_model(net)
    feeds = quantise.StepFeeds(model, [[feed_of(net, 5, at) for at in range(length)] for length in (3, 2)])
    assert len(feeds) == 5
    for _ in range(2):  # one may go through them again
        found = list(feeds)
        assert [feed["past_key_values.0.key"].shape[2] for feed in found] == [0, 1, 2, 0, 1]
    assert found[0].keys() == {value.name for value in model.graph.input}


def _without_steps(model: onnx.ModelProto, output: str) -> Iterator[onnx.NodeProto]:
    """The nodes of a model; who reads 8 bits that come from ``output`` reads that."""
    stored = {f"{output}_QuantizeLinear_Output", f"{output}_DequantizeLinear_Output"}
    for node in model.graph.node:
        node.input[:] = [output if name in stored else name for name in node.input]
        if not stored & set(node.output):
            yield node


def test_a_state_that_is_not_stored_is_told(tmp_path):
    made = quantised_step_model(StepNet(layers=1), tmp_path / "q.onnx")
    nodes = list(_without_steps(made, "past_key_values.0.key"))
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    with pytest.raises(StateNotStored, match=r"past 'past_key_values\.0\.key' is not stored in 8 bits"):
        one_scale_each(made)
