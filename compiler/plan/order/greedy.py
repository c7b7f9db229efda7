"""Orders that need no search: list scheduling by critical path, taking what leaves the fewest bytes alive, and an order
with the fewest bytes alive at a time."""

from compiler.plan.order.graph import Order, OrderGraph, members


def critical_paths(graph: OrderGraph) -> list[float]:
    """By operator the cycles from its beginning to the end of the longest chain of readers behind it, each operator
    taking as long as its busiest unit."""
    paths = [0.0] * len(graph)
    for number in reversed(graph.source):
        behind = max((paths[reader] for reader in members(graph.successors[number])), default=0.0)
        paths[number] = graph.operators[number].cycles + behind
    return paths


def greedy_order(graph: OrderGraph) -> Order:
    """List scheduling: whenever a unit is free, the operator with the longest critical path begins there whose operands
    are complete; of equal ones the first in source order. An operator occupies its busiest unit."""
    paths = critical_paths(graph)
    free = {"load": 0.0, "matrix": 0.0, "vector": 0.0}
    ended = [0.0] * len(graph)
    done, order, ready = 0, [], sum(1 << number for number in graph.ready(0))
    for _ in range(len(graph)):
        begins = {}
        for number in members(ready):
            there = max((ended[producer] for producer in members(graph.predecessors[number])), default=0.0)
            begins[number] = max(there, free[_unit(graph, number)])
        soonest = min(begins.values())
        chosen = min((n for n in begins if begins[n] == soonest), key=lambda n: (-paths[n], n))
        ended[chosen] = free[_unit(graph, chosen)] = soonest + graph.operators[chosen].cycles
        done |= 1 << chosen
        ready = graph.ready_behind(ready, chosen, done)
        order.append(chosen)
    return tuple(order)


def critical_path_order(graph: OrderGraph) -> Order:
    """Of the operators that may come next always the one with the longest critical path, free or not."""
    paths = critical_paths(graph)
    done, order, ready = 0, [], sum(1 << number for number in graph.ready(0))
    for _ in range(len(graph)):
        chosen = min(members(ready), key=lambda n: (-paths[n], n))
        done |= 1 << chosen
        ready = graph.ready_behind(ready, chosen, done)
        order.append(chosen)
    return tuple(order)


def _unit(graph: OrderGraph, number: int) -> str:
    node = graph.operators[number]
    times = {"load": node.load, "matrix": node.matrix, "vector": node.vector}
    return max(times, key=lambda unit: times[unit])


WIDTH = 512  #: sets of operators that are followed side by side, at most
MOST_SETS = 1 << 16  #: that are followed altogether: of graphs with many operators fewer side by side


def least_peak_order(graph: OrderGraph, width: int = WIDTH) -> Order:
    """Return the order with the smallest peak, by dynamic programming over downsets: what is alive depends on which
    operators have come, not on their order. Of each size the ``width`` sets with the smallest peak so far are followed,
    ``MOST_SETS`` altogether, so the answer is exact where no more exist, and good elsewhere. Of equals, critical paths
    go first."""
    paths = critical_paths(graph)
    width = max(1, min(width, MOST_SETS // max(1, len(graph))))
    level = {0: (0, 0.0, 0, -1)}  # by set: peak, late critical paths; rank of the order before its last operator, that
    levels = [level]
    state = {0: (sum(1 << number for number in graph.ready(0)), _alive(graph, 0))}  # by set: what is ready, bytes
    for position in range(len(graph)):
        following: dict[int, tuple[int, float, int, int]] = {}
        for rank, done in enumerate(sorted(level, key=lambda done: level[done][2:])):
            (peak, late, _, _), (ready, alive) = level[done], state[done]
            for number in members(ready):
                node = graph.operators[number]
                after = done | 1 << number
                worst = max(peak, alive + node.out_bytes + node.param_bytes)
                found = (worst, late + position * paths[number], rank, number)
                if after not in following or found < following[after]:
                    following[after] = found
        if len(following) > width:
            following = dict(sorted(following.items(), key=lambda item: item[1])[:width])
        state = {done: _state_behind(graph, state, done, last) for done, (_, _, _, last) in following.items()}
        level = following
        levels.append(level)
    done, order = graph.everything, list[int]()
    for level in reversed(levels[1:]):
        order.append(level[done][-1])
        done ^= 1 << order[-1]
    return tuple(reversed(order))


def _state_behind(graph: OrderGraph, states: dict[int, tuple[int, int]], done: int, last: int) -> tuple[int, int]:
    """Return a mask of what is ready behind the set ``done``, and the bytes alive, from those before its ``last``."""
    ready, alive = states[done ^ 1 << last]
    if last in graph.kept or graph.successors[last]:
        alive += graph.operators[last].out_bytes
    for producer in members(graph.predecessors[last]):
        if producer not in graph.kept and graph.successors[producer] & ~done == 0:
            alive -= graph.operators[producer].out_bytes
    for tensor in graph.held:
        if not tensor.survives and last in tensor.readers and all((done >> reader) & 1 for reader in tensor.readers):
            alive -= tensor.size
    return graph.ready_behind(ready, last, done), alive


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
