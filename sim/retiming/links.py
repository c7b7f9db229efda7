"""What jobs wait for beyond the instructions of their engine: the host, descriptors, completions, windows, events."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hw.contract.job import JobFlag
from hw.contract.params import SocParams
from hw.contract.timing import AXI_RETURN, FETCH_STARTS, JOB_READ, RETIRE_STARTS
from sim.model.loader import LOOK, SAVE
from sim.model.recorder import BodyRun
from sim.model.retirer import COPIED, RetirerModel
from sim.model.ring import RingModel
from sim.retiming.bursts import Bursts
from sim.retiming.dependencies import NOBODY, Dependencies
from sim.retiming.instructions import UnitMoments
from sim.retiming.jobs import JobMoments
from sim.retiming.replay import Ints


class EngineMoments(NamedTuple):
    """What jobs of one engine are connected by. ``fetches``: when the first instructions of each are asked for;
    ``recorded``: the bodies in the order in which they were recorded, ``found``: which of those is where."""

    number: int
    bodies: Sequence[BodyRun]
    jobs: JobMoments
    units: Sequence[UnitMoments]
    fetches: Ints
    recorded: Sequence[BodyRun]
    found: Sequence[int]


def connect_jobs(
    graph: Dependencies,
    params: SocParams,
    bursts: Bursts,
    engines: Sequence[EngineMoments],
    doorbells: Sequence[tuple[int, int, int]],
) -> None:
    """Jobs wait for those before, for their descriptors, for events and for their window. Lags of what passes through
    the host and through turns of the events are the shortest that occur in the run."""
    retired = {engine.number: _completions(graph, bursts, engine) for engine in engines}
    _doorbells(graph, doorbells, bursts, engines, retired)
    signals: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for engine in engines:
        jobs = engine.jobs
        for unit in engine.units:
            if len(unit.body):
                last = np.append(np.flatnonzero(np.diff(unit.body)), len(unit.body) - 1)
                graph.edges(unit.done[last], jobs.end[unit.body[last]], 1)
        graph.edges(jobs.end[:-1], jobs.start[1:], 1 + RETIRE_STARTS + COPIED)
        following = np.where(jobs.loaded[1:] >= 0, jobs.loads[1:], NOBODY)
        graph.edges(jobs.loaded[:-1], following, 1 + SAVE)
        completions = retired[engine.number].tolist()
        place = {number: where for where, number in enumerate(engine.found)}
        _descriptors(graph, params, bursts, engine)
        windows = _Links(graph)
        for number, body in enumerate(engine.recorded):
            after = body.job.members["window_after"]
            if 0 < after <= number:
                ended = bursts.recorded_end(completions[number - after])
                behind = completions[place[number - after]]
                windows.add(bursts, behind, ended, int(jobs.loads[place[number]]), "prologue_start", body)
            if body.job.has(JobFlag.SIGNAL):
                # The completions of a ring lie in its order, whichever jobs they are of.
                ended = bursts.recorded_end(completions[number])
                signals[body.job.members["signal_id"]].append((ended, completions[place[number]]))
        windows.connect()
    events = _Links(graph)
    for engine in engines:
        for number, body in enumerate(engine.bodies):
            for flag, wait in ((JobFlag.WAIT0, "wait0"), (JobFlag.WAIT1, "wait1")):
                if body.job.has(flag):
                    # Whichever signal brought the counter to the value, counted from where recording began.
                    past = sorted(signals[body.job.members[f"{wait}_id"]])
                    value = body.job.members[f"{wait}_value"]
                    if 0 < value <= len(past):
                        ended, completion = past[value - 1]
                        events.add(bursts, completion, ended, int(engine.jobs.start[number]), "start", body)
    events.connect()


def _doorbells(
    graph: Dependencies, doorbells: Sequence[tuple[int, int, int]], bursts: Bursts, engines: Sequence[EngineMoments],
    retired: Mapping[int, Ints],
) -> None:  # fmt: skip
    """The host rings as long behind the last completion that interrupted it as it did. A descriptor is fetched once it
    has rung."""
    told = sorted(
        (bursts.recorded_end(number), number)
        for engine in engines
        for body, number in zip(engine.recorded, retired[engine.number].tolist(), strict=True)
        if body.job.has(JobFlag.INTERRUPT)
    )
    times = [time for time, _ in told]
    for engine in engines:
        mine = [(time, tail) for number, time, tail in doorbells if number == engine.number]
        rung = graph.moments([time for time, _ in mine])
        for (time, _), moment in zip(mine, rung, strict=True):
            place = bisect_right(times, time) - 1
            if place >= 0:
                graph.edges(bursts.ends[told[place][1]], moment, time - times[place])
        bells = np.searchsorted([tail for _, tail in mine], np.arange(len(engine.bodies)), side="right")
        first = _descriptor_bursts(bursts, engine)[:, 0]
        graph.edges(rung[bells], bursts.offered[first], 1)


def _descriptor_bursts(bursts: Bursts, engine: EngineMoments) -> Ints:
    """Numbers of the bursts that fetch each descriptor."""
    numbers = bursts.of(RingModel, 3 * engine.number + 1)
    count = len(engine.bodies)
    if len(numbers) % count or not len(numbers):
        raise ValueError("descriptors are missing: record whole jobs, from a device that is idle until it is again")
    return numbers.reshape(count, -1)


def _completions(graph: Dependencies, bursts: Bursts, engine: EngineMoments) -> Ints:
    """The retirer copies and writes a completion behind each job; numbers of their last bursts."""
    numbers = bursts.of(RetirerModel, 2 * engine.number + 1)
    each = len(numbers) // len(engine.bodies)
    if not each or len(numbers) != each * len(engine.bodies):
        raise ValueError("completions are missing: record whole jobs, from a device that is idle until it is again")
    groups = numbers.reshape(-1, each)
    graph.edges(engine.jobs.end, bursts.offered[groups[:, 0]], COPIED + 4)
    for before, number in pairwise(groups.T):
        graph.edges(bursts.taken[before], bursts.offered[number], bursts.beats[before] + 1)
    return groups[:, -1]


def _descriptors(graph: Dependencies, params: SocParams, bursts: Bursts, engine: EngineMoments) -> None:
    """A job's descriptor is fetched once a slot is free for it."""
    groups, jobs = _descriptor_bursts(bursts, engine), engine.jobs
    stored = bursts.ends[groups[:, -1]]
    known = AXI_RETURN + params.dram_word // 8
    graph.edges(stored, jobs.loads, known + LOOK + 3)
    graph.edges(stored, engine.fetches, known + 2 + 2 + SAVE + JOB_READ + FETCH_STARTS + 1)
    graph.edges(stored[:-1], bursts.offered[groups[1:, 0]], known + 3)
    for before, number in pairwise(groups.T):
        graph.edges(bursts.taken[before], bursts.offered[number], 0)
    slots = params.job_slots
    graph.edges(jobs.end[:-slots], bursts.offered[groups[slots:, 0]], COPIED + 4)


class _Links:
    """Edges of one kind, whose lag is the shortest that occurs."""

    def __init__(self, graph: Dependencies) -> None:
        self._graph = graph
        self._links: list[tuple[int, int, int]] = []

    def add(self, bursts: Bursts, completion: int, ended: int, target: int, time: str, body: BodyRun) -> None:
        """``target``, the moment ``time`` of a job, comes behind a ``completion``, which was at ``ended``."""
        lag = body.job.times[time] - ended
        if lag > 0 and target >= 0:
            self._links.append((int(bursts.ends[completion]), target, lag))

    def connect(self) -> None:
        """Add them to the graph."""
        if self._links:
            sources, targets, lags = np.array(self._links, np.int64).T
            self._graph.edges(sources, targets, lags.min())
