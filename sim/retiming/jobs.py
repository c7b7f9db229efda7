"""What jobs and their instructions wait for: the rules of ``sim/model/executor.py``, ``loader.py`` and ``fetch.py``."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from hw.contract.isa import INSN_BYTES
from hw.contract.job import JobFlag
from hw.contract.params import SocParams
from hw.contract.timing import (
    AXI_RETURN,
    FETCH_AHEAD,
    FETCH_BUFFERED,
    FETCH_BURST_BYTES,
    FETCH_STARTS,
    JOB_EVENTS,
    JOB_READ,
    RETIRE_STARTS,
)
from sim.model.fetch import FetchModel
from sim.model.loader import SAVE
from sim.model.recorder import BodyRun
from sim.model.retirer import COPIED
from sim.retiming.bursts import Bursts
from sim.retiming.dependencies import NOBODY, Dependencies
from sim.retiming.instructions import UnitMoments
from sim.retiming.replay import Ints


class JobMoments(NamedTuple):
    """Jobs of an engine in order. A job without a prologue has ``loads`` and ``loaded`` of :data:`NOBODY`."""

    loads: Ints
    loaded: Ints
    start: Ints
    end: Ints


def job_moments(graph: Dependencies, bodies: Sequence[BodyRun]) -> JobMoments:
    """When jobs began and ended."""
    columns = []
    for name in ("prologue_start", "prologue_end", "start", "end"):
        times = np.array([body.job.times[name] for body in bodies], np.int64)
        moments = np.full(len(bodies), NOBODY, np.int64)
        there = np.array([body.job.has(JobFlag.PROLOGUE) for body in bodies], np.bool_) | (name in ("start", "end"))
        moments[there] = graph.moments(times[there])
        columns.append(moments)
    return JobMoments(*columns)


class Stream:
    """Instructions of one engine's bodies in program order, and the bursts that bring them."""

    def __init__(self, params: SocParams, units: Sequence[UnitMoments], bursts: Bursts, engine: int) -> None:
        body = np.concatenate([unit.body for unit in units])
        pcs = np.concatenate([unit.pcs for unit in units])
        order = np.lexsort((pcs, body))
        self.body, self.pcs = body[order], pcs[order]
        self.issued = np.concatenate([unit.issued for unit in units])[order]
        self.per_insn = INSN_BYTES // params.dram_word
        numbers = bursts.of(FetchModel, 3 * engine).tolist()
        self.fetches = [np.array(list(group), np.int64) for _, group in groupby(numbers, bursts.generation)]


def connect_bodies(
    graph: Dependencies, params: SocParams, stream: Stream, bursts: Bursts, bodies: Sequence[BodyRun], jobs: JobMoments
) -> None:
    """Fetch and dispatch of instructions, and the end of the body."""
    if len(stream.fetches) < len(bodies):
        raise ValueError("bodies were abandoned while the run was recorded: a run with faults cannot be priced again")
    spacing = stream.per_insn + 1
    same = stream.body[1:] == stream.body[:-1]
    before = np.where(same, stream.issued[:-1], NOBODY)
    graph.edges(before, stream.issued[1:], np.diff(stream.pcs) * spacing)
    bounds = np.searchsorted(stream.body, np.arange(len(bodies) + 1))
    last = NOBODY  # the last instruction of the body before
    for number, body in enumerate(bodies):
        first_pc = body.job.members["body_pc"]
        there = slice(bounds[number], bounds[number + 1])
        issued, places = stream.issued[there], stream.pcs[there] - first_pc
        fetches = stream.fetches[number]
        graph.edges(jobs.start[number], issued[:1], 2 + places[:1] * spacing)
        _fetches(graph, params, bursts, fetches, issued, places, stream.per_insn)
        begins = FETCH_STARTS + 1
        graph.edges(last, bursts.offered[fetches[:1]], spacing + 1 + begins)
        graph.edges(jobs.loaded[number], bursts.offered[fetches[:1]], 1 + SAVE + JOB_READ + begins)
        graph.edges(bursts.offered[fetches[:1]], jobs.start[number], JOB_EVENTS - begins + 1)
        last = issued[-1] if len(issued) else NOBODY
        graph.edges(last, jobs.end[number], spacing + 2)


