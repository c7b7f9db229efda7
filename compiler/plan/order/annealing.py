"""Orders near another one: single operators moved as far as their operands and readers let them; and better orders near
a good one, for a price that is worth few tries: simulated annealing."""

import math
import random
from collections.abc import Callable, Iterator

from compiler.plan.order.graph import Order, OrderGraph, Price


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


_TEMPERATURE = 0.0005  #: of the price of the first order: by how much orders may be worse, at the beginning
_STEPS = (1, 1, 2)  #: moves from an order to the next, drawn with equal probability
_STALE = 200  #: steps to known orders after which there is nothing more to find


def annealed(
    graph: OrderGraph, price: Price, order: Order, tries: int, seed: int = 0, over: Callable[[], bool] = lambda: False
) -> Order:  # fmt: skip
    """Return the cheapest order found from ``order`` on by moving operators, at most ``tries`` orders being priced;
    worse ones are gone on from less and less as tries run out. Never worse than ``order``. ``over``: whether time is
    up. The same arguments give the same result unless time runs out."""
    rng = random.Random(seed)
    here = best = order
    known = {order: price(order)}
    warmth = _TEMPERATURE * known[order]
    stale = 0
    while len(known) < tries and stale < _STALE and not over():
        candidate = here
        for _ in range(rng.choice(_STEPS)):
            candidate = random_move(graph, candidate, rng)
        stale = stale + 1 if candidate in known else 0
        if candidate not in known:
            known[candidate] = price(candidate)
        worse = known[candidate] - known[here]
        allowed = warmth * (1 - len(known) / tries)
        if worse <= 0 or (allowed > 0 and rng.random() < math.exp(-worse / allowed)):
            here = candidate
            if known[here] < known[best]:
                best = here
    return best
