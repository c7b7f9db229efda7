import random
from collections import Counter

import networkx as nx
import pytest

from benchmarks.order_examples import seventy_orders, two_orders
from benchmarks.order_search.depth_first import depth_first
from compiler.plan.order.graph import OperatorNode, OrderGraph
from compiler.plan.order.orders import (
    completions,
    count,
    every_order,
    has_choice,
    random_order,
)
from tests.support.order_graphs import random_graph


def unconnected(size):
    return OrderGraph("unconnected", tuple(OperatorNode(f"op{i}") for i in range(size)), frozenset())


def test_worked_examples():
    """docs/methods.md: exactly two orders, and 8!/(4! 4!)."""
    assert list(every_order(two_orders())) == [(0, 1, 2, 3), (0, 2, 1, 3)]
    assert count(two_orders()).value == 2
    assert count(seventy_orders()).value == len(list(every_order(seventy_orders()))) == 70
    assert sorted(depth_first(seventy_orders())) == [tuple(range(10)), (0, 5, 6, 7, 8, 1, 2, 3, 4, 9)]


@pytest.mark.parametrize("seed", range(12))
def test_orders_are_those_of_networkx(seed):
    graph = random_graph(seed, 8)
    expected = {tuple(order) for order in nx.all_topological_sorts(graph.flow())}
    found = list(every_order(graph))
    assert found[0] == graph.source
    assert len(found) == len(set(found))
    assert set(found) == expected
    assert (count(graph).value, count(graph).exact) == (len(expected), True)
    assert has_choice(graph) == (len(expected) > 1)
    assert all(graph.is_order(order) for order in found)


def test_count_of_many_orders():
    assert count(unconnected(12)).value == 479001600
    assert str(count(unconnected(12))) == "479,001,600"


def test_count_gives_up_with_a_true_bound():
    counted = count(unconnected(12), downsets=300)
    assert not counted.exact
    assert 1 < counted.value < 479001600
    assert not counted.at_most(10**9)
    assert str(counted).startswith("more than ")
    assert completions(unconnected(12), downsets=300) is None


def test_empty_graph_has_one_order():
    assert list(every_order(unconnected(0))) == [()]
    assert count(unconnected(0)).value == 1


def test_random_orders_are_equally_likely():
    """A lone operator beside a chain of three: four orders, of which drawing by turns makes the first too likely."""
    operators = tuple(OperatorNode(f"op{i}") for i in range(4))
    graph = OrderGraph("lone", operators, frozenset({(0, 1), (1, 2)}))
    rng, ways = random.Random(7), completions(graph)
    drawn = Counter(random_order(graph, rng, ways) for _ in range(4000))
    assert set(drawn) == set(every_order(graph))
    assert all(900 < times < 1100 for times in drawn.values()), drawn
    by_turns = Counter(random_order(graph, rng) for _ in range(4000))
    assert by_turns[3, 0, 1, 2] > 1500


def test_edges_must_lead_forward():
    with pytest.raises(ValueError, match="edge 1 -> 0 is not from an earlier to a later"):
        OrderGraph("back", (OperatorNode("a"), OperatorNode("b")), frozenset({(1, 0)}))


def test_is_order_refuses_what_is_none():
    graph = two_orders()
    for wrong in [(0, 1, 2), (1, 0, 2, 3), (0, 1, 1, 3), (0, 1, 2, 7), (0, 1, 3, 2)]:
        assert not graph.is_order(wrong), wrong
