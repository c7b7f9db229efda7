"""**Key nodes**, and the subgraphs between them, which run in sequence and are optimised each alone."""

from collections.abc import Sequence

import networkx as nx

from compiler.plan.order.graph import Order, OrderGraph
from compiler.plan.order.orders import has_choice

SMALLEST = 2  #: operators of a subgraph, where it has a neighbour to merge with


def on_every_path(graph: OrderGraph) -> list[int]:
    """Return the operators on every path from an input to an output, in order: the dominators of the end, seen from the
    beginning, that are post-dominators of the beginning as well."""
    if not len(graph):
        return []
    flow = graph.flow()
    begin, end = -1, len(graph)
    flow.add_edges_from((begin, number) for number in graph.source if not graph.predecessors[number])
    flow.add_edges_from((number, end) for number in graph.source if not graph.successors[number])
    dominators = _chain(nx.immediate_dominators(flow, begin), end)
    post_dominators = _chain(nx.immediate_dominators(flow.reverse(copy=False), end), begin)
    return sorted((dominators & post_dominators) - {begin, end})


def branch_points(graph: OrderGraph) -> list[int]:
    """Return the operators at which at least two paths branch or meet."""
    return [
        number
        for number in graph.source
        if max(graph.successors[number].bit_count(), graph.predecessors[number].bit_count()) > 1
    ]


def key_nodes(graph: OrderGraph) -> list[int]:
    """Return the operators at which the sequence may be cut, in order: those :func:`on_every_path`, and
    :func:`branch_points` that an edge passes by, as in a dense block, while every other operator must come before or
    after them."""
    apart = {
        number
        for number in branch_points(graph)
        if graph.ancestors[number] | graph.descendants[number] | 1 << number == graph.everything
    }
    return sorted(apart.union(on_every_path(graph)))


def subgraphs(graph: OrderGraph, smallest: int = SMALLEST) -> list[list[int]]:
    """Return the operators in sequence, cut before every key node, each list in source order. A part with fewer
    operators than ``smallest``, or with one order alone, is merged into its predecessor or successor, the one with
    fewer operators, until every part has a choice of orders, or none has."""
    return _merged(graph, _between(graph, key_nodes(graph)), smallest)


def link(parts: Sequence[Sequence[int]], orders: Sequence[Order]) -> Order:
    """Return the order of the whole graph, from one order for each of its ``parts``."""
    return tuple(part[number] for part, order in zip(parts, orders, strict=True) for number in order)


def _chain(immediate: dict[int, int | None], start: int) -> set[int]:
    """``start`` and all that dominates it."""
    found, number = {start}, immediate.get(start)
    while number is not None and number not in found:
        found.add(number)
        number = immediate.get(number)
    return found


def _between(graph: OrderGraph, keys: Sequence[int]) -> list[list[int]]:
    """Return what comes before the first key node, then each key node with what comes between it and the next."""
    key_mask = sum(1 << number for number in keys)
    parts: dict[int, list[int]] = {}
    for number in graph.source:
        passed = (graph.ancestors[number] | 1 << number) & key_mask
        parts.setdefault(passed.bit_count(), []).append(number)
    return [parts[passed] for passed in sorted(parts)]


def _merged(graph: OrderGraph, parts: list[list[int]], smallest: int) -> list[list[int]]:
    parts = list(parts)
    choice = [has_choice(graph.part(part, graph.name)) for part in parts]
    while len(parts) > 1:
        small = [i for i, part in enumerate(parts) if len(part) < smallest or not choice[i]]
        if not small:
            break
        at = min(small, key=lambda i: (len(parts[i]), i))
        neighbours = [i for i in (at - 1, at + 1) if 0 <= i < len(parts)]
        other = min(neighbours, key=lambda i: (len(parts[i]), i))
        low = min(at, other)
        parts[low : low + 2] = [sorted(parts[low] + parts[low + 1])]
        choice[low : low + 2] = [choice[low] or choice[low + 1]]
    return parts
