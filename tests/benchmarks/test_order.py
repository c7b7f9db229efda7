"""``caesura bench order``: its graphs, its examples, and the rows on smaller numbers of graphs."""

import pytest

from benchmarks import order
from benchmarks.order_cases import branchy_graph, graphs
from benchmarks.order_examples import worked_examples
from compiler.order.orders import count
from hw.contract.params import preset


def test_worked_examples_hold():
    assert [what for what, holds in worked_examples().items() if not holds] == []


def test_graphs_follow_their_seeds():
    assert branchy_graph(3, 12) == branchy_graph(3, 12) != branchy_graph(4, 12)
    found = list(graphs(range(9, 12), lambda graph: count(graph).value > 50, 5))
    assert len({graph.name for graph in found}) == 5
    assert all(count(graph).value > 50 for graph in found)
    for graph in found:
        assert [n for n in graph.source if not graph.predecessors[n]] == [0]
        assert [n for n in graph.source if not graph.successors[n]] == [len(graph) - 1]


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(order, "GRAPHS", 3)
    monkeypatch.setattr(order, "FEWEST_ORDERS", 100)
    monkeypatch.setattr(order, "MOST_ORDERS", 600)
    monkeypatch.setattr(order, "LIMITS", order.SearchLimits(few=0, samples=20, tries=200))


@pytest.mark.parametrize("name", ["finds_optimum", "above_lower_bound"])
def test_rows_of_random_graphs(name, few):
    if name == "above_lower_bound":
        pytest.importorskip("ortools")
    (figure,) = (figure for figure in order.figures() if figure.name == name)
    row = figure.row(None)
    assert row.ok, row
    assert row.detail["graphs"] == 3


def test_spill_free_row(few, monkeypatch):
    monkeypatch.setattr(order, "GRAPHS", 1)
    (figure,) = (figure for figure in order.figures() if figure.name == "spill_free_found")
    assert figure.row(None).value == 100


def test_row_of_a_network(monkeypatch):
    monkeypatch.setattr(order, "NETWORKS", ["shufflenet_small"])
    monkeypatch.setattr(order, "NETWORK_LIMITS", order.SearchLimits(few=50, samples=10, tries=50))
    gain, correct, detail = order._gain(preset("tiny"), "shufflenet_small")
    assert correct
    assert gain >= 0
    assert detail["cycles"]["found"] <= detail["cycles"]["source"]
    assert all(part["lower_bound"] <= part["best"] <= part["worst"] for part in detail["subgraphs"])
