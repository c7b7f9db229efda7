"""An order with the fewest bytes alive at a time: where memory is tight, one that spills nothing if there is any."""

from compiler.order.graph import Order, OrderGraph, members
from compiler.order.greedy import critical_paths

WIDTH = 512  #: sets of operators that are followed side by side


def least_peak_order(graph: OrderGraph, width: int = WIDTH) -> Order:
    """Return the order with the smallest peak, by dynamic programming over downsets: what is alive depends on which
    operators have come, not on their order. Of each size the ``width`` sets with the smallest peak so far are followed,
    so the answer is exact where no more exist, and good elsewhere. Of equals, critical paths go first."""
    paths = critical_paths(graph)
    level: dict[int, tuple[int, float, Order]] = {0: (0, 0.0, ())}  # by set: peak, late critical paths, order
    for position in range(len(graph)):
        following: dict[int, tuple[int, float, Order]] = {}
        for done, (peak, late, order) in level.items():
            alive = _alive(graph, done)
            for number in graph.ready(done):
                node = graph.operators[number]
                after = done | 1 << number
                worst = max(peak, alive + node.out_bytes + node.param_bytes)
                found = (worst, late + position * paths[number], (*order, number))
                if after not in following or found < following[after]:
                    following[after] = found
        if len(following) > width:
            following = dict(sorted(following.items(), key=lambda item: item[1])[:width])
        level = following
    return level[graph.everything][2]


def _alive(graph: OrderGraph, done: int) -> int:
    """Return the bytes that are still needed when the operators of mask ``done`` have come."""
    total = sum(
        graph.operators[number].out_bytes
        for number in members(done)
        if number in graph.kept or graph.successors[number] & ~done
    )
    for tensor in graph.held:
        if tensor.survives or any(not (done >> reader) & 1 for reader in tensor.readers):
            total += tensor.size
    return total
