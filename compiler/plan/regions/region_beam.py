"""A search for regions rather than for orders: what has been computed grows by a region at a time.

Most changes of an order change no region, or tear one. So this search goes over sets of layers that have been computed,
and from each to those that a region more makes of it. Of the sets with as many layers it keeps the most promising: by
the cycles up to there, and what the busiest unit has still to do at least (beam search).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from compiler.plan.order.graph import MANY, Order, OrderGraph, members

_LEAST_GROWN = 2  #: regions with one number of layers that grow, however many operators there are
_NEXT = 8  #: operators by which a region may grow in a large graph, the first of those that are ready

RegionCycles = Callable[[tuple[int, ...]], float]  #: of a region with these operators; infinite if there is none


class BeamWidth(NamedTuple):
    """How far a search looks. ``sets``: of computed layers that are kept, of each number of them; ``grown``: of the
    regions with one number of layers, how many grow by another layer; ``priced``: of these, how many are priced
    precisely, and gone on from; ``next``: of the layers that may come next, by how many a region may grow (0: by
    all)."""

    sets: int
    grown: int
    priced: int
    next: int = 0

    def of(self, operators: int) -> "BeamWidth":
        """Return the width for a graph with so many operators: in one with more than ``MANY``, so many fewer sets are
        gone on from, and each grows in fewer ways, that the search takes about as long."""
        if operators <= MANY:
            return self
        part = MANY / operators
        sets, grown, priced = (max(1, round(part * count)) for count in (self.sets, self.grown, self.priced))
        return BeamWidth(sets, max(grown, _LEAST_GROWN), priced, _NEXT)


QUICK = BeamWidth(6, 6, 2)
WIDE = BeamWidth(30, 10, 4)


@dataclass(frozen=True)
class _Reached:
    """A set of computed layers: as bits, the cycles to get there, and its regions, the last first."""

    done: int
    cycles: float
    region: tuple[int, ...] = ()
    before: "_Reached | None" = None

    def regions(self) -> list[tuple[int, ...]]:
        """From the first on."""
        found = list[tuple[int, ...]]()
        at: _Reached | None = self
        while at is not None:
            if at.region:
                found.append(at.region)
            at = at.before
        return found[::-1]


class RegionBeam:
    """The search. ``quick``: an estimate of ``cycles``, the price of a region; ``work``: by operator of ``graph`` the
    cycles that it takes of each unit at least; ``priority``: an order in which members of a region stand; ``most``:
    layers of a region; ``over``: whether time is up; ``width``: how far to look."""

    def __init__(
        self, graph: OrderGraph, quick: RegionCycles, cycles: RegionCycles, work: npt.NDArray[np.float64],
        priority: Order, most: int, over: Callable[[], bool], width: BeamWidth = QUICK,
    ) -> None:  # fmt: skip
        self._graph, self._quick, self._cycles = graph, quick, cycles
        self._work, self._most, self._over, self._width = work, most, over, width.of(len(graph))
        self._place = {number: place for place, number in enumerate(priority)}
        self._known: dict[int, float] = {}
        self._exact: dict[int, float] = {}
        self._rest: dict[int, float] = {}

    def best(self) -> list[tuple[int, ...]]:
        """Return the regions of the best order found; none if time is up before there is one."""
        count = len(self._graph.operators)
        levels: list[dict[int, _Reached]] = [{} for _ in range(count + 1)]
        levels[0][0] = _Reached(0, 0.0)
        for level in levels[:-1]:
            for reached in self._promising(level):
                if self._over():
                    return []
                for region, cycles in self._regions(reached.done):
                    done, total = reached.done | region, reached.cycles + cycles
                    there = levels[done.bit_count()]
                    if done not in there or total < there[done].cycles:
                        there[done] = _Reached(done, total, self._members(region), reached)
        return next(iter(levels[-1].values())).regions()

    def _promising(self, level: dict[int, _Reached]) -> list[_Reached]:
        return sorted(level.values(), key=lambda one: (one.cycles + self._left(one.done), one.done))[: self._width.sets]

    def _regions(self, done: int) -> list[tuple[int, float]]:
        """Return regions that can come behind ``done``, as bits, with their cycles."""
        best: list[int] = []
        ready = {0: sum(1 << number for number in self._graph.ready(done))}
        growing = [0]
        for _ in range(self._most):
            larger: dict[int, int] = {}  # by region a mask of what may come next
            for region in growing:
                for number in self._next(ready[region]):
                    grown = region | 1 << number
                    if grown not in larger:
                        larger[grown] = self._graph.ready_behind(ready[region], number, done | grown)
            ready = larger
            priced = [(self._priced(region), region) for region in larger]
            lost = sorted((cycles - self._left(done) + self._left(done | region), region) for cycles, region in priced)
            best += [region for cycles, region in lost[: self._width.priced] if np.isfinite(cycles)]
            growing = [region for _, region in lost[: self._width.grown]]
        for region in best:
            if region not in self._exact:
                self._exact[region] = self._cycles(self._members(region))
        return [(region, self._exact[region]) for region in best if np.isfinite(self._exact[region])]

    def _next(self, ready: int) -> Iterable[int]:
        """Return the operators of ``ready`` that are looked at."""
        most = self._width.next
        if not most or ready.bit_count() <= most:
            return members(ready)
        return sorted(members(ready), key=self._place.__getitem__)[:most]

    def _priced(self, region: int) -> float:
        if region not in self._known:
            self._known[region] = self._quick(self._members(region))
        return self._known[region]

    def _members(self, region: int) -> tuple[int, ...]:
        return tuple(sorted(members(region), key=self._place.__getitem__))

    def _left(self, done: int) -> float:
        """Return what the busiest unit has to do behind ``done`` at least."""
        if done not in self._rest:
            bits = np.frombuffer(done.to_bytes(-(-len(self._work) // 8), "little"), np.uint8)
            left = np.unpackbits(bits, count=len(self._work), bitorder="little") == 0
            self._rest[done] = float(self._work[left].sum(axis=0).max(initial=0.0))
        return self._rest[done]
