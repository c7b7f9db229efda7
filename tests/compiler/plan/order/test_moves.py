import random

import pytest

from benchmarks.order_examples import two_orders
from compiler.plan.order.annealing import neighbours, random_move
from compiler.plan.order.graph import OperatorNode, OrderGraph
from compiler.plan.order.orders import every_order
from tests.support.order_graphs import random_graph


@pytest.mark.parametrize("seed", range(6))
def test_neighbours_move_one_operator(seed):
    graph = random_graph(seed, 7)
    everything = list(every_order(graph))
    for order in everything[:20]:
        found = list(neighbours(graph, order))
        expected = {
            other
            for other in everything
            if other != order
            and any(tuple(x for x in other if x != n) == tuple(x for x in order if x != n) for n in order)
        }
        assert len(found) == len(set(found))
        assert set(found) == expected


def test_random_moves_reach_every_neighbour():
    graph, rng = random_graph(2, 7), random.Random(4)
    drawn = {random_move(graph, graph.source, rng) for _ in range(500)}
    assert drawn == set(neighbours(graph, graph.source))


def test_nothing_to_move():
    graph = OrderGraph("pair", (OperatorNode("a"), OperatorNode("b")), frozenset({(0, 1)}))
    assert random_move(graph, (0, 1), random.Random(1)) == (0, 1)
    assert random_move(two_orders(), (0, 1, 2, 3), random.Random(1)) == (0, 2, 1, 3)
