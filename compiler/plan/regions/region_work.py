"""What each engine has to do in a region, for every way in which engines can compute its parts."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from compiler.plan.layers.region_share import Share
from compiler.plan.plan import Place
from compiler.plan.regions.region_places import Ways
from sim.cost import HIDDEN

MemberWork = tuple[Place, npt.NDArray[np.float64]]  #: a place, and cycles of the units of an engine that works there


class PartWay(NamedTuple):
    """A way to compute a part of a region: the work of each layer by its number; by engine bytes of weights; cycles in
    which DRAM gives engines weights that it gave another."""

    members: Mapping[int, MemberWork]
    weights: Sequence[int]
    again: float = 0.0


class PartWork:
    """A part of a region with the ``ways`` to compute it."""

    def __init__(self, ways: Sequence[PartWay], engines: int) -> None:
        self.ways = ways
        self.weights = np.array([way.weights for way in ways])
        self.again = np.array([way.again for way in ways])
        self.units = np.zeros((len(ways), engines, 4))  #: by way and engine, cycles of each unit
        for way, found in enumerate(ways):
            for place, busy in found.members.values():
                self.units[way, slice(None) if isinstance(place, Share) else place] += busy


class RegionWork:
    """The work of a region of ``parts`` in those of the ``ways`` whose weights fit in ``window`` bytes."""

    def __init__(self, parts: Sequence[PartWork], ways: Ways, window: int) -> None:
        self._parts, self._ways = parts, ways
        picked = list(zip(parts, ways.chosen, strict=True))
        self._units = np.add.reduce([part.units[chosen] for part, chosen in picked])
        self._again = np.add.reduce([part.again[chosen] for part, chosen in picked])
        weights = np.add.reduce([part.weights[chosen] for part, chosen in picked])
        self._fits = weights.max(axis=1, initial=0) <= window
        self._busiest = self._units.max(axis=2)
        self._most = self._busiest.max(axis=1)
        most = self._most[self._fits]
        #: Cycles of the busiest unit in the best of the ways; infinite if there is none.
        self.least = float(most.min()) if len(most) else np.inf

    @cached_property
    def _quick(self) -> npt.NDArray[np.float64]:
        members = sum(len(part.ways[0].members) for part in self._parts)
        hidden = HIDDEN * (members > 1) * (self._units.sum(axis=2) - self._busiest)
        found: npt.NDArray[np.float64] = (self._busiest + hidden).max(axis=1) + self._again
        return np.where(self._fits, found, np.inf)

    def near(self, beyond: float, shared: bool) -> Iterator[tuple[float, int]]:
        """Yield a quick estimate of the cycles, for the best way and those that take at most ``beyond`` times as long,
        and the number of the way. ``shared``: only where engines share all members."""
        quick = np.where(self._ways.shared, self._quick, np.inf) if shared else self._quick
        best = quick.min(initial=np.inf)
        if np.isfinite(best):
            for way in np.flatnonzero(quick <= beyond * best):
                yield float(quick[way]), int(way)

    def again(self, way: int) -> float:
        """Return the cycles in which DRAM gives engines weights that it gave another."""
        return float(self._again[way])

    def busiest(self, way: int) -> float:
        """Return the cycles of the busiest unit of all engines."""
        return float(self._most[way])

    def members(self, way: int) -> dict[int, MemberWork]:
        """Return the work of each layer by its number."""
        found: dict[int, MemberWork] = {}
        for part, chosen in zip(self._parts, self._ways.chosen, strict=True):
            found |= part.ways[chosen[way]].members
        return found
