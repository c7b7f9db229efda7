"""Orders near another one: single operators moved as far as their operands and readers let them."""

import random
from collections.abc import Iterator

from compiler.order.graph import Order, OrderGraph


def places(graph: OrderGraph, order: Order, place: int) -> range:
    """Return where the operator at ``place`` may stand among the others: its own place, and those around it up to the
    nearest operand and the nearest reader."""
    number = order[place]
    low = high = place
    while low and not (graph.predecessors[number] >> order[low - 1]) & 1:
        low -= 1
    while high + 1 < len(order) and not (graph.successors[number] >> order[high + 1]) & 1:
        high += 1
    return range(low, high + 1)


def moved(order: Order, place: int, to: int) -> Order:
    """``order`` with the operator at ``place`` at place ``to``."""
    rest = order[:place] + order[place + 1 :]
    return (*rest[:to], order[place], *rest[to:])


def neighbours(graph: OrderGraph, order: Order) -> Iterator[Order]:
    """Yield the orders that differ in the place of one operator, each once."""
    for place in range(len(order)):
        for to in places(graph, order, place):
            if to < place or to > place + 1:  # to change places with the next one is that one's move, too
                yield moved(order, place, to)


def random_move(graph: OrderGraph, order: Order, rng: random.Random) -> Order:
    """Return a neighbour drawn at random: first the operator, then its place. The order itself if nothing can move."""
    for place in rng.sample(range(len(order)), len(order)):
        choice = [to for to in places(graph, order, place) if to != place]
        if choice:
            return moved(order, place, rng.choice(choice))
    return order
