"""What a search does in a network of hundreds of layers: work that grows with their number, not with its square."""

import numpy as np
import pytest

from compiler.plan.order.graph import MANY, OperatorNode, OrderGraph
from compiler.plan.order.greedy import greedy_order
from compiler.plan.regions.region_beam import QUICK, RegionBeam


def dense(blocks: int, depth: int = 10) -> OrderGraph:
    """Dense blocks one after the other, of ``depth`` convolutions each. Every convolution reads the results of all
    before it in its block, each by a small operator of its own, which nothing but its operand holds up."""
    operators, edges = [OperatorNode("begin", matrix=100)], set[tuple[int, int]]()
    for _ in range(blocks):
        made = [len(operators) - 1]
        for _ in range(depth):
            first = len(operators)
            operators += [OperatorNode("small", vector=5 + place % 3) for place in range(len(made))]
            edges |= {(maker, first + place) for place, maker in enumerate(made)}
            edges |= {(first + place, len(operators)) for place in range(len(made))}
            made.append(len(operators))
            operators.append(OperatorNode("convolution", matrix=60 + 7 * len(made)))
    return OrderGraph("dense", tuple(operators), frozenset(edges))


def prices(graph: OrderGraph) -> int:
    """Return how many regions a search for the best asks the quick price of."""
    work = np.array([(node.matrix, node.vector, 0.0, 0.0) for node in graph.operators])
    asked = set[frozenset[int]]()

    def cycles(members: tuple[int, ...]) -> float:
        asked.add(frozenset(members))
        return float(work[list(members)].sum(axis=0).max()) + 20.0

    RegionBeam(graph, cycles, cycles, work, greedy_order(graph), 8, lambda: False).best()
    return len(asked)


@pytest.mark.slow
def test_regions_that_are_priced_grow_with_layers():
    small, large = dense(3), dense(6)
    assert MANY < len(small) < len(large) / 1.9
    few, many = prices(small), prices(large)
    assert few < 600 * len(small)
    assert many < 2.2 * few


@pytest.mark.parametrize("operators", [1, 81, MANY])
def test_others_are_searched_as_widely_as_ever(operators):
    assert QUICK.of(operators) == QUICK
