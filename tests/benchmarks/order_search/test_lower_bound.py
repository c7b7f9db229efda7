import sys

import pytest

from benchmarks.order_examples import seventy_orders, two_orders
from benchmarks.order_search.lower_bound import NoSolverError, exact_bound, quick_bound
from benchmarks.order_search.price import ChipModel, OrderPrice
from compiler.plan.order.orders import every_order
from tests.support.order_graphs import random_graph

ROOMY = 1 << 40


@pytest.fixture(scope="module")
def solver():
    return pytest.importorskip("ortools")


@pytest.mark.parametrize("tile", [1.0, 0.25])
@pytest.mark.parametrize("seed", range(8))
def test_exact_bound_is_the_best_of_all_orders(seed, tile, solver):
    """Two ways to one number: pricing every order, and constraint programming."""
    graph, chip = random_graph(seed, 8), ChipModel(ROOMY, 8.0, tile=tile, ahead=8)
    best = min(map(OrderPrice(graph, chip), every_order(graph)))
    bound = exact_bound(graph, chip)
    assert bound.exact
    assert bound.cycles == pytest.approx(best, abs=1)
    assert bound.cycles <= best
    assert quick_bound(graph, chip) <= best


@pytest.mark.parametrize("changes", [{"on_chip_bytes": 4000}, {"ahead": 1}, {"window": 2}])
@pytest.mark.parametrize("seed", range(4))
def test_what_the_bound_leaves_out_only_costs_more(seed, changes, solver):
    graph, chip = random_graph(seed, 8), ChipModel(**{"on_chip_bytes": ROOMY, "dram_bytes_per_cycle": 8.0, **changes})
    best = min(map(OrderPrice(graph, chip), every_order(graph)))
    assert exact_bound(graph, chip).cycles <= best
    assert quick_bound(graph, chip) <= best


def test_worked_examples(solver):
    for graph, cycles in [(seventy_orders(), 320), (two_orders(), 80)]:
        assert exact_bound(graph, ChipModel(ROOMY, 8.0)).cycles == cycles


def test_quick_bound_counts_what_comes_before_and_after():
    """conv 40, matmul 30 on one unit and softmax 10 behind: nothing hides the softmax."""
    assert quick_bound(two_orders(), ChipModel(ROOMY, 8.0)) == 80


def test_without_the_solver(monkeypatch):
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    with pytest.raises(NoSolverError, match="pip install"):
        exact_bound(two_orders(), ChipModel(ROOMY, 8.0))
