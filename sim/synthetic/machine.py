"""Defines the synthetic machine: engines with a queue each, one path for memory access, one on-chip memory, preemption.

Loads run one after the other in the order of submission, as far as on-chip memory allows. Each engine computes its jobs
in that order, each after its own load. With preemption, more urgent jobs go first in both. Whoever submits one has
decided to switch: its engine stops at the next cancellation point or between two jobs, and dumps the requests of lower
priority that are in the middle of their jobs there; they are restored when the more urgent ones have ended. What was
only loaded gives up its memory if a more urgent job needs it.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import simpy

from sim.synthetic.job import MachineObserver, SyntheticJob

Process = Generator[simpy.Event, Any, Any]  #: what SimPy runs


@dataclass(frozen=True)
class SwitchCost:
    """Says what preemption costs, whichever policy asks for it. ``interval`` is the time between cancellation points in
    a job.

    ``dump`` and ``restore`` occupy the engine, between two jobs of a request as within one: what the later ones read is
    on chip there, too.
    """

    dump: float
    restore: float
    interval: float


@dataclass(frozen=True)
class StateMove:
    """Describes a ``dump`` or a ``restore`` of an engine, when it was, and the numbers of the ``requests`` that were
    on chip there; ``models``: of these, for whoever knows them."""

    kind: str
    engine: int
    begin: float
    end: float
    requests: tuple[int, ...] = ()
    models: tuple[str, ...] = ()


class SyntheticMachine:
    """Runs jobs with ``memory`` bytes on chip. Without ``switch`` nothing is preempted and priorities have no effect.
    With ``partial`` a load begins as soon as there is some room, pauses when memory is full, and goes on when some is
    freed; otherwise it waits for all that it needs. ``partial`` and ``switch`` exclude each other."""

    def __init__(
        self,
        env: simpy.Environment,
        engines: int,
        memory: int,
        observer: MachineObserver,
        switch: SwitchCost | None = None,
        partial: bool = False,
    ) -> None:
        self.env, self.memory = env, memory
        self.used = 0
        self.backlog: list[SyntheticJob] = []  #: submitted, not loading yet
        self.access_busy = 0.0  #: time of memory access spent on loads that were used
        self.compute_busy = [0.0] * engines
        self.switch_time = [0.0] * engines
        self.switches = 0  #: dumps that were later restored
        self.moves: list[StateMove] = []  #: dumps and restores, in order
        self._observer, self._switch, self._partial = observer, switch, partial
        self._queues: list[list[SyntheticJob]] = [[] for _ in range(engines)]
        self._running: list[SyntheticJob | None] = [None] * engines
        self._pause = [env.event() for _ in range(engines)]
        self._restoring: list[SyntheticJob] = []
        self._latest: dict[int, SyntheticJob] = {}  #: by request in the middle of its jobs: the one that began last
        self._dumped: dict[int, SyntheticJob] = {}  #: the same of requests that are not on chip
        self._ended: dict[int, int] = {}  #: jobs, by request
        self._changed = env.event()
        env.process(self._load())
        for engine in range(engines):
            env.process(self._serve(engine, None))

    def submit(self, job: SyntheticJob) -> None:
        """Queue ``job`` for its load and on its engine. Raises ``ValueError`` if it cannot fit on chip."""
        if job.bytes > self.memory:
            raise ValueError(
                f"layer {job.layer} of request {job.request} needs {job.bytes} bytes on chip, there are {self.memory}:"
                " split the layer"
            )
        job.submitted = self.env.now
        self.backlog.append(job)
        self._queues[job.engine].append(job)
        if job.earliest > self.env.now:
            self.env.process(self._wake(job.earliest - self.env.now))
        self._notify()

    def _wake(self, delay: float) -> Process:
        """Look again after ``delay``, when a job may load."""
        yield self.env.timeout(delay)
        self._notify()

    def _load(self) -> Process:
        while True:
            job = self._next_load()
            if job is None:
                yield self._changed
                continue
            self.backlog.remove(job)
            yield from self._bring(job)
            self.access_busy += job.load
            job.load_end = self.env.now
            self._observer.load_ended(job)
            self._notify()

    def _bring(self, job: SyntheticJob) -> Process:
        """Load a job, in pieces where there is not enough room yet."""
        left = job.bytes
        self.used += (piece := min(left, self.memory - self.used))
        job.load_start = self.env.now
        self._observer.load_started(job)
        while left > piece:
            yield self.env.timeout(job.load * piece / job.bytes)
            left -= piece
            while self.used == self.memory:
                yield self._changed
            self.used += (piece := min(left, self.memory - self.used))
        yield self.env.timeout(job.load * piece / job.bytes if job.bytes else job.load)

    def _next_load(self) -> SyntheticJob | None:
        """Return the job to load now, if there is room for it."""
        job = min((job for job in self.backlog if job.earliest <= self.env.now), key=self._rank, default=None)
        if job is None:
            return None
        if any(self._rank(waiting) < self._rank(job) for waiting in self._restoring):
            return None
        if self._partial and self.used < self.memory:
            return job
        return job if self._make_room(job) else None

    def _serve(self, engine: int, above: int | None) -> Process:
        """Compute the jobs of ``engine``: for ever, or while requests more urgent than ``above`` have jobs there."""
        while True:
            queue = [job for job in self._queues[engine] if above is None or self._level(job) > above]
            job = min(queue, key=self._rank, default=None)
            if above is not None and job is None and not any(self._level(j) > above for j in self.on_chip(engine)):
                return
            lower = [self._level(j) for j in self.on_chip(engine) if job and self._level(j) < self._level(job)]
            if lower:
                yield from self._make_way(engine, max(lower))
                continue
            if job is None or not job.ready:
                yield self._changed
                continue
            self._queues[engine].remove(job)
            yield from self._compute(job)

    def on_chip(self, engine: int) -> list[SyntheticJob]:
        """Return the latest jobs of requests that are in the middle of their jobs on ``engine`` and not dumped."""
        dumped = self._dumped
        return [job for request, job in self._latest.items() if job.engine == engine and dumped.get(request) is not job]

    def _compute(self, job: SyntheticJob) -> Process:
        job.start = self.env.now
        self._latest[job.request] = job
        self._observer.started(job)
        done = 0.0
        while True:
            done = yield from self._run(job, done)
            if done >= job.compute:
                break
            job.preempted += 1
            yield from self._make_way(job.engine, self._level(job), job)
        self.compute_busy[job.engine] += job.compute
        self.used -= job.bytes
        job.end = self.env.now
        self._ended[job.request] = self._ended.get(job.request, 0) + 1
        if self._ended[job.request] == job.jobs:
            del self._latest[job.request]
        self._observer.ended(job)
        self._notify()

    def _run(self, job: SyntheticJob, done: float) -> Process:
        """Compute until the end, or the first cancellation point after a request to stop. Returns how far it came."""
        env, begin = self.env, self.env.now
        self._running[job.engine] = job
        pause = self._pause[job.engine] = env.event()
        self._check_stops()
        end = env.timeout(job.compute - done)
        yield end | pause
        if not end.processed and self._switch is not None:  # a more urgent job is here
            so_far = done + env.now - begin
            point = math.ceil(so_far / self._switch.interval - 1e-9) * self._switch.interval
            if point < job.compute * (1 - 1e-9):
                yield env.timeout(max(0.0, point - so_far))
                self._running[job.engine] = None
                return point
            yield end
        self._running[job.engine] = None
        return job.compute

    def _make_way(self, engine: int, level: int, stopped: SyntheticJob | None = None) -> Process:
        """Dump the requests up to ``level`` that are on ``engine``, with the job that was ``stopped`` if one was; let
        more urgent ones run; restore."""
        assert self._switch is not None
        gone = [job for job in self.on_chip(engine) if self._level(job) <= level]
        self.switches += 1
        self.switch_time[engine] += self._switch.dump + self._switch.restore
        whose = tuple(sorted({job.request for job in gone}))
        self.moves.append(StateMove("dump", engine, self.env.now, self.env.now + self._switch.dump, whose))
        yield self.env.timeout(self._switch.dump)
        self.used -= stopped.bytes if stopped is not None else 0
        self._dumped |= {job.request: job for job in gone}
        self._notify()
        yield from self._serve(engine, level)
        if stopped is not None:
            self._restoring.append(stopped)
            while not self._make_room(stopped):
                yield self._changed
                yield from self._serve(engine, level)  # what came meanwhile may hold the memory
            self._restoring.remove(stopped)
            self.used += stopped.bytes
        self.moves.append(StateMove("restore", engine, self.env.now, self.env.now + self._switch.restore, whose))
        yield self.env.timeout(self._switch.restore)
        for job in gone:
            if self._dumped.get(job.request) is job:  # it may have gone on elsewhere
                del self._dumped[job.request]

    def _make_room(self, job: SyntheticJob) -> bool:
        """Return whether there is room for ``job``, after rolling back later jobs that are loaded and have not
        started."""
        loaded = [
            other
            for queue in self._queues
            for other in queue
            if other.load_end is not None and self._rank(other) > self._rank(job)
        ]
        loaded.sort(key=self._rank)
        while self._switch and loaded and self.used + job.bytes > self.memory:
            victim = loaded.pop()
            self.used -= victim.bytes
            self.access_busy -= victim.load
            victim.load_start = victim.load_end = None
            self.backlog.append(victim)
            self._observer.rolled_back(victim)
        return self.used + job.bytes <= self.memory

    def _level(self, job: SyntheticJob) -> int:
        return job.priority if self._switch else 0

    def _rank(self, job: SyntheticJob) -> tuple[int, int]:
        return -self._level(job), job.number

    def _notify(self) -> None:
        """Wake what waits for a change."""
        changed, self._changed = self._changed, self.env.event()
        changed.succeed()
        self._check_stops()

    def _check_stops(self) -> None:
        for engine, running in enumerate(self._running):
            if running is not None and any(self._level(job) > self._level(running) for job in self._queues[engine]):
                self._stop(engine)

    def _stop(self, engine: int) -> None:
        if not self._pause[engine].triggered:
            self._pause[engine].succeed()
