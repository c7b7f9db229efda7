"""Graphs to order: the worked examples of METHODS.md, and seeded random ones."""

import random

from compiler.order.graph import OperatorNode, OrderGraph


def two_orders() -> OrderGraph:
    """conv -> {matmul, mean} -> softmax."""
    operators = (
        OperatorNode("conv", "conv", matrix=40),
        OperatorNode("matmul", "matmul", matrix=30),
        OperatorNode("mean", "mean", vector=20),
        OperatorNode("softmax", "softmax", vector=10),
    )
    return OrderGraph("two orders", operators, frozenset({(0, 1), (0, 2), (1, 3), (2, 3)}))


def seventy_orders() -> OrderGraph:
    """relu -> {conv1 -> matmul -> mean -> add1, conv2 -> apxy -> sub -> add2} -> softmax, 40 cycles each."""
    matrix = {"conv1", "matmul", "conv2"}
    names = ["relu", "conv1", "matmul", "mean", "add1", "conv2", "apxy", "sub", "add2", "softmax"]
    operators = tuple(
        OperatorNode(name, name, matrix=40.0 * (name in matrix), vector=40.0 * (name not in matrix)) for name in names
    )
    edges = {(0, 1), (1, 2), (2, 3), (3, 4), (0, 5), (5, 6), (6, 7), (7, 8), (4, 9), (8, 9)}
    return OrderGraph("seventy orders", operators, frozenset(edges))


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
