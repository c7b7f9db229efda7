"""A recorded run, and what it would have taken."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hw.contract.isa import INSN_BYTES, Unit
from hw.contract.params import DRAM_TIMING, SocParams
from hw.contract.timing import FETCH_STARTS
from sim.model.recorder import BodyRun, History, PrologueRun
from sim.model.transfer import BODY, LOADER
from sim.retiming.bursts import Bursts
from sim.retiming.dependencies import Dependencies
from sim.retiming.instructions import UnitMoments, connect
from sim.retiming.jobs import BodyStream, JobMoments, connect_bodies, connect_fetches, fetch_groups, job_moments
from sim.retiming.links import EngineMoments, connect_jobs
from sim.retiming.replay import Ints
from sim.retiming.transfers import BusCommands, connect_loads, connect_stores


class JobTimes(NamedTuple):
    """When a job's prologue and body began and ended; 0 for a prologue that it does not have."""

    engine: int
    job_id: int
    prologue_start: int
    prologue_end: int
    start: int
    end: int


class Repriced(NamedTuple):
    """A run at other values. ``jobs``: of all engines; ``cycles``: from the first to begin until the last has ended."""

    jobs: list[JobTimes]

    @property
    def cycles(self) -> int:
        """Of the whole run."""
        return max(job.end for job in self.jobs) - min(job.prologue_start or job.start for job in self.jobs)


def cycles_of(history: History) -> int:
    """What a run took that was recorded, counted as :attr:`Repriced.cycles`."""
    times = [body.job.times for body in history.bodies]
    return max(one["end"] for one in times) - min(one["prologue_start"] or one["start"] for one in times)


class RecordedRun:
    """A run of ``ModelBus`` that was recorded with ``record(bursts=True)``, ready to be priced again.

    Its jobs, their order and the order of their bursts stay as they were; when things happen is worked out anew.
    Raises ValueError for a run that was interrupted by pauses or faults.
    """

    def __init__(self, params: SocParams, history: History) -> None:
        if not history.bodies:
            raise ValueError("nothing was recorded: call record(bursts=True) on the bus before jobs run")
        self.params = params
        graph = Dependencies()
        bursts = Bursts(graph, history)
        engines = []
        self._jobs: list[tuple[BodyRun, Ints]] = []
        for engine in range(params.engines):
            bodies = [body for body in history.bodies if body.engine == engine]
            if bodies:
                loads = [prologue for prologue in history.prologues if prologue.engine == engine]
                engines.append(self._engine(graph, bursts, engine, bodies, loads))
        connect_jobs(graph, params, bursts, engines, history.doorbells)
        self._timings = graph.timings(params, bursts.columns)
        for one in engines:
            for number, body in enumerate(one.bodies):
                moments = np.array([column[number] for column in one.jobs], np.int64)
                self._jobs.append((body, moments))

    def _engine(
        self, graph: Dependencies, bursts: Bursts, engine: int, bodies: Sequence[BodyRun], loads: Sequence[PrologueRun]
    ) -> EngineMoments:
        units = [UnitMoments(graph, unit, bodies) for unit in Unit]
        jobs = job_moments(graph, bodies)
        connect(graph, self.params, units, bodies)
        stream = BodyStream(self.params, units, bursts, engine)
        connect_bodies(graph, self.params, stream, bursts, bodies, jobs)
        prologues = self._prologues(graph, bursts, engine, bodies, jobs, loads)
        connect_loads(graph, self.params, bursts, engine, _merged(units[Unit.LD2], prologues))
        stores = units[Unit.ST2]
        sides = np.full(len(stores.pcs), BODY)
        connect_stores(graph, self.params, bursts, engine, BusCommands(stores.taken, stores.done, sides, stores.work))
        fetches = np.array([bursts.offered[fetch[0]] for fetch in stream.fetches[: len(bodies)]])
        return EngineMoments(engine, bodies, jobs, units, fetches)

    def _prologues(
        self, graph: Dependencies, bursts: Bursts, engine: int, bodies: Sequence[BodyRun], jobs: JobMoments,
        loads: Sequence[PrologueRun],
    ) -> "_Prologues":  # fmt: skip
        """Loads of the prologues: the loader gives one on when the one before was taken."""
        of = {id(body.job): number for number, body in enumerate(bodies)}
        parts = []
        work: list = []
        fetches = fetch_groups(bursts, 3 * engine + 1)
        if len(fetches) != len(loads):
            raise ValueError("prologues were repeated while the run was recorded: a run with pauses cannot be retimed")
        for prologue, fetched in zip(loads, fetches, strict=True):
            taken, done = graph.moments(prologue.taken), graph.moments(prologue.done)
            graph.edges(taken[:-1], taken[1:], INSN_BYTES // self.params.dram_word + 2)
            places = np.asarray(prologue.pcs, np.int64) - prologue.job.members["prologue_pc"]
            connect_fetches(graph, self.params, bursts, fetched, taken, places, 2)
            number = of.get(id(prologue.job))
            if number is not None:
                graph.edges(jobs.loads[number], bursts.offered[fetched[:1]], FETCH_STARTS)
                graph.edges(done, np.full(len(done), jobs.loaded[number]), 1)
            parts.append((taken, done, np.asarray(prologue.taken, np.int64)))
            work += [prologue.program.work[pc] for pc in prologue.pcs]
        nothing = np.zeros(0, np.int64)
        taken, done, times = (np.concatenate([nothing, *(part[column] for part in parts)]) for column in range(3))
        return _Prologues(taken, done, times, work)

    def price(self, params: SocParams | None = None, durations: Mapping[Unit, float] | None = None) -> Repriced:
        """What the run takes with the DRAM of ``params``, and with instructions of a unit that take ``durations`` times
        as long. Raises ValueError where ``params`` differ in anything else: such a machine needs a run of its own."""
        if params is not None:
            _check(self.params, params)
        if any(factor < 0 for factor in (durations or {}).values()):
            raise ValueError("durations are factors of at least 0")
        times = np.rint(self._timings.times(params or self.params, durations or {})).astype(np.int64)
        jobs = []
        for body, moments in self._jobs:
            four = (0 if moment < 0 else int(times[moment]) for moment in moments)
            jobs.append(JobTimes(body.engine, body.job.members["job_id"], *four))
        return Repriced(jobs)

    @property
    def unexplained(self) -> npt.NDArray[np.float64]:
        """Cycles by which moments of the run are later than what they are known to wait for (negative: earlier)."""
        return self._timings.unexplained


def _check(recorded: SocParams, wanted: SocParams) -> None:
    present, other = recorded.to_dict(), wanted.to_dict()
    differ = [name for name in present if present[name] != other[name] and name not in (*DRAM_TIMING, "name")]
    if differ:
        raise ValueError(
            f"a recorded run cannot be priced for another {', '.join(differ)}: only for other {', '.join(DRAM_TIMING)} "
            "and other durations; record it on that machine"
        )


class _Prologues(NamedTuple):
    taken: Ints
    done: Ints
    times: Ints
    work: list


def _merged(loads: UnitMoments, prologues: _Prologues) -> BusCommands:
    """All commands of LD2 in the order in which it took them."""
    taken = np.concatenate([loads.recorded, prologues.times])
    order = np.argsort(taken, kind="stable")
    work = [*loads.work, *prologues.work]
    side = np.repeat([BODY, LOADER], [len(loads.pcs), len(prologues.work)])[order]
    moments = np.concatenate([loads.taken, prologues.taken])[order]
    done = np.concatenate([loads.done, prologues.done])[order]
    return BusCommands(moments, done, side, [work[place] for place in order.tolist()])
