"""Branchy networks: the front end takes every operator, results are exact, and there are orders to choose from."""

import networkx as nx
import numpy as np
import pytest

import caesura
from benchmarks.workloads import branchy, inputs, names, workload
from benchmarks.workloads.layers import Kind
from compiler import Options, golden
from compiler.frontend import import_model
from compiler.ir import Host

SMALL = [name for name in branchy.NETWORKS if name.endswith("_small")]


@pytest.fixture(scope="module")
def device():
    with caesura.open("tiny", "model") as device:
        yield device


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "nasnet_small" else ()) for name in SMALL]
)
def test_results_are_exact(name, device):
    graph = import_model(workload(name))
    assert not [op.reason for op in graph.ops if isinstance(op, Host)]
    model = device.load(caesura.compile(workload(name), "tiny", options=Options(order="source")))
    outputs, stats = model.run(inputs(name))
    device.unload(model)
    expected = golden.golden_outputs(workload(name), inputs(name))
    assert all(np.array_equal(outputs[key], expected[key]) for key in expected)
    assert len({float(value) for value in outputs["logits"].ravel()}) > 5
    assert stats.cycles < 100_000


@pytest.mark.parametrize("name", branchy.NETWORKS)
def test_there_are_branches(name):
    network = branchy.NETWORKS[name]()
    flow = nx.DiGraph((source, layer.name) for layer in network.layers for source in layer.sources)
    assert nx.is_directed_acyclic_graph(flow)
    assert list(flow.successors(network.layers[-1].name)) == []
    assert sum(degree > 1 for _, degree in flow.out_degree()) >= 2
    assert name in names()


def test_shapes_of_the_families():
    inception = branchy.inception(1.0, 112)
    assert inception.shape("module1.concat") == (256, 28, 28)
    assert inception.shape("module3.concat") == (512, 14, 14)
    densenet = branchy.densenet(growth=24)
    assert densenet.channels("block1.4.concat") == 2 * 24 + 4 * 24
    shuffled = [layer for layer in branchy.shufflenet().layers if layer.kind is Kind.SHUFFLE]
    assert {layer.groups for layer in shuffled} == {4}
    cell = [layer for layer in branchy.nasnet().layers if layer.name.startswith("cell1.")]
    assert sum(layer.kind is Kind.ADD for layer in cell) == 5


def test_wiring_follows_the_seed():
    one, again, other = (branchy.random_wired(seed=seed) for seed in (1, 1, 2))
    assert one == again
    assert one != other
