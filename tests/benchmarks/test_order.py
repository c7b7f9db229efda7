"""``caesura bench order``: its graphs, its examples, and the rows on smaller numbers of graphs."""

from pathlib import Path

import pytest

from benchmarks import order, order_programs
from benchmarks.lab import Lab
from benchmarks.order_cases import branchy_graph, graphs
from benchmarks.order_examples import CHIP, seventy_orders, worked_examples
from benchmarks.order_search.depth_first import depth_first
from benchmarks.order_search.price import OrderPrice
from caesura.views.progress import Progress
from compiler.plan.options import Options
from compiler.plan.order.orders import count, every_order
from compiler.plan.order.search import search_order
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


def drawn(graph, timeline):
    """Two rows of columns of 40 cycles: who is on the matrix and on the vector unit."""
    short = dict(zip(graph.source, ["RE", "C1", "MM", "ME", "A1", "C2", "AP", "SU", "A2", "SM"], strict=True))
    rows = []
    for unit in ("matrix", "vector"):
        at = {int(span.begin // 40): short[span.operator] for span in timeline.spans if span.unit == unit}
        rows.append(" ".join([unit, *(at.get(column, "..") for column in range(int(timeline.cycles // 40)))]))
    return rows


def test_documented_timelines():
    """docs/order-search.md draws the source order and the best one."""
    graph = seventy_orders()
    price = OrderPrice(graph, CHIP)
    page = (Path(__file__).parents[2] / "docs" / "order-search.md").read_text()
    for order_shown in (graph.source, search_order(graph, price).order):
        for row in drawn(graph, price.timeline(order_shown)):
            assert f"  {row}\n" in page, row
    prices = {price(one) for one in every_order(graph)}
    assert "depth-first orders take 360 cycles, the worst 400 and the best 320" in page
    assert [price(one) for one in depth_first(graph)] == [360, 360]
    assert (min(prices), max(prices)) == (320, 400)


def test_seventy_orders_compile():
    """The graph that is compiled has the 70 orders of the worked example, and regions."""
    seen = []

    def noted(operators):
        seen.append(operators)
        return operators.source

    with Lab(preset("tiny"), "model", Progress()) as lab:
        graph = order_programs.seventy_layers()
        one = order_programs.compiled(graph, lab, noted, Options())
        cycles, equal = order_programs.run_on(lab, one.image, *order_programs.fed(graph))
    assert count(seen[0]).value == 70 and len(list(depth_first(seen[0]))) == 2
    assert one.joined and one.order == seen[0].source and equal and cycles > 0


def test_row_of_compiled_networks():
    with Lab(preset("tiny"), "model", Progress()) as lab:
        value, correct, detail = order_programs._gain(lab, ("layers",), ("shufflenet_small",))
    assert correct and detail["shufflenet_small"]["regions"] > 0
    cycles = detail["shufflenet_small"]["cycles"]
    assert value == pytest.approx(100 * (1 - cycles["default"] / cycles["layers"])) and value > 0


def test_rank_correlation():
    assert order_programs.spearman([1.0, 2.0, 3.0], [10, 20, 40]) == pytest.approx(1)
    assert order_programs.spearman([1.0, 2.0, 3.0], [40, 20, 10]) == pytest.approx(-1)
    assert order_programs.spearman([1.0, 1.0, 2.0], [5, 5, 9]) == pytest.approx(1)
    assert order_programs.spearman([1.0, 1.0, 1.0], [5, 6, 9]) == 0
