"""The search for a good order of one graph: all orders where they are few; samples, tree search, moves where many."""

import math
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from compiler.plan.order.annealing import neighbours, random_move
from compiler.plan.order.graph import Order, OrderGraph, Price
from compiler.plan.order.greedy import critical_path_order, greedy_order, least_peak_order
from compiler.plan.order.mcts import TreeSearch
from compiler.plan.order.orders import OrderCount, completions, count, every_order, random_order

LONGEST_STEP = 3  #: moves from an order to the next one that is tried
LENIENCE = 0.02  #: by which part an order may be worse and still be gone on from
RETURN = 0.02  #: probability to go back to the best order instead of staying
STALE = 500  #: steps to known orders after which there is nothing more to find

SearchProgress = Callable[[int, float], None]  #: called with orders tried and best cycles


@dataclass(frozen=True)
class SearchLimits:
    """How long to search one graph. Graphs with at most ``few`` orders are tried whole. Of others ``tries`` at most:
    ``samples`` are drawn at random, half of the rest found by tree search, the others by moving operators of the best.
    After ``seconds`` of wall time, or with an order of at most ``good_enough`` cycles, a search ends. Orders that are
    priced have ``placed`` operators together at most: of larger graphs, whose orders take longer, fewer are tried."""

    few: int = 1000
    samples: int = 100
    tries: int = 1000
    seconds: float = math.inf
    good_enough: float = -math.inf
    seed: int = 0
    placed: float = math.inf

    def __post_init__(self) -> None:
        if self.tries < 1 or self.samples < 0 or self.seconds < 0 or self.placed < 0:
            raise ValueError(f"a search needs at least one try and no negative limits, not {self}")

    def of(self, operators: int) -> "SearchLimits":
        """Return the limits for a graph with so many operators."""
        if self.tries * operators <= self.placed:
            return self
        part = self.placed / (self.tries * operators)
        few, samples = int(self.few * part), int(self.samples * part)
        return replace(self, few=few, samples=samples, tries=max(1, int(self.tries * part)), placed=math.inf)


DEFAULT_LIMITS = SearchLimits()


@dataclass(frozen=True)
class FoundOrder:
    """The best order and what else was seen. ``tried``: different orders priced. ``complete``: all there are."""

    order: Order
    cycles: float
    worst: float
    source: float
    greedy: float
    tried: int
    orders: OrderCount
    complete: bool
    good_enough: bool


def search_order(
    graph: OrderGraph, price: Price, limits: SearchLimits = DEFAULT_LIMITS, progress: SearchProgress | None = None
) -> FoundOrder:
    """Return the order with the smallest price among those tried. Beginning with the source order and the greedy ones,
    the result is never worse than these. The same arguments give the same result unless time runs out."""
    return _Searching(graph, price, limits, progress).run()


class _Searching:
    """One search: prices every order once and keeps the best."""

    def __init__(
        self, graph: OrderGraph, price: Price, limits: SearchLimits, progress: SearchProgress | None
    ) -> None:  # fmt: skip
        self._graph, self._price, self._limits, self._progress = graph, price, limits.of(len(graph)), progress
        self._rng = random.Random(limits.seed)
        self._ends = time.monotonic() + limits.seconds
        self._known: dict[Order, float] = {}
        self._best: Order = graph.source

    def run(self) -> FoundOrder:
        """See :func:`search_order`."""
        graph = self._graph
        orders = count(graph)
        source, greedy = self._cycles(graph.source), self._cycles(greedy_order(graph))
        self._try(first(graph) for first in (critical_path_order, least_peak_order))
        if orders.at_most(self._limits.few):
            self._try(every_order(graph))
        else:
            self._draw()
            self._climb_tree()
            self._descend()
            self._wander()
        cycles = self._known[self._best]
        return FoundOrder(
            self._best, cycles, max(self._known.values()), source, greedy, len(self._known), orders,
            orders.at_most(len(self._known)), cycles <= self._limits.good_enough,
        )  # fmt: skip

    @property
    def _over(self) -> bool:
        """Return whether the result is good enough, or time is up."""
        return self._known[self._best] <= self._limits.good_enough or time.monotonic() > self._ends

    @property
    def _spent(self) -> bool:
        return len(self._known) >= self._limits.tries

    def _cycles(self, order: Order) -> float:
        if order not in self._known:
            self._known[order] = self._price(order)
            if self._known[order] < self._known.get(self._best, math.inf):
                self._best = order
            if self._progress:
                self._progress(len(self._known), self._known[self._best])
        return self._known[order]

    def _try(self, orders: Iterable[Order]) -> None:
        """Price ``orders`` until the search is over; those behind are not even made."""
        given = iter(orders)
        while not self._over:
            order = next(given, None)
            if order is None:
                return
            self._cycles(order)

    def _draw(self) -> None:
        ways = completions(self._graph)
        left = max(0, self._limits.tries - len(self._known))
        self._try(random_order(self._graph, self._rng, ways) for _ in range(min(left, self._limits.samples)))

    def _climb_tree(self) -> None:
        """Tree search with half of the tries that are left."""
        tree = TreeSearch(self._graph, self._cycles, self._rng)
        enough = (len(self._known) + self._limits.tries) // 2
        while not (tree.exhausted or len(self._known) >= enough or self._over):
            tree.step()

    def _descend(self) -> None:
        """Move single operators of the best order, as long as a move makes it better."""
        before = None
        while before != self._best and not (self._spent or self._over):
            before = self._best
            near = list(neighbours(self._graph, before))
            self._rng.shuffle(near)
            for order in near:
                self._try((order,))
                if self._best != before or self._spent:
                    break

    def _wander(self) -> None:
        """Go on from the best order by a few moves at a time, also to slightly worse ones, and now and then back."""
        here, stale = self._best, 0
        while stale < STALE and not (self._spent or self._over):
            order = here
            for _ in range(self._rng.randint(1, LONGEST_STEP)):
                order = random_move(self._graph, order, self._rng)
            stale = stale + 1 if order in self._known else 0
            if self._cycles(order) <= self._known[here] * (1 + LENIENCE * self._rng.random() ** 3):
                here = order
            elif self._rng.random() < RETURN:
                here = self._best
