"""What jobs and their instructions wait for: the rules of ``sim/model/executor.py``, ``loader.py`` and ``fetch.py``."""

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
)
from sim.model.fetch import FetchModel
from sim.model.loader import SAVE
from sim.model.recorder import BodyRun
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


class BodyStream:
    """Instructions of one engine's bodies in program order, and the bursts that bring them. ``found``: the recorded
    number of each body."""

    def __init__(
        self, params: SocParams, units: Sequence[UnitMoments], bursts: Bursts, engine: int, found: Sequence[int]
    ) -> None:
        body = np.concatenate([unit.body for unit in units])
        pcs = np.concatenate([unit.pcs for unit in units])
        order = np.lexsort((pcs, body))
        self.body, self.pcs = body[order], pcs[order]
        self.issued = np.concatenate([unit.issued for unit in units])[order]
        self.per_insn = INSN_BYTES // params.dram_word
        fetches = fetch_groups(bursts, 3 * engine)
        if len(fetches) != len(found):
            raise ValueError("bodies were abandoned while the run was recorded: a run with faults cannot be retimed")
        self.fetches = [fetches[number] for number in found]


def fetch_groups(bursts: Bursts, port: int) -> list[Ints]:
    """Numbers of the bursts of each fetch at a port, in order."""
    numbers = bursts.of(FetchModel, port).tolist()
    return [np.array(list(group), np.int64) for _, group in groupby(numbers, bursts.generation)]


def connect_bodies(
    graph: Dependencies,
    params: SocParams,
    stream: BodyStream,
    bursts: Bursts,
    bodies: Sequence[BodyRun],
    jobs: JobMoments,
) -> None:
    """Fetch and dispatch of instructions, and the end of the body."""
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
        connect_fetches(graph, params, bursts, fetches, issued, places, 1)
        begins = FETCH_STARTS + 1
        graph.edges(last, bursts.offered[fetches[:1]], spacing + 1 + begins)
        graph.edges(jobs.loaded[number], bursts.offered[fetches[:1]], 1 + SAVE + JOB_READ + begins)
        graph.edges(bursts.offered[fetches[:1]], jobs.start[number], JOB_EVENTS - begins + 1)
        last = issued[-1] if len(issued) else NOBODY
        graph.edges(last, jobs.end[number], spacing + 2)


def connect_fetches(
    graph: Dependencies, params: SocParams, bursts: Bursts, fetches: Ints, issued: Ints, places: Ints, after: int
) -> None:
    """``issued``: of the instructions at ``places`` behind the first, which the bursts ``fetches`` bring, ``after``
    cycles behind their assembly."""
    per_insn = INSN_BYTES // params.dram_word
    come = np.cumsum(bursts.beats[fetches])
    offered = bursts.offered[fetches]
    whole = (places + 1) * per_insn
    by = np.searchsorted(come, whole)
    behind = come[by] - whole
    arrives = AXI_RETURN + FETCH_BUFFERED
    graph.edges(bursts.ends[fetches[by]], issued, arrives + after, [("beat", -behind)])
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
