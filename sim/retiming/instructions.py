"""What instructions wait for in queues and units: the rules of ``sim/model/queues.py`` and ``pipes.py``."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from hw.contract.isa import Unit
from hw.contract.params import SocParams
from hw.contract.timing import (
    COPY_FETCHED,
    COPY_FILLED,
    COPY_LANDED,
    COPY_PLANNED,
    MAC_LANDED,
    MAC_STARTS,
    QUEUED,
    UNIT_IN_FLIGHT,
)
from sim.model.recorder import BodyRun
from sim.retiming.dependencies import NOBODY, Dependencies
from sim.retiming.replay import Ints

_FAR = -1e15  #: a lag that never matters


class UnitMoments:
    """Instructions of one unit, over all bodies of an engine in order: ``taken`` and ``done`` are their moments,
    ``body`` the number of the body, ``place`` which of the body's they are, ``work`` what ``ProgramTable`` says."""

    def __init__(self, graph: Dependencies, unit: Unit, bodies: Sequence[BodyRun]) -> None:
        runs = [(number, body, run) for number, body in enumerate(bodies) for run in body.units if run.unit == unit]
        counts = [len(run.done) for _, _, run in runs]
        self.unit = unit
        self.body = np.repeat([number for number, _, _ in runs], counts).astype(np.int64)
        self.place = np.concatenate([np.zeros(0, np.int64), *(np.arange(count) for count in counts)])
        self.pcs = _joined([run.pcs for *_, run in runs])
        self.work: list[Any] = [body.program.measured(pc) for _, body, run in runs for pc in run.pcs]
        waits = [body.program.waits[pc] for _, body, run in runs for pc in run.pcs]
        self.waits = np.array([bool(one) for one in waits], np.int64)
        self.recorded_issue = _joined([run.issued for *_, run in runs])
        self.issued = graph.moments(self.recorded_issue)
        self.recorded = _joined([run.taken for *_, run in runs])
        self.taken = graph.moments(self.recorded)
        self.recorded_end = _joined([run.done for *_, run in runs])
        self.done = graph.moments(self.recorded_end)

    def earlier(self, moments: Ints, distance: int) -> Ints:
        """Those of the instruction ``distance`` before, in the same body."""
        return np.where(self.place >= distance, _shifted(moments, distance), NOBODY)

    def column(self, name: str) -> Ints:
        """A number that ``work`` has of every instruction."""
        return np.array([getattr(work, name) for work in self.work], np.int64)


def _joined(parts: Sequence[Sequence[int]]) -> Ints:
    return np.concatenate([np.zeros(0, np.int64), *(np.asarray(part, np.int64) for part in parts)])


def _shifted(moments: Ints, distance: int) -> Ints:
    """Those ``distance`` places before, over all bodies."""
    return np.concatenate([np.full(min(distance, len(moments)), NOBODY), moments[:-distance]])


def connect(graph: Dependencies, params: SocParams, units: Sequence[UnitMoments], bodies: Sequence[BodyRun]) -> None:
    """Queues, semaphores and the units that stay on the chip."""
    _semaphores(graph, units, bodies)
    for unit in units:
        offer = 1 if unit.unit in (Unit.LD2, Unit.ST2) else 0
        beyond = unit.waits + (1 if unit.unit is Unit.LD2 else 0)
        graph.edges(unit.issued, unit.taken, QUEUED + beyond)
        graph.edges(unit.earlier(unit.taken, 1), unit.taken, 1 + beyond)
        graph.edges(unit.earlier(unit.done, UNIT_IN_FLIGHT), unit.taken, 1 + (beyond - unit.waits) * offer)
        graph.edges(unit.earlier(unit.taken, params.unit_queue_depth + 1), unit.issued, 1)
        if not len(unit.place):
            continue
        if unit.unit is Unit.MAC:
            _mac(graph, params, unit)
        elif unit.unit is Unit.VEC:
            _vec(graph, unit)
        elif unit.unit not in (Unit.LD2, Unit.ST2):
            _copy(graph, unit)


