"""Moments of a run, and what each may wait for."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from hw.contract.isa import Unit
from hw.contract.params import SocParams
from sim.model.dram import FULL
from sim.retiming.replay import Floats, Ints, Replay

Numbers = npt.ArrayLike
NOBODY = -1  #: as a source: there is no such moment, and the edge is left out


#: What a lag may grow with: cycles of a beat at the DRAM, or the factor by which instructions of a unit take longer.
Cause = Literal["beat"] | Unit


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
        """As many moments as there are times, which tell when they were."""
        times = np.atleast_1d(np.asarray(recorded, np.float64))
        self._recorded.append(times)
        self._count += len(times)
        return np.arange(self._count - len(times), self._count)

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

    def timings(self, params: SocParams, bursts: Mapping[str, Ints], *, calibrate: bool = True) -> "Timings":
        """Ready to be priced; ``params``: of the machine on which the run was recorded, ``bursts``: see ``Replay``.
        Without ``calibrate`` what the graph does not explain of the recorded run is left out, but for the moments that
        wait for nothing."""
        terms = {
            cause: _Term(*(np.concatenate(column) for column in zip(*parts, strict=True)))
            for cause, parts in self._terms.items()
        }
        sources, targets = np.concatenate(self._sources), np.concatenate(self._targets)
        replay = Replay(np.concatenate(self._recorded), sources, targets, bursts)
        return Timings(replay, params, np.concatenate(self._lags), terms, calibrate)


class Timings:
    """Prices a run. ``unexplained``: by how many cycles each moment of the recording is later than the graph explains
    (negative: earlier); it stays so."""

    def __init__(
        self, replay: Replay, params: SocParams, lags: Floats, terms: Mapping[Cause, _Term], calibrate: bool
    ) -> None:  # fmt: skip
        self._replay = replay
        self._present = _values(params, {})
        place = np.empty(len(lags), np.int64)
        place[replay.edges] = np.arange(len(lags))
        self._terms = {cause: _Term(place[term.edges], term.amounts) for cause, term in terms.items()}
        self._lags = lags[replay.edges]
        for cause, term in self._terms.items():
            self._lags[term.edges] += term.amounts * self._present[cause]
        self.unexplained = replay.calibrate(self._lags, begins_only=not calibrate)

    def times(self, params: SocParams, durations: Mapping[Unit, float]) -> Floats:
        """When the moments are with the DRAM of ``params`` and instructions of a unit that take ``durations`` times as
        long."""
        lags = self._lags.copy()
        for cause, value in _values(params, durations).items():
            change = value - self._present[cause]
            if change and cause in self._terms:
                lags[self._terms[cause].edges] += self._terms[cause].amounts * change
        return self._replay.times(lags, params)


def _values(params: SocParams, durations: Mapping[Unit, float]) -> dict[Cause, float]:
    values: dict[Cause, float] = {"beat": FULL / params.dram_bandwidth}
    values.update({unit: durations.get(unit, 1.0) for unit in Unit})
    return values
