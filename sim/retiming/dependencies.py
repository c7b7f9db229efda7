"""Moments of a run, and what each may wait for."""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hw.contract.isa import Unit
from sim.retiming.longest_path import Floats, Ints, LongestPath

Numbers = npt.ArrayLike
NOBODY = -1  #: as a source: there is no such moment, and the edge is left out


class Dram(Enum):
    """What of the DRAM a lag may grow with: latency and row miss in cycles, and the cycles of a beat."""

    LATENCY = "dram_latency"
    ROW_MISS = "dram_row_miss"
    BEAT = "dram_bandwidth"


Cause = Dram | Unit  #: of a unit: the factor by which its instructions take longer


class _Term(NamedTuple):
    """``lags[edges] += amounts * value``."""

    edges: Ints
    amounts: Floats


class Dependencies:
    """A graph that grows. A moment is not earlier than any of its sources plus the lag of that edge, which is a number
    of cycles and terms that grow with a :data:`Cause`."""

    def __init__(self) -> None:
        self._count = self._edge_count = 0
        self._recorded: list[Floats] = []
        self._sources: list[Ints] = []
        self._targets: list[Ints] = []
        self._lags: list[Floats] = []
        self._terms: dict[Cause, list[_Term]] = {}

    def moments(self, recorded: Numbers) -> Ints:
        """As many moments as there are times, which tell when they were, -1 where that is not known."""
        times = np.atleast_1d(np.asarray(recorded, np.float64))
        self._recorded.append(times)
        self._count += len(times)
        return np.arange(self._count - len(times), self._count)

    def unknown(self, count: int) -> Ints:
        """``count`` moments of which it is not known when they were."""
        return self.moments(np.full(count, -1.0))

    def edges(self, sources: Numbers, targets: Numbers, lags: Numbers, terms: Sequence[tuple[Cause, Numbers]] = ()):
        """Each of ``targets`` is at least ``lags`` behind the one of ``sources`` in its place, which may be
        :data:`NOBODY`."""
        source, target, lag, *amounts = np.broadcast_arrays(
            np.atleast_1d(sources), targets, np.asarray(lags, np.float64), *(amount for _, amount in terms)
        )
        there = (source >= 0) & (target >= 0)
        numbers = self._edge_count + np.arange(int(there.sum()))
        self._edge_count += len(numbers)
        self._sources.append(source[there])
        self._targets.append(target[there])
        self._lags.append(lag[there])
        for (cause, _), amount in zip(terms, amounts, strict=True):
            self._terms.setdefault(cause, []).append(_Term(numbers, amount[there].astype(np.float64)))

    def solved(self, present: dict[Cause, float]) -> "Timings":
        """Ready to be priced; ``present``: the values at which the run was recorded, 1 for those left out."""
        terms = {
            cause: _Term(*(np.concatenate(column) for column in zip(*parts, strict=True)))
            for cause, parts in self._terms.items()
        }
        graph = LongestPath(self._count, np.concatenate(self._sources), np.concatenate(self._targets))
        return Timings(graph, np.concatenate(self._lags), terms, np.concatenate(self._recorded), present)


class Timings:
    """Prices a run. At the values at which it was recorded, every moment is when it was: where the graph does not
    explain a moment, what is missing, or too much, stays as it was. ``unexplained``: cycles of such moments."""

    def __init__(
        self, graph: LongestPath, lags: Floats, terms: dict[Cause, _Term], recorded: Floats, present: dict[Cause, float]
    ) -> None:  # fmt: skip
        self._graph, self._present = graph, present
        place = np.empty(len(lags), np.int64)
        place[graph.edges] = np.arange(len(lags))
        self._terms = {cause: _Term(place[term.edges], term.amounts) for cause, term in terms.items()}
        self._lags = lags[graph.edges]
        for cause, term in self._terms.items():
            self._lags[term.edges] += term.amounts * present.get(cause, 1.0)
        self._late, self.recorded = graph.calibrate(self._lags, recorded[graph.order])
        self.place = np.empty(len(recorded), np.int64)  #: of moments in what :meth:`times` returns
        self.place[graph.order] = np.arange(len(recorded))
        self.known = (recorded >= 0)[graph.order]

    @property
    def unexplained(self) -> Floats:
        """By how much each moment is later than the graph explains, or earlier (negative)."""
        return self._late[self.place]

    def times(self, values: dict[Cause, float]) -> Floats:
        """When the moments are for other ``values``; causes that are left out stay as recorded."""
        lags = self._lags.copy()
        for cause, value in values.items():
            change = value - self._present.get(cause, 1.0)
            if change and cause in self._terms:
                lags[self._terms[cause].edges] += self._terms[cause].amounts * change
        return self._graph.times(lags, self._late)
