"""The search that grows an order by a region at a time."""

import itertools

import numpy as np
import pytest

from benchmarks.order_cases import graphs
from compiler.plan.order.graph import OrderGraph
from compiler.plan.order.greedy import greedy_order
from compiler.plan.order.orders import count
from compiler.plan.regions.region_beam import RegionBeam

MOST = 4


def work_of(graph: OrderGraph) -> np.ndarray:
    """Matrix and vector cycles of each operator."""
    return np.array([(node.matrix, node.vector, 0.0, 0.0) for node in graph.operators])


def search(graph: OrderGraph, over=lambda: False) -> tuple[list[tuple[int, ...]], float]:
    """The regions found and their cycles: a region takes as long as its busiest unit and twenty cycles."""
    work = work_of(graph)

    def cycles(members: tuple[int, ...]) -> float:
        return float(work[list(members)].sum(axis=0).max()) + 20.0

    beam = RegionBeam(graph, cycles, cycles, work, greedy_order(graph), MOST, over)
    regions = beam.best()
    return regions, sum(map(cycles, regions))


@pytest.fixture(scope="module")
def some() -> list[OrderGraph]:
    return list(graphs(range(9, 13), lambda graph: 100 < count(graph).value < 5000, 12))


def test_regions_make_an_order(some):
    for graph in some:
        regions, _ = search(graph)
        assert graph.is_order(tuple(itertools.chain(*regions))), graph.name
        assert all(len(region) <= MOST for region in regions)


def test_near_the_best_of_all(some):
    """Against a search over all sets of computed operators and all regions."""
    for graph in some:
        work, best = work_of(graph), {0: 0.0}
        for done in sorted(_downsets(graph), key=int.bit_count):
            for region in _grown(graph, done):
                inside = [number for number in range(len(graph)) if region >> number & 1]
                cycles = best[done] + float(work[inside].sum(axis=0).max()) + 20.0
                best[done | region] = min(best.get(done | region, np.inf), cycles)
        assert search(graph)[1] <= 1.05 * best[(1 << len(graph)) - 1], graph.name


def test_time_may_be_up(some):
    assert search(some[0], lambda: True)[0] == []


def _downsets(graph: OrderGraph) -> set[int]:
    found, new = {0}, [0]
    while new:
        done = new.pop()
        for number in graph.ready(done):
            if done | 1 << number not in found:
                found.add(done | 1 << number)
                new.append(done | 1 << number)
    return found


def _grown(graph: OrderGraph, done: int) -> set[int]:
    found, last = set[int](), {0}
    for _ in range(MOST):
        last = {region | 1 << number for region in last for number in graph.ready(done | region)}
        found |= last
    return found
