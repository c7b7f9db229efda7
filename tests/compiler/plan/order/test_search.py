import random
from collections import Counter

import pytest

from benchmarks.order_examples import seventy_orders
from benchmarks.order_search.depth_first import depth_first
from benchmarks.order_search.price import ChipModel, OrderPrice
from compiler.plan.order import greedy
from compiler.plan.order.graph import OperatorNode, OrderGraph
from compiler.plan.order.greedy import critical_path_order, critical_paths, greedy_order, least_peak_order
from compiler.plan.order.mcts import TreeSearch
from compiler.plan.order.orders import count, every_order
from compiler.plan.order.residency import peak_bytes
from compiler.plan.order.search import SearchLimits, search_order
from tests.support.order_graphs import random_graph

CHIP = ChipModel(1 << 40, 8.0)


def test_worked_example():
    """docs/methods.md: of 70 orders the best is not one of the two depth-first ones."""
    graph = seventy_orders()
    price = OrderPrice(graph, CHIP)
    found = search_order(graph, price)
    assert (found.tried, found.complete) == (70, True)
    assert found.cycles == min(price(order) for order in every_order(graph)) == 320
    assert [price(order) for order in depth_first(graph)] == [360, 360]
    assert (found.source, found.worst) == (360, max(price(order) for order in every_order(graph)))


@pytest.mark.parametrize("seed", range(20))
def test_tree_search_finds_good_orders_and_prices_each_once(seed):
    graph = random_graph(seed, 11)
    tried = Counter()
    price = OrderPrice(graph, CHIP)

    def counted(order):
        assert graph.is_order(order)
        tried[order] += 1
        return price(order)

    limits = SearchLimits(few=0, samples=20, tries=300, seed=seed)
    found = search_order(graph, counted, limits)
    assert set(tried.values()) == {1}
    assert found.tried == len(tried) <= 310
    assert found.cycles == price(found.order) == min(price(order) for order in tried)
    assert found.cycles <= min(found.source, found.greedy)
    assert search_order(graph, price, limits) == found


def test_tree_search_tries_every_order_and_ends():
    graph = seventy_orders()
    tree = TreeSearch(graph, OrderPrice(graph, CHIP), random.Random(3))
    seen, steps = set(), 0
    while not tree.exhausted:
        seen.add(tree.step()[0])
        steps += 1
    assert seen == set(every_order(graph))
    assert steps < 300


def test_tree_search_beats_random_sampling():
    """On graphs with more orders than anybody tries, with equally many tries."""
    better = Counter()
    for seed in range(8):
        graph = random_graph(seed, 20, reach=8)
        price = OrderPrice(graph, CHIP)
        assert not count(graph).at_most(10_000)
        drawn = search_order(graph, price, SearchLimits(samples=300, tries=300, seed=seed))
        climbed = search_order(graph, price, SearchLimits(samples=50, tries=300, seed=seed))
        better[(climbed.cycles > drawn.cycles) - (climbed.cycles < drawn.cycles)] += 1
    assert better[-1] > 3 * better[1]


def test_good_enough_ends_the_search():
    graph = seventy_orders()
    found = search_order(graph, OrderPrice(graph, CHIP), SearchLimits(good_enough=330))
    assert found.good_enough
    assert found.cycles <= 330
    assert found.tried < 70
    assert not found.complete
    missed = search_order(graph, OrderPrice(graph, CHIP), SearchLimits(good_enough=319))
    assert (missed.good_enough, missed.tried) == (False, 70)


def test_no_time_leaves_the_first_orders():
    found = search_order(random_graph(1, 20), lambda order: 1.0, SearchLimits(seconds=0))
    assert found.tried <= 2


def test_progress_is_told():
    told = []
    search_order(seventy_orders(), OrderPrice(seventy_orders(), CHIP), progress=lambda *now: told.append(now))
    assert [tried for tried, _ in told] == list(range(1, 71))
    assert [best for _, best in told] == sorted((best for _, best in told), reverse=True)


def test_greedy_orders():
    graph = seventy_orders()
    assert critical_paths(graph)[:2] == [240, 200]
    assert graph.is_order(greedy_order(graph))
    assert critical_path_order(graph)[:3] == (0, 1, 5)


def test_greedy_takes_what_can_begin():
    """The vector unit is free and waits for nobody, although the matrix chain is longer."""
    operators = (OperatorNode("m1", matrix=90), OperatorNode("m2", matrix=90), OperatorNode("v", vector=10))
    graph = OrderGraph("free", operators, frozenset({(0, 1)}))
    assert greedy_order(graph) == (0, 2, 1)
    assert critical_path_order(graph) == (0, 1, 2)


@pytest.mark.parametrize("seed", range(20))
def test_least_peak_is_the_least(seed):
    graph = random_graph(seed, 9)
    order = least_peak_order(graph)
    assert graph.is_order(order)
    assert peak_bytes(graph, order) == min(peak_bytes(graph, other) for other in every_order(graph))


def test_search_limits_are_checked():
    with pytest.raises(ValueError, match="at least one try"):
        SearchLimits(tries=0)


def test_tries_are_a_limit():
    found = search_order(random_graph(5, 16), lambda order: float(hash(order) % 997), SearchLimits(few=0, tries=40))
    assert found.tried == 40


def test_of_large_graphs_fewer_orders_are_priced():
    """The limit is on operators of all orders together, so a graph of twice the size costs no more."""
    limits = SearchLimits(few=0, samples=50, tries=200, placed=1200)
    for size in (6, 30, 60):
        found = search_order(random_graph(3, size), lambda order: float(hash(order) % 997), limits)
        assert found.tried <= 200
        assert size <= 6 or 0.8 * 1200 <= found.tried * size <= 1200


def test_least_peak_follows_a_limited_number_of_sets(monkeypatch):
    followed = Counter()
    monkeypatch.setattr(greedy, "MOST_SETS", 400)
    beyond = greedy._state_behind
    monkeypatch.setattr(greedy, "_state_behind", lambda *args: followed.update(all=1) or beyond(*args))
    graph = random_graph(3, 60, reach=12)
    assert graph.is_order(least_peak_order(graph))
    assert 300 <= followed["all"] <= 400
