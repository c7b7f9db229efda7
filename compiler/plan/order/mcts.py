"""Monte Carlo tree search over topological orders, for graphs with too many to try."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from compiler.plan.order.graph import Order, OrderGraph, members
from compiler.plan.order.greedy import critical_paths

EXPLORATION = 0.8  #: weight of a branch's uncertainty against its best order, whose value is 0 (worst seen) to 1 (best)
GUIDED = 0.5  #: part of the choices in a roll-out that follow the critical path; the others are random


@dataclass
class TreeNode:
    """What is known of the orders with one beginning. ``best``: the smallest price among those tried. ``closed``: all
    were tried."""

    unopened: list[int]
    visits: int = 0
    best: float = math.inf
    closed: bool = False
    branches: dict[int, "TreeNode"] = field(default_factory=dict)


class TreeSearch:
    """A search that goes on from call to call. Each step walks down the tree by upper confidence bounds, opens one
    beginning, completes it by a roll-out, prices the order and notes the price on the way down. Beginnings of which all
    orders were tried are closed, so that a small graph is tried to its end and no further."""

    def __init__(self, graph: OrderGraph, price: Callable[[Order], float], rng: random.Random) -> None:
        self._graph, self._price, self._rng = graph, price, rng
        self._paths = critical_paths(graph)
        self._root = TreeNode(graph.ready(0), closed=not len(graph))
        self._low, self._high = math.inf, -math.inf

    @property
    def exhausted(self) -> bool:
        """Return whether every order was tried."""
        return self._root.closed

    def step(self) -> tuple[Order, float]:
        """One more order and its price."""
        done, order, trail = 0, list[int](), [self._root]
        node = self._root
        while not node.unopened and node.branches:
            number = self._chosen(node)
            node = node.branches[number]
            trail.append(node)
            order.append(number)
            done |= 1 << number
        while node.unopened and len(order) < len(self._graph):
            forced = len(node.unopened) == 1 and not node.branches
            number = node.unopened.pop(self._rng.randrange(len(node.unopened)))
            done |= 1 << number
            order.append(number)
            node.branches[number] = node = TreeNode(self._graph.ready(done))
            trail.append(node)
            if not forced:
                break
        self._roll_out(done, order)
        found = tuple(order)
        cycles = self._price(found)
        self._low, self._high = min(self._low, cycles), max(self._high, cycles)
        self._note(trail, cycles)
        return found, cycles

    def _chosen(self, node: TreeNode) -> int:
        """Return the branch with the highest bound among those that are open."""
        scale = max(self._high - self._low, 1e-9)
        spread = math.log(node.visits + 1)

        def bound(number: int) -> float:
            branch = node.branches[number]
            value = (self._high - branch.best) / scale
            return value + EXPLORATION * math.sqrt(spread / branch.visits)

        return max((number for number, branch in node.branches.items() if not branch.closed), key=bound)

    def _roll_out(self, done: int, order: list[int]) -> None:
        next_ones = sum(1 << number for number in self._graph.ready(done))
        while len(order) < len(self._graph):
            ready = list(members(next_ones))
            if self._rng.random() < GUIDED:
                number = max(ready, key=lambda n: self._paths[n])
            else:
                number = self._rng.choice(ready)
            done |= 1 << number
            next_ones = self._graph.ready_behind(next_ones, number, done)
            order.append(number)

    def _note(self, trail: list[TreeNode], cycles: float) -> None:
        for node in reversed(trail):
            node.visits += 1
            node.best = min(node.best, cycles)
            node.closed = not node.unopened and all(branch.closed for branch in node.branches.values())
