"""Better orders near a good one, for a price that is worth few tries: simulated annealing."""

import math
import random
from collections.abc import Callable

from compiler.order.graph import Order, OrderGraph, Price
from compiler.order.moves import random_move

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