def _fetches(
    graph: Dependencies, params: SocParams, bursts: Bursts, fetches: Ints, issued: Ints, places: Ints, per_insn: int
) -> None:
    """``issued``: of the instructions at ``places`` behind the first, which the bursts ``fetches`` bring."""
    come = np.cumsum(bursts.beats[fetches])
    offered = bursts.offered[fetches]
    whole = (places + 1) * per_insn
    by = np.searchsorted(come, whole)
    behind = come[by] - whole
    arrives = AXI_RETURN + FETCH_BUFFERED
    graph.edges(bursts.ends[fetches[by]], issued, arrives + 1, [("beat", -behind)])
    graph.edges(bursts.taken[fetches[:-1]], offered[1:], 0)
    chunk = min(params.axi_burst_beats, FETCH_BURST_BYTES // params.dram_word)
    room = come[:-1] + chunk - FETCH_AHEAD * per_insn
    gate = np.where(room > 0, np.maximum(0, -(-room // per_insn) - 1), NOBODY)
    # A burst is asked for once the instruction `gate` is assembled: it has come, and the one before was dispatched.
    at = np.minimum(np.searchsorted(come, (gate + 1) * per_insn), len(fetches) - 1)
    behind = come[at] - (gate + 1) * per_insn
    came = np.where(gate < 0, NOBODY, bursts.ends[fetches[at]])
    graph.edges(came, offered[1:], arrives + 1, [("beat", -behind)])
    if len(places):
        before = np.searchsorted(places, gate - 1, side="right") - 1
        dispatched = np.where((gate < 1) | (before < 0), NOBODY, issued[np.maximum(before, 0)])
        lag = (gate - 1 - places[np.maximum(before, 0)]) * (per_insn + 1) + per_insn + 1
        graph.edges(dispatched, offered[1:], lag)


def connect_jobs(
    graph: Dependencies, engines: Sequence[tuple[Sequence[BodyRun], JobMoments, Sequence[UnitMoments]]]
) -> None:
    """Jobs wait for those before, for events and for their window. Lags of what passes through the retirer and the
    host are the shortest that occur in the run."""
    events = _Links(graph)
    signals: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for bodies, jobs, units in engines:
        for number, body in enumerate(bodies):
            if body.job.has(JobFlag.SIGNAL):
                signals[body.job.members["signal_id"]].append((body.job.times["end"], int(jobs.end[number])))
        for unit in units:
            if len(unit.body):
                last = np.append(np.flatnonzero(np.diff(unit.body)), len(unit.body) - 1)
                graph.edges(unit.done[last], jobs.end[unit.body[last]], 1)
        retired = 1 + RETIRE_STARTS + COPIED
        graph.edges(jobs.end[:-1], jobs.start[1:], retired)
        following = np.where(jobs.loaded[1:] >= 0, jobs.loads[1:], NOBODY)
        graph.edges(jobs.loaded[:-1], following, 1 + SAVE)
        windows = _Links(graph)
        for number, body in enumerate(bodies):
            after = body.job.members["window_after"]
            if 0 < after <= number and body.job.has(JobFlag.PROLOGUE):
                before = bodies[number - after].job.times["end"]
                windows.add(
                    int(jobs.end[number - after]), int(jobs.loads[number]), body.job.times["prologue_start"] - before
                )
        windows.connect()
    for bodies, jobs, _ in engines:
        for number, body in enumerate(bodies):
            for flag, wait in ((JobFlag.WAIT0, "wait0"), (JobFlag.WAIT1, "wait1")):
                past = [s for s in sorted(signals[body.job.members[f"{wait}_id"]]) if s[0] < body.job.times["start"]]
                if body.job.has(flag) and past:
                    value = body.job.members[f"{wait}_value"]
                    ended, moment = sorted(signals[body.job.members[f"{wait}_id"]])[min(value, len(past)) - 1]
                    if ended < body.job.times["start"]:
                        events.add(moment, int(jobs.start[number]), body.job.times["start"] - ended)
    events.connect()


class _Links:
    """Edges of one kind, whose lag is the shortest that occurs."""

    def __init__(self, graph: Dependencies) -> None:
        self._graph = graph
        self._links: list[tuple[int, int, int]] = []

    def add(self, source: int, target: int, lag: int) -> None:
        """``target`` came ``lag`` cycles behind ``source``."""
        if lag > 0:
            self._links.append((source, target, lag))

    def connect(self) -> None:
        """Add them to the graph."""
        if self._links:
            sources, targets, lags = np.array(self._links, np.int64).T
            self._graph.edges(sources, targets, lags.min())
