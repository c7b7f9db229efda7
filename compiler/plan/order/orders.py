"""Topological orders of a graph: how many there are, all of them, and some at random."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from compiler.plan.order.graph import Order, OrderGraph, members

DOWNSETS = 20_000  #: sets of operators that may have come first, of which counting keeps the numbers at most


@dataclass(frozen=True)
class OrderCount:
    """How many orders a graph has: exactly ``value``, or more than that."""

    value: int
    exact: bool

    def at_most(self, limit: int) -> bool:
        """Return whether there are at most ``limit``, for all that is known."""
        return self.exact and self.value <= limit

    def __str__(self) -> str:
        return f"{self.value:,}" if self.exact else f"more than {self.value:,}"


def count(graph: OrderGraph, downsets: int = DOWNSETS) -> OrderCount:
    """Return the number of topological orders, by dynamic programming over downsets: sets that may have come first. An
    order of n operators passes through n + 1 of them, and as many orders lead to one as to all those together that have
    one operator less. Gives up beyond ``downsets``: there are then at least as many orders as beginnings seen."""
    level, seen = {0: 1}, 1
    ready = {0: sum(1 << number for number in graph.ready(0))}
    for _ in range(len(graph)):
        following: dict[int, int] = {}
        opened: dict[int, int] = {}
        for done, ways in level.items():
            for number in members(ready[done]):
                after = done | 1 << number
                following[after] = following.get(after, 0) + ways
                if after not in opened:
                    opened[after] = graph.ready_behind(ready[done], number, after)
        level, ready, seen = following, opened, seen + len(following)
        if seen > downsets:
            return OrderCount(sum(level.values()), exact=False)
    return OrderCount(sum(level.values()), exact=True)


def has_choice(graph: OrderGraph) -> bool:
    """Return whether there is more than one order."""
    done = 0
    for _ in range(len(graph)):
        ready = graph.ready(done)
        if len(ready) > 1:
            return True
        done |= 1 << ready[0]
    return False


def completions(graph: OrderGraph, downsets: int = DOWNSETS) -> dict[int, int] | None:
    """By downset the number of orders that go on from there; None if there are more than ``downsets``."""
    levels = [{0: sum(1 << number for number in graph.ready(0))}]  # by downset a mask of what may come next
    seen = 1
    for _ in range(len(graph)):
        following: dict[int, int] = {}
        for done, ready in levels[-1].items():
            for number in members(ready):
                after = done | 1 << number
                if after not in following:
                    following[after] = graph.ready_behind(ready, number, after)
        levels.append(following)
        seen += len(following)
        if seen > downsets:
            return None
    ways = {graph.everything: 1}
    for level in reversed(levels[:-1]):
        for done, ready in level.items():
            ways[done] = sum(ways[done | 1 << number] for number in members(ready))
    return ways


def every_order(graph: OrderGraph) -> Iterator[Order]:
    """Yield all topological orders, in lexicographic order: the source order first."""
    prefix: list[int] = []

    def extended(done: int) -> Iterator[Order]:
        if len(prefix) == len(graph):
            yield tuple(prefix)
            return
        for number in graph.ready(done):
            prefix.append(number)
            yield from extended(done | 1 << number)
            prefix.pop()

    return extended(0)


def random_order(graph: OrderGraph, rng: random.Random, ways: Mapping[int, int] | None = None) -> Order:
    """Return a random order. With ``ways`` (see :func:`completions`) all orders are equally likely; without, each
    operator is drawn from those that may come next."""
    done, order = 0, []
    next_ones = sum(1 << number for number in graph.ready(0))
    for _ in range(len(graph)):
        ready = list(members(next_ones))
        weights = None if ways is None else [ways[done | 1 << number] for number in ready]
        (number,) = rng.choices(ready, _in_float_range(weights)) if len(ready) > 1 else ready
        order.append(number)
        done |= 1 << number
        next_ones = graph.ready_behind(next_ones, number, done)
    return tuple(order)


def _in_float_range(weights: list[int] | None) -> list[int] | None:
    """The same proportions: numbers of orders may exceed what a float holds."""
    if weights is None:
        return None
    shift = max(0, max(weights).bit_length() - 900)
    return [weight >> shift for weight in weights]
