"""Orders that need no search: list scheduling by critical path, and taking what leaves the fewest bytes alive."""

from compiler.order.graph import Order, OrderGraph, members


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
    done, order = 0, []
    for _ in range(len(graph)):
        begins = {}
        for number in graph.ready(done):
            there = max((ended[producer] for producer in members(graph.predecessors[number])), default=0.0)
            begins[number] = max(there, free[_unit(graph, number)])
        soonest = min(begins.values())
        chosen = min((n for n in begins if begins[n] == soonest), key=lambda n: (-paths[n], n))
        ended[chosen] = free[_unit(graph, chosen)] = soonest + graph.operators[chosen].cycles
        done |= 1 << chosen
        order.append(chosen)
    return tuple(order)


def critical_path_order(graph: OrderGraph) -> Order:
    """Of the operators that may come next always the one with the longest critical path, free or not."""
    paths = critical_paths(graph)
    done, order = 0, []
    for _ in range(len(graph)):
        chosen = min(graph.ready(done), key=lambda n: (-paths[n], n))
        done |= 1 << chosen
        order.append(chosen)
    return tuple(order)


def _unit(graph: OrderGraph, number: int) -> str:
    node = graph.operators[number]
    times = {"load": node.load, "matrix": node.matrix, "vector": node.vector}
    return max(times, key=lambda unit: times[unit])
