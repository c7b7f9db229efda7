import math

import pytest

from benchmarks.order_examples import seventy_orders, two_orders
from compiler.plan.order.graph import OperatorNode, OrderGraph
from compiler.plan.order.orders import count, every_order, has_choice
from compiler.plan.order.subgraphs import branch_points, key_nodes, link, on_every_path, subgraphs
from tests.support.order_graphs import random_graph


def graph_of(size, *edges):
    return OrderGraph("test", tuple(OperatorNode(f"op{i}", out_bytes=10 << i) for i in range(size)), frozenset(edges))


def test_worked_examples():
    assert key_nodes(seventy_orders()) == [0, 9]
    assert subgraphs(seventy_orders()) == [list(range(10))]
    assert key_nodes(two_orders()) == [0, 3]
    assert subgraphs(two_orders()) == [[0, 1, 2, 3]]


def test_two_diamonds_are_two_subgraphs():
    graph = graph_of(7, (0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (3, 5), (4, 6), (5, 6))
    assert on_every_path(graph) == [0, 3, 6]
    assert branch_points(graph) == [0, 3, 6]
    assert subgraphs(graph) == [[0, 1, 2], [3, 4, 5, 6]]


def test_a_chain_stays_whole():
    graph = graph_of(4, (0, 1), (1, 2), (2, 3))
    assert key_nodes(graph) == [0, 1, 2, 3]
    assert subgraphs(graph) == [[0, 1, 2, 3]]


def test_chains_are_merged_until_each_part_has_a_choice():
    """chain - diamond - chain - diamond - chain."""
    graph = graph_of(
        13, (0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (5, 6), (6, 7), (6, 8), (7, 9), (8, 9), (9, 10), (10, 11),
        (11, 12),
    )  # fmt: skip
    parts = subgraphs(graph)
    assert len(parts) == 2
    assert sorted(parts[0] + parts[1]) == list(range(13))
    assert all(has_choice(graph.part(part, "part")) for part in parts)


def test_several_inputs_and_outputs():
    """Both inputs must come before the only common operator; what follows it has two ends."""
    graph = graph_of(5, (0, 2), (1, 2), (2, 3), (2, 4))
    assert on_every_path(graph) == [2]
    assert subgraphs(graph) == [[0, 1], [2, 3, 4]]


def test_dense_block_is_cut_where_an_edge_passes_by():
    """Operator 3 is on every path, 0 too; 2, which 0 passes by on the way to 3, still comes after 0 and before 3."""
    graph = graph_of(6, (0, 1), (1, 2), (0, 2), (0, 3), (2, 3), (3, 4), (3, 5))
    assert on_every_path(graph) == [0, 3]
    assert key_nodes(graph) == [0, 2, 3]


def test_a_larger_smallest_part():
    graph = graph_of(7, (0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (3, 5), (4, 6), (5, 6))
    assert subgraphs(graph, smallest=5) == [[0, 1, 2, 3, 4, 5, 6]]


@pytest.mark.parametrize("seed", range(30))
def test_parts_make_every_order_of_the_whole(seed):
    """Key nodes are cuts: the orders of the parts, linked, are all orders of the graph, and no part is left that has
    none to choose from."""
    graph = random_graph(seed, 9, reach=2 + seed % 3)
    parts = subgraphs(graph)
    pieces = [graph.part(part, "part") for part in parts]
    assert math.prod(count(piece).value for piece in pieces) == count(graph).value
    assert len(parts) == 1 or all(has_choice(piece) for piece in pieces)
    for order in every_order(pieces[-1]):
        assert graph.is_order(link(parts, [*(piece.source for piece in pieces[:-1]), order]))


def test_part_knows_what_is_alive_around_it():
    """0 -> 1 -> 2 -> 3, and 3 and 1 read 0, 4 reads 2."""
    graph = graph_of(5, (0, 1), (1, 2), (2, 3), (0, 3), (2, 4))
    part = graph.part([1, 2], "part")
    assert [operator.name for operator in part.operators] == ["op1", "op2"]
    assert part.edges == {(0, 1)}
    assert part.kept == {1}
    (held,) = part.held
    assert (held.size, held.readers, held.survives) == (10, {0}, True)
    last = graph.part([3, 4], "last")
    assert {(tensor.size, tensor.readers, tensor.survives) for tensor in last.held} == {
        (10, frozenset({0}), False),
        (40, frozenset({0, 1}), False),
    }
