"""Prices combinations of layers for idle-time layer scheduling with a window of more than one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sw.runtime.policies.contract import AcceleratorState, Candidate
from sw.runtime.policies.starvation import has_waited

#: Combinations kept from step to step. All of 16 models with a window of 3; beyond that the best so far.
BEAM = 4096

Floats = npt.NDArray[np.float64]


@dataclass(slots=True)
class _Paths:
    """Holds combinations of one length, one per row."""

    first: npt.NDArray[np.intp]  #: candidate that the combination begins with
    taken: npt.NDArray[np.intp]  #: (rows, models): layers taken of each model
    access_free: Floats  #: T1 after the combination
    compute_end: Floats  #: T2 after the combination
    idle: Floats
    access_idle: Floats
    allocated: Floats  #: on-chip bytes, nothing released
    release_time: Floats  #: (rows, releases)
    released: Floats  #: (rows, releases): bytes, cumulative

    def rows(self, index: Any) -> "_Paths":
        """Return the combinations at ``index``, in that order."""
        return _Paths(*(getattr(self, name)[index] for name in self.__slots__))


def first_of_best(state: AcceleratorState, candidates: Sequence[Candidate], window: int) -> Candidate:
    """Return the candidate that begins the combination of ``window`` layers with the smallest sum of idle times.

    Ties: smaller memory-access idle time, then a first layer that has waited, then less compute that outlasts memory
    access, then the oldest request.
    """
    ordered = sorted(candidates, key=lambda c: (not has_waited(c, len(candidates)), c.arrival, c.request))
    waited = sum(has_waited(candidate, len(candidates)) for candidate in candidates)
    costs, lengths = _table(ordered, window)
    paths = _start(state, len(ordered))
    steps = min(window, int(lengths.sum()))
    for step in range(steps):
        paths = _extend(state, paths, costs, lengths, last=step == steps - 1)
    return ordered[paths.first[_best(paths, waited)]]


def _table(candidates: Sequence[Candidate], window: int) -> tuple[Floats, npt.NDArray[np.intp]]:
    """Return (models, window, load | compute | bytes | overlap | ready | room), and how many layers of each there
    are."""
    costs = np.zeros((len(candidates), window, 6))
    lengths = np.empty(len(candidates), np.intp)
    for model, candidate in enumerate(candidates):
        layers = (candidate.cost, *candidate.following)[:window]
        lengths[model] = len(layers)
        costs[model, : len(layers), :4] = [cost[:4] for cost in layers]
        costs[model, 0, 4:] = candidate.ready, candidate.room
    return costs, lengths


def _start(state: AcceleratorState, models: int) -> _Paths:
    times = np.array([[release.time for release in state.releases]])
    sizes = np.array([[float(release.bytes) for release in state.releases]])
    return _Paths(
        np.zeros(1, np.intp),
        np.zeros((1, models), np.intp),
        np.array([state.access_start]),
        np.array([max(state.now, state.compute_end)]),
        np.zeros(1),
        np.zeros(1),
        np.array([float(state.memory_used)]),
        times.reshape(1, -1),
        np.cumsum(sizes, axis=1).reshape(1, -1),
    )


def _extend(
    state: AcceleratorState, paths: _Paths, costs: Floats, lengths: npt.NDArray[np.intp], *, last: bool
) -> _Paths:
    """Return every combination, followed by every layer that can follow it. ``last``: nothing follows those, so what
    they hold of memory and of layers stays as it was."""
    row, model = np.nonzero(paths.taken < lengths)
    begins = not paths.taken.any()
    load, compute, size, overlap, ready, room = costs[model, paths.taken[row, model]].T
    free, ends = paths.access_free[row], paths.compute_end[row]
    pause = np.maximum(0.0, np.maximum(_room_at(state, paths, row, size), room) - free)
    free = free + pause + load
    start = np.maximum(np.maximum(free - overlap, ready), ends)
    idle, access_idle = paths.idle[row] + pause + start - ends, paths.access_idle[row] + pause
    longer = _Paths(
        model if begins else paths.first[row], paths.taken, free, start + compute, idle, access_idle,
        paths.allocated, paths.release_time, paths.released,
    )  # fmt: skip
    if last:
        return longer
    longer.taken = paths.taken[row]
    longer.taken[np.arange(row.size), model] += 1
    longer.allocated = paths.allocated[row] + size
    longer.release_time = np.column_stack([paths.release_time[row], longer.compute_end])
    released = paths.released[row]
    before = released[:, -1] if released.shape[1] else 0.0
    longer.released = np.column_stack([released, before + size])
    return longer if row.size <= BEAM else longer.rows(_cheapest(longer, BEAM))


def _room_at(state: AcceleratorState, paths: _Paths, row: npt.NDArray[np.intp], size: Floats) -> Floats:
    """Return when ``size`` bytes are free after the combination at each ``row``."""
    lacking = paths.allocated[row] + size - state.memory_total
    short = np.flatnonzero(lacking > 0)
    room = np.full(size.shape, state.now)
    if short.size and paths.release_time.shape[1]:
        rows = row[short]
        enough = np.argmax(paths.released[rows] >= lacking[short, None], axis=1)
        room[short] = paths.release_time[rows, enough]
    return room


def _best(paths: _Paths, waited: int) -> int:
    """Return the best row. Of first layers, those of the first ``waited`` candidates have waited."""
    rows = np.flatnonzero(paths.idle == paths.idle.min())
    rows = rows[paths.access_idle[rows] == paths.access_idle[rows].min()]
    aged = rows[paths.first[rows] < waited]
    rows = aged if aged.size else rows
    outlasting = (paths.compute_end - paths.access_free)[rows]
    rows = rows[outlasting == outlasting.min()]
    return int(rows[np.argmin(paths.first[rows])])


def _cheapest(paths: _Paths, count: int) -> npt.NDArray[np.intp]:
    """Return ``count`` rows in order of price; among equal ones those that begin with the oldest request come first."""
    outlasting = paths.compute_end - paths.access_free
    return np.lexsort((paths.first, outlasting, paths.access_idle, paths.idle))[:count]
