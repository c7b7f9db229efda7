"""Seeded random graphs to order; those of the worked examples are in ``benchmarks.order_examples``."""

import random

from compiler.plan.order.graph import OperatorNode, OrderGraph


def random_graph(seed: int, size: int, reach: int = 5) -> OrderGraph:
    """Operators of mixed kinds that read one or two of the ``reach`` before them."""
    rng = random.Random(seed)
    operators, edges = [], set()
    for number in range(size):
        matrix, vector = rng.choice([(1, 0), (0, 1), (1, 1)])
        operators.append(
            OperatorNode(
                f"op{number}",
                load=float(rng.choice([0, rng.randint(1, 60)])),
                matrix=float(matrix * rng.randint(10, 100)),
                vector=float(vector * rng.randint(5, 100)),
                out_bytes=64 * rng.randint(1, 64),
                param_bytes=64 * rng.randint(0, 8),
            )
        )
        near = range(max(0, number - reach), number)
        edges |= {(producer, number) for producer in rng.sample(near, min(len(near), rng.choice([1, 1, 2])))}
    return OrderGraph(f"random {seed}", tuple(operators), frozenset(edges))
