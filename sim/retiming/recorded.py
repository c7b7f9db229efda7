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
from sim.retiming.dependencies import Dependencies, Timings
from sim.retiming.instructions import UnitMoments, connect
from sim.retiming.jobs import BodyStream, JobMoments, connect_bodies, connect_fetches, fetch_groups, job_moments
from sim.retiming.links import EngineMoments, connect_jobs
from sim.retiming.orders import Delay, OrderError, Turns, as_recorded, delayed, number_of, places, wants
from sim.retiming.replay import CircularError, Ints
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

    Its jobs and what they do stay as they were; when things happen is worked out anew.
    Raises ValueError for a run that was interrupted by pauses or faults.
    """

    def __init__(self, params: SocParams, history: History) -> None:
        if not history.bodies:
            raise ValueError("nothing was recorded: call record(bursts=True) on the bus before jobs run")
        self.params, self._history = params, history
        self._recorded = self._graph(None)
        self._reordered: tuple[tuple[int, ...], _Graph] | None = None  # the last other order

    def _graph(self, order: Sequence[int] | None, guess: "_Graph | None" = None) -> "_Graph":
        """Of an ``order``, or as recorded; when LD2 takes what is worked out from a ``guess`` of the same order."""
        params, history = self.params, self._history
        graph = Dependencies()
        bursts = Bursts(graph, history)
        engines = []
        for engine in range(params.engines):
            bodies = [body for body in history.bodies if body.engine == engine]
            if bodies:
                loads = [prologue for prologue in history.prologues if prologue.engine == engine]
                found = list(range(len(bodies))) if order is None else places(bodies, order)
                delays = delayed(bodies, found, params.job_slots)
                late = np.array([delays[number].body for number in found], np.int64)
                if guess is not None:
                    delays, late = guess.delays(engine, bodies)
                engines.append(self._engine(graph, bursts, engine, bodies, loads, found, delays, late))
        if order is not None and len(order) != len(history.bodies):
            raise OrderError("an order names each recorded job once, by its job_id")
        connect_jobs(graph, params, bursts, engines, history.doorbells)
        timings = graph.timings(params, bursts.columns, calibrate=order is None)
        return _Graph(timings, {one.number: one for one in engines}, params)

    def _engine(
        self, graph: Dependencies, bursts: Bursts, engine: int, recorded: Sequence[BodyRun],
        loads: Sequence[PrologueRun], found: Sequence[int], delays: Sequence[Delay], late: Ints,
    ) -> EngineMoments:  # fmt: skip
        """``found``: which of the ``recorded`` bodies is where; ``delays`` of those that were recorded, and how
        ``late`` LD2 has the commands of each body that is where, or each command."""
        bodies = [recorded[number] for number in found]
        units = [UnitMoments(graph, unit, bodies) for unit in Unit]
        jobs = job_moments(graph, bodies)
        connect(graph, self.params, units, bodies)
        stream = BodyStream(self.params, units, bursts, engine, found)
        connect_bodies(graph, self.params, stream, bursts, bodies, jobs)
        prologues = self._prologues(graph, bursts, engine, recorded, found, jobs, loads, delays)
        mine = units[Unit.LD2]
        late = late[mine.body] if len(late) == len(found) else late
        turns = Turns(recorded, found, self.params.job_slots)
        wanted = mine.recorded
        if not as_recorded(found):
            wanted = wants(mine.recorded_issue + late, mine, prologues.recorded, prologues.ends)
        about = turns.taken(wanted, mine.body, prologues.about, prologues.places)
        connect_loads(graph, self.params, bursts, engine, _merged(mine, prologues, np.concatenate(about)))
        stores = units[Unit.ST2]
        sides = np.full(len(stores.pcs), BODY)
        commands = BusCommands(stores.taken, stores.done, sides, stores.work, stores.recorded)
        connect_stores(graph, self.params, bursts, engine, commands)
        fetches = np.array([bursts.offered[fetch[0]] for fetch in stream.fetches[: len(bodies)]])
        return EngineMoments(engine, bodies, jobs, units, fetches, recorded, found)

    def _prologues(
        self, graph: Dependencies, bursts: Bursts, engine: int, recorded: Sequence[BodyRun], found: Sequence[int],
        jobs: JobMoments, loads: Sequence[PrologueRun], delays: Sequence[Delay],
    ) -> "_Prologues":  # fmt: skip
        """Loads of the prologues: the loader gives one on when the one before was taken."""
        of = {id(recorded[number].job): place for place, number in enumerate(found)}
        parts = []
        work: list = []
        fetches = fetch_groups(bursts, 3 * engine + 1)
        if len(fetches) != len(loads):
            raise ValueError("prologues were repeated while the run was recorded: a run with pauses cannot be retimed")
        ordered = sorted(zip(loads, fetches, strict=True), key=lambda one: of.get(id(one[0].job), len(of)))
        for prologue, fetched in ordered:
            taken, done = graph.moments(prologue.taken), graph.moments(prologue.done)
            graph.edges(taken[:-1], taken[1:], INSN_BYTES // self.params.dram_word + 2)
            places = np.asarray(prologue.pcs, np.int64) - prologue.job.members["prologue_pc"]
            connect_fetches(graph, self.params, bursts, fetched, taken, places, 2)
            number = of.get(id(prologue.job))
            if number is not None:
                graph.edges(jobs.loads[number], bursts.offered[fetched[:1]], FETCH_STARTS)
                graph.edges(done, np.full(len(done), jobs.loaded[number]), 1)
            times = np.asarray(prologue.taken, np.int64)
            late = delays[found[number]].prologue if number is not None else 0
            place = np.full(len(times), len(found) if number is None else number)
            parts.append((taken, done, times, times + late, place, np.asarray(prologue.done, np.int64)))
            work += [prologue.program.measured(pc) for pc in prologue.pcs]
        nothing = np.zeros(0, np.int64)
        taken, done, *rest = (np.concatenate([nothing, *(part[column] for part in parts)]) for column in range(6))
        return _Prologues(work, taken, done, *rest)

    def price(
        self, params: SocParams | None = None, durations: Mapping[Unit, float] | None = None,
        order: Sequence[int] | None = None,
    ) -> Repriced:  # fmt: skip
        """What the run takes with the DRAM of ``params``, with instructions of a unit that take ``durations`` times as
        long, and with jobs in another ``order``: all their job_ids, of which each engine runs its own in that order.

        Raises ValueError where ``params`` differ in anything else: such a machine needs a run of its own. Raises
        :class:`OrderError` for an order in which a job does not have what it depends on.
        """
        if params is not None:
            _check(self.params, params)
        if any(factor < 0 for factor in (durations or {}).values()):
            raise ValueError("durations are factors of at least 0")
        graph = self._recorded if order is None else self._ordered(tuple(order))
        try:
            times = np.rint(graph.timings.times(params or self.params, durations or {})).astype(np.int64)
        except CircularError:
            if order is None:
                raise
            raise OrderError("in this order jobs of several engines wait for each other's events") from None
        jobs = []
        for one in graph.engines.values():
            for body, *moments in zip(one.bodies, *one.jobs, strict=True):
                four = (0 if moment < 0 else int(times[moment]) for moment in moments)
                jobs.append(JobTimes(body.engine, number_of(body.job), *four))
        return Repriced(jobs)

    def _ordered(self, order: tuple[int, ...]) -> "_Graph":
        if self._reordered is None or self._reordered[0] != order:
            self._reordered = order, self._graph(order, self._graph(order))
        return self._reordered[1]

    @property
    def unexplained(self) -> npt.NDArray[np.float64]:
        """Cycles by which moments of the run are later than what they are known to wait for (negative: earlier)."""
        return self._recorded.timings.unexplained


def _check(recorded: SocParams, wanted: SocParams) -> None:
    present, other = recorded.to_dict(), wanted.to_dict()
    differ = [name for name in present if present[name] != other[name] and name not in (*DRAM_TIMING, "name")]
    if differ:
        raise ValueError(
            f"a recorded run cannot be priced for another {', '.join(differ)}: only for other {', '.join(DRAM_TIMING)} "
            "and other durations; record it on that machine"
        )


class _Graph(NamedTuple):
    timings: Timings
    engines: Mapping[int, EngineMoments]
    params: SocParams

    def delays(self, engine: int, recorded: Sequence[BodyRun]) -> tuple[list[Delay], Ints]:
        """How much later than recorded jobs are, and commands of bodies are dispatched to LD2."""
        one, times = self.engines[engine], self.timings.times(self.params, {})
        delays = [Delay(0, 0)] * len(recorded)
        for number, loads, start in zip(one.found, one.jobs.loads, one.jobs.start, strict=True):
            before = recorded[number].job.times
            prologue = int(times[loads]) - before["prologue_start"] if loads >= 0 else 0
            delays[number] = Delay(prologue, int(times[start]) - before["start"])
        unit = one.units[Unit.LD2]
        return delays, np.rint(times[unit.issued]).astype(np.int64) - unit.recorded_issue


class _Prologues(NamedTuple):
    work: list
    taken: Ints
    done: Ints
    recorded: Ints
    about: Ints  #: when LD2 takes them, about
    places: Ints  #: of their jobs
    ends: Ints  #: as they were recorded


def _merged(loads: UnitMoments, prologues: _Prologues, taken: Ints) -> BusCommands:
    """All commands of LD2, of bodies and of prologues, in the order in which it takes them: about when they are
    ``taken``."""
    recorded = np.concatenate([loads.recorded, prologues.recorded])
    order = np.argsort(taken, kind="stable")
    work = [*loads.work, *prologues.work]
    side = np.repeat([BODY, LOADER], [len(loads.pcs), len(prologues.work)])[order]
    moments = np.concatenate([loads.taken, prologues.taken])[order]
    done = np.concatenate([loads.done, prologues.done])[order]
    return BusCommands(moments, done, side, [work[place] for place in order.tolist()], recorded[order])