def _semaphores(graph: Dependencies, units: Sequence[UnitMoments], bodies: Sequence[BodyRun]) -> None:
    """The first to wait for a semaphore takes the first token."""
    signals: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    waits: dict[tuple[int, int], list[tuple[int, int, int]]] = defaultdict(list)
    for unit in units:
        late = 2 + (unit.unit is Unit.LD2)
        rows = zip(unit.body.tolist(), unit.pcs.tolist(), unit.taken.tolist(), unit.done.tolist(), strict=True)
        ends = [end for body in bodies for run in body.units if run.unit == unit.unit for end in run.done]
        for place, (body, pc, taken, done) in enumerate(rows):
            program = bodies[body].program
            for number in program.signals[pc]:
                signals[body, number].append((ends[place], done))
            for number in program.waits[pc]:
                waits[body, number].append((int(unit.recorded[place]), taken, late))
    sources, targets, lags = [], [], []
    for (body, number), waiting in waits.items():
        restored = bodies[body].job.members.get(f"sem{number}", 0)
        tokens = sorted(signals[body, number])
        for (_, source), (_, target, late) in zip(tokens, sorted(waiting)[restored:], strict=False):
            sources.append(source)
            targets.append(target)
            lags.append(late)
    graph.edges(np.array(sources, np.int64), np.array(targets, np.int64), np.array(lags))


def _copy(graph: Dependencies, unit: UnitMoments) -> None:
    """Planner and realigner."""
    runs, steps, late, ahead = (unit.column(name) for name in ("runs", "steps", "late", "ahead"))
    before, follower = unit.done[:-1], unit.done[1:]
    graph.edges(unit.taken, unit.done, COPY_PLANNED + COPY_FILLED + COPY_LANDED - 1, [(unit.unit, steps)])
    graph.edges(before, follower, 0, [(unit.unit, steps[1:])])
    fetched = np.where(late > 0, COPY_PLANNED + COPY_FETCHED + COPY_LANDED - 1, _FAR)
    graph.edges(unit.taken, unit.done, fetched, [(unit.unit, late)])
    graph.edges(unit.taken[:-1], unit.taken[1:], COPY_PLANNED - 1 + runs[:-1])
    released = np.where(runs > 2, 2 - COPY_LANDED, _FAR)
    graph.edges(before, unit.taken[1:], released[:-1], [(unit.unit, -ahead[:-1])])


def _mac(graph: Dependencies, params: SocParams, unit: UnitMoments) -> None:
    """Weights of the next block are loaded while pixels of one fire."""
    blocks, period, last = (unit.column(name) for name in ("blocks", "period", "last"))
    rest = (blocks - 1) * period + last
    before, follower = unit.done[:-1], unit.done[1:]
    ends = MAC_LANDED - 1
    graph.edges(unit.taken, unit.done, max(MAC_STARTS + params.rows, 2) + ends, [(Unit.MAC, rest)])
    graph.edges(before, follower, params.rows, [(Unit.MAC, rest[1:] - last[:-1])])
    graph.edges(before, follower, 0, [(Unit.MAC, rest[1:])])
    taken, following = unit.taken[:-1], unit.taken[1:]
    one = blocks[:-1] == 1
    graph.edges(taken, following, np.where(one, MAC_STARTS + params.rows, MAC_STARTS))
    earlier = _shifted(unit.done, 1)
    graph.edges(earlier[:-1], following, -MAC_LANDED)
    weights = np.where(one, params.rows - ends, _FAR)
    previous = np.concatenate([[0], last[:-1]])
    graph.edges(earlier[:-1], following, weights, [(Unit.MAC, -previous[:-1])])
    loaded = np.where(one, _FAR, params.rows - ends)
    graph.edges(before, following, loaded, [(Unit.MAC, -(period + last)[:-1])])


def _vec(graph: Dependencies, unit: UnitMoments) -> None:
    """One after the other."""
    fixed = unit.column("setup") + unit.column("tail") - 1
    graph.edges(unit.taken, unit.done, fixed, [(Unit.VEC, unit.column("steps"))])
    graph.edges(unit.done[:-1], unit.taken[1:], 0)
