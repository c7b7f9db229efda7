"""Seeded random graphs to order: branches between a first and a last operator, with edges across."""

import random
from collections.abc import Callable, Iterator
from itertools import count as counting

from compiler import OperatorNode, OrderGraph

CROSSINGS = 0.15  #: probability that an operator also reads one of an earlier branch
KINDS = ("matrix", "matrix", "vector", "both")


def branchy_graph(seed: int, operators: int) -> OrderGraph:
    """A graph of about ``operators``: two to four branches of chains, with times of up to 100 cycles on each unit."""
    rng = random.Random(seed)
    nodes, edges = [_operator(rng, "first")], set()
    branches = rng.randint(2, 4)
    ends = []
    for branch in range(branches):
        chain = [0]
        for step in range(max(1, (operators - 2) // branches + rng.choice([-1, 0, 0, 1]))):
            number = len(nodes)
            nodes.append(_operator(rng, f"{branch}.{step}"))
            edges.add((chain[-1], number))
            if branch and rng.random() < CROSSINGS:
                edges.add((rng.randrange(1, number - step), number))
            chain.append(number)
        ends.append(chain[-1])
    edges |= {(end, len(nodes)) for end in ends}
    nodes.append(_operator(rng, "last"))
    return OrderGraph(f"seed {seed}", tuple(nodes), frozenset(edges))


def graphs(operators: range, wanted: Callable[[OrderGraph], bool], number: int) -> Iterator[OrderGraph]:
    """Yield the first ``number`` graphs, by seed, that are ``wanted``; sizes are drawn from ``operators``."""
    found = 0
    for seed in counting():
        graph = branchy_graph(seed, random.Random(seed).choice(operators))
        if wanted(graph):
            yield graph
            found += 1
            if found == number:
                return


def _operator(rng: random.Random, name: str) -> OperatorNode:
    kind = rng.choice(KINDS)
    return OperatorNode(
        name,
        kind,
        load=float(rng.choice([0, 0, rng.randint(1, 60)])),
        matrix=float(rng.randint(10, 100) if kind != "vector" else 0),
        vector=float(rng.randint(10, 100) if kind == "vector" else rng.randint(5, 50) * (kind == "both")),
        out_bytes=64 * rng.randint(1, 64),
        param_bytes=64 * rng.randint(0, 8),
    )
