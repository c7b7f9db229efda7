import math

import pytest

from benchmarks.order_search.price import ChipModel, OrderPrice
from compiler.plan.order.annealing import annealed
from compiler.plan.order.greedy import greedy_order
from compiler.plan.order.orders import every_order
from tests.support.order_graphs import random_graph

CHIP = ChipModel(1 << 40, 8.0)


@pytest.mark.parametrize("seed", range(20))
def test_result_is_an_order_and_never_worse(seed):
    graph = random_graph(seed, 12)
    price = OrderPrice(graph, CHIP)
    first = greedy_order(graph)
    found = annealed(graph, price, first, 200, seed)
    assert graph.is_order(found) and price(found) <= price(first)
    assert annealed(graph, price, first, 200, seed) == found


def test_finds_most_optima_of_small_graphs():
    hits = 0
    for seed in range(20):
        graph = random_graph(seed, 9)
        price = OrderPrice(graph, CHIP)
        best = min(map(price, every_order(graph)))
        hits += math.isclose(price(annealed(graph, price, graph.source, 500, seed)), best)
    assert hits >= 15


def test_no_more_tries_than_asked_for_and_none_when_time_is_up():
    graph, tried = random_graph(3, 12), []

    def price(order):
        tried.append(order)
        return float(len(tried))

    assert annealed(graph, price, graph.source, 10) == graph.source
    assert len(tried) == 10 and len(set(tried)) == 10
    annealed(graph, price, graph.source, 10, over=lambda: True)
    assert len(tried) == 11


def test_one_order_alone_is_tried_once():
    graph, tried = random_graph(0, 1), []
    assert annealed(graph, lambda order: tried.append(order) or 1.0, graph.source, 50) == graph.source
    assert len(tried) == 1
