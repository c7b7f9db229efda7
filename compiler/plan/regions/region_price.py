"""The price of an order of layers: that of its best regions, and of what it spills."""

import itertools
import math
from collections.abc import Sequence
from copy import copy

from compiler.plan.layers.region_share import Share
from compiler.plan.order.graph import Order, OrderGraph
from compiler.plan.order.residency import spills
from compiler.plan.plan import Place
from compiler.plan.regions.pressure import Pressure, free
from compiler.plan.regions.region_knowledge import RegionKnowledge
from compiler.plan.regions.region_rules import RegionRules
from sim.cost import moved

MOST = 8  #: layers of a region


class RegionPrice:
    """The price of orders of a part of the layers: cycles of its best regions, and of what is spilled."""

    def __init__(
        self, rules: RegionRules, numbers: Sequence[int], graph: OrderGraph, *, quick: bool = False,
        pressure: Pressure | None = None,
    ) -> None:  # fmt: skip
        """``numbers``: of the layers that are the operators of ``graph``. ``quick``: by the quick estimate.
        ``pressure``: what regions pay for bytes beside them, if that decides where orders are cut."""
        self._quick, self.pressure = quick, pressure
        self._rules, self._numbers, self._graph = rules, numbers, graph
        self._known: dict[tuple[int, ...], tuple[float, tuple[Place, ...]]] = {}
        self._bounds: dict[tuple[int, ...], float] = {}
        self._orders: dict[Order, float] = {}
        self._knowledge = RegionKnowledge()

    def pressed(self, pressure: Pressure | None) -> "RegionPrice":
        """Return the same, with what is known, under another ``pressure``."""
        other = copy(self)
        other.pressure, other._orders = pressure, {}
        return other

    def under(self, rules: RegionRules) -> "RegionPrice":
        """Return the same, with what is known, under other ``rules`` of what may be a region."""
        other = copy(self)
        other._rules, other._bounds, other._orders = rules, {}, {}
        return other

    def __call__(self, order: Order) -> float:
        if order not in self._orders:
            spilled = sum(spills(self._graph, order, self._rules.room))
            self._orders[order] = self.cycles(order) + moved(spilled, self._rules.params)
        return self._orders[order]

    def _possible(self, members: tuple[int, ...]) -> bool:
        return len(members) == 1 or (
            self._rules.possible(members) and not any(bad.issubset(members) for bad in self._knowledge.forbidden)
        )

    def _least(self, members: tuple[int, ...]) -> float:
        """Return a lower bound of the cycles of a layer or a region; infinite if these cannot be one."""
        if members not in self._bounds:
            took = self._knowledge.took(members)
            least = self._rules.least(members) if self._possible(members) else math.inf
            self._bounds[members] = least if took is None or math.isinf(least) else min(least, took)
        return self._bounds[members]

    def _step(self, members: tuple[int, ...]) -> tuple[float, tuple[Place, ...]]:
        """Return the cycles of a layer or a region that is possible, and the places of its members."""
        if members not in self._known:
            cycles, places = self._placed(members)
            self._known[members] = self._knowledge.believed(self._rules, members, cycles), places
        return self._known[members]

    def _placed(self, members: tuple[int, ...]) -> tuple[float, tuple[Place, ...]]:
        shared = any(bad.issubset(members) for bad in self._knowledge.only_shared)
        find = self._rules.quick_placed if self._quick else self._rules.placed
        return find(members, shared)

    def region(self, members: tuple[int, ...]) -> float:
        """Return the cycles of layers of these numbers as a region, or of one; infinite if they cannot be one."""
        return self._step(members)[0] if self._possible(members) else math.inf

    def places(self, members: Sequence[int]) -> tuple[Place, ...]:
        """By member of a region that is possible, how engines share it, or the one that computes it."""
        return self._step(tuple(members))[1]

    def forbid(self, members: Sequence[int], places: tuple[Place, ...]) -> None:
        """Layers of these numbers cannot be one region, nor with others; not if each is computed at its place, if
        engines do not share all of them anyway."""
        shared = all(isinstance(place, Share) for place in places)
        (self._knowledge.forbidden if shared else self._knowledge.only_shared).append(frozenset(members))
        self._forget()

    def learn(self, order: Order, took: Sequence[float]) -> None:
        """The regions of ``order``, and layers that stand alone, took so many cycles each in a program."""
        for members, cycles in zip(self.groups(order), took, strict=True):
            price, _ = self._placed(members)
            if price:
                self._knowledge.learn(self._rules, members, price, cycles)
        self._forget()

    def hope(self, times: float) -> None:
        """Believe that regions that have not run are better than expected, by so many times the mean error."""
        self._knowledge.hope = times
        self._forget()

    def _forget(self) -> None:
        self._known.clear()
        self._bounds.clear()
        self._orders.clear()

    def groups(self, order: Order) -> list[tuple[int, ...]]:
        """Return the layers of each region of ``order``, and those that stand alone, by their numbers."""
        _, cuts = self.cut(order)
        numbers = tuple(self._numbers[i] for i in order)
        return [numbers[begin:end] for begin, end in itertools.pairwise([*cuts, len(order)])]

    def cycles(self, order: Order) -> float:
        """Return the cycles of the regions of ``order``, and of layers that stand alone."""
        if not self.pressure:
            return self.cut(order)[0]
        return sum(self._step(members)[0] for members in self.groups(order))

    def cut(self, order: Order) -> tuple[float, list[int]]:
        """Return the least cycles, with what ``pressure`` adds, and where regions of ``order`` begin."""
        extra = self.pressure.along(order) if self.pressure else free
        numbers = tuple(self._numbers[i] for i in order)
        best: list[tuple[float, int]] = [(0.0, 0)]
        for end in range(1, len(numbers) + 1):
            begins = range(end - 1, max(-1, end - 1 - MOST), -1)
            before = {begin: best[begin][0] + extra(begin, end) for begin in begins}
            least = sorted((cost + self._least(numbers[begin:end]), begin) for begin, cost in before.items())
            found = (math.inf, 0)
            for bound, begin in least:
                if bound >= found[0]:
                    break
                found = min(found, (before[begin] + self._step(numbers[begin:end])[0], begin))
            best.append(found)
        cuts, end = list[int](), len(numbers)
        while end:
            end = best[end][1]
            cuts.append(end)
        return best[-1][0], cuts[::-1]
