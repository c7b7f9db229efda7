"""The worked examples of order search (docs/methods.md), as graphs and as checks."""

from benchmarks.order_search.depth_first import depth_first
from benchmarks.order_search.price import ChipModel, OrderPrice
from benchmarks.order_search.split import SplitOperator, split_operator
from compiler import CHANNELS, OperatorNode, OrderGraph, count, every_order, key_nodes, search_order

CHIP = ChipModel(on_chip_bytes=1 << 20, dram_bytes_per_cycle=8.0)


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


def ten_by_hundred() -> SplitOperator:
    """Return an operator on 10 frames of 100 channels."""
    extents = (10, 100, 1, 1)
    return SplitOperator(OperatorNode("pool", "pool", vector=100, out_bytes=1000), "pool", extents, (("x", extents),))


def worked_examples() -> dict[str, bool]:
    """By what it says whether an example holds."""
    pool, two, seventy = ten_by_hundred(), two_orders(), seventy_orders()
    half = pool.bytes_of(((0, 10), (0, 100), (0, 1), (0, 1))) // 2
    price = OrderPrice(seventy, CHIP)
    best = min(map(price, every_order(seventy)))
    deep = list(depth_first(seventy))
    return {
        "10 x 100 splits into 2 x (5 x 100)": _sizes(pool, half) == [(5, 100)] * 2,
        "or 2 x (10 x 50)": [_frames(box) for box in split_operator(pool, half, [CHANNELS])] == [(10, 50)] * 2,
        "conv -> {matmul, mean} -> softmax has two orders": count(two).value == len(list(every_order(two))) == 2,
        "two branches of four have 70 orders": count(seventy).value == len(list(every_order(seventy))) == 70,
        "relu and softmax are their key nodes": [seventy.operators[n].name for n in key_nodes(seventy)]
        == ["relu", "softmax"],
        "two of the 70 are depth-first, and the best is neither": len(deep) == 2 and min(map(price, deep)) > best,
        "the search finds it": search_order(seventy, price).cycles == best,
    }


def _sizes(operator: SplitOperator, limit: int) -> list[tuple[int, int]]:
    return [_frames(box) for box in split_operator(operator, limit)]


def _frames(box: tuple[tuple[int, int], ...]) -> tuple[int, int]:
    frames, channels, _, _ = (end - first for first, end in box)
    return frames, channels
