"""Random graphs of up to twenty operators: each is equal to onnxruntime, within the contract, or refused by name.

The seed is the test's number; ``make test-all`` runs a thousand. Three comparisons find an error in each stage: every
layer is judged on what it really read; every output behind layers that are exact equals that of onnxruntime from end
to end; and what the device gives is bit for bit what the reference computes. All 8-bit tensors are outputs of the model
that onnxruntime runs from end to end, as it else leaves some out and rounds once where the model says twice.
"""

import numpy as np
import onnx
import pytest

import caesura
from compiler import golden, reference
from compiler.compile import compile_with_report
from compiler.frontend import UnsupportedModel, import_model
from compiler.ir import CompileError, Graph
from compiler.plan.options import ALL_LV2, Options
from sim.backends import DEFAULT_BACKEND
from sim.host import session
from sim.model.bus import ModelBus
from tests.support.golden_check import check_graph, random_inputs
from tests.support.wide_graphs import wide_graph

TINY = caesura.PRESETS["tiny"]
SAMPLE, ALL, ON_RTL = range(25), range(25, 1000), range(1000, 1040)


def imported(seed: int, model: onnx.ModelProto) -> Graph | None:
    """The graph of a model; None if it is refused, which names nodes of the model."""
    try:
        return import_model(model)
    except UnsupportedModel as refusal:
        names = {node.name: node.op_type for node in model.graph.node}
        assert refusal.nodes, seed
        assert all(names.get(node.name) == node.type and node.reason for node in refusal.nodes), (seed, refusal)
        assert "do not fit together" not in str(refusal), f"seed {seed}: an error of ours is told as one of the model's"
        return None


def exact_outputs(graph: Graph, checks: list[golden.OperatorCheck]) -> list[str]:
    """The outputs behind nothing but layers that equal onnxruntime and that it does not compute in its own way."""
    inexact: set[str] = set()
    for op, check in zip(graph.ops, checks, strict=True):
        if check.mismatches or op.kind in golden.AS_WRITTEN or not inexact.isdisjoint(op.inputs):
            inexact.update(op.results)
    return [port.name for port in graph.outputs if port.tensor not in inexact]


def from_end_to_end(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What onnxruntime gives for the outputs where every 8-bit tensor is one."""
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    there = {value.name for value in model.graph.output}
    stored = [node.output[0] for node in model.graph.node if node.op_type == "QuantizeLinear"]
    whole.graph.output.extend(onnx.ValueInfoProto(name=name) for name in stored if name not in there)
    names = [value.name for value in whole.graph.output]
    return dict(zip(names, session(whole).run(names, inputs), strict=True))


def agrees(seed: int, device: caesura.Device) -> None:
    model = wide_graph(seed)
    graph = imported(seed, model)
    if graph is None:
        pytest.skip("refused")
    inputs = random_inputs(graph, seed)
    values = reference.run_all(graph, inputs)
    checks = check_graph(graph, values)
    for check in checks:
        assert check.ok, (seed, check)
    wanted, golden_values = reference.run(graph, inputs), from_end_to_end(model, inputs)
    for name in exact_outputs(graph, checks):
        assert wanted[name].dtype == golden_values[name].dtype
        np.testing.assert_array_equal(wanted[name], golden_values[name], err_msg=f"seed {seed}, output {name}")
    options = Options(order="source", lv2_limit=ALL_LV2, observe=seed % 5 == 0)
    try:
        compiled = compile_with_report(model, TINY, options=options, jobs=1, cache=False)
    except CompileError as refusal:  # of what has no room on the machine
        assert any(repr(node.name) in str(refusal) for node in model.graph.node), (seed, refusal)
        assert "internal error" not in str(refusal), (seed, refusal)
        pytest.skip(str(refusal))
    found, _ = device.load(compiled.image).run(inputs)
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value, err_msg=f"seed {seed}, output {name}")


@pytest.mark.parametrize("seed", [*SAMPLE, *(pytest.param(seed, marks=pytest.mark.slow) for seed in ALL)])
def test_on_the_fast_model(seed):
    agrees(seed, caesura.Device(ModelBus(TINY)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", ON_RTL)
def test_on_the_rtl(seed):
    with caesura.open(TINY, DEFAULT_BACKEND) as device:
        agrees(seed, device)


def test_most_graphs_are_not_refused():
    refused = [seed for seed in SAMPLE if imported(seed, wide_graph(seed)) is None]
    assert len(refused) <= len(SAMPLE) // 4, refused
