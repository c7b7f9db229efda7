"""The synthetic machine: engines with a queue each, one path for memory access, one on-chip memory, preemption.

Loads run one after the other in the order of submission, as far as on-chip memory allows. Each engine computes its jobs
in that order, each after its own load. With preemption, more urgent jobs go first in both, a running job of lower
priority is stopped at its next cancellation point, and what was only loaded gives up its memory if a more urgent job
needs it.
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
    """What preemption costs, whichever policy asks for it. ``interval``: time between cancellation points in a job.

    ``dump`` and ``restore`` occupy the engine. Between two jobs nothing needs to be dumped, so a job that would end
    before it could be dumped and restored is not stopped.
    """

    dump: float
    restore: float
    interval: float


class SyntheticMachine:
    """``memory`` bytes on chip. Without ``switch`` nothing is preempted and priorities have no effect."""

    def __init__(
        self,
        env: simpy.Environment,
        engines: int,
        memory: int,
        observer: MachineObserver,
        switch: SwitchCost | None = None,
    ) -> None:
        self.env, self.memory = env, memory
        self.used = 0
        self.backlog: list[SyntheticJob] = []  #: submitted, not loading yet
        self.access_busy = 0.0  #: time of memory access spent on loads that were used
        self.compute_busy = [0.0] * engines
        self.switch_time = [0.0] * engines
        self._observer, self._switch = observer, switch
        self._queues: list[list[SyntheticJob]] = [[] for _ in range(engines)]
        self._running: list[SyntheticJob | None] = [None] * engines
        self._pause = [env.event() for _ in range(engines)]
        self._restoring: list[SyntheticJob] = []
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
        self._notify()

    def _load(self) -> Process:
        while True:
            job = self._next_load()
            if job is None:
                yield self._changed
                continue
            self.backlog.remove(job)
            self.used += job.bytes
            job.load_start = self.env.now
            self._observer.load_started(job)
            yield self.env.timeout(job.load)
            self.access_busy += job.load
            job.load_end = self.env.now
            self._observer.load_ended(job)
            self._notify()

    def _next_load(self) -> SyntheticJob | None:
        """The job to load now, if there is room for it."""
        if not self.backlog:
            return None
        job = min(self.backlog, key=self._rank)
        if any(self._rank(waiting) < self._rank(job) for waiting in self._restoring):
            return None
        if self._make_room(job):
            return job
        running = self._running[job.engine]
        if running is not None and self._level(running) < self._level(job):
            self._stop(job.engine)  # the dump makes room
        return None

    def _serve(self, engine: int, above: int | None) -> Process:
        """Compute the jobs of ``engine``: for ever, or while there are jobs more urgent than ``above``."""
        while True:
            queue = [job for job in self._queues[engine] if above is None or self._level(job) > above]
            if not queue and above is not None:
                return
            job = min(queue, key=self._rank, default=None)
            if job is None or not job.ready:
                yield self._changed
                continue
            self._queues[engine].remove(job)
            yield from self._compute(job)

    def _compute(self, job: SyntheticJob) -> Process:
        job.start = self.env.now
        self._observer.started(job)
        done = 0.0
        while True:
            done = yield from self._run(job, done)
            if done >= job.compute:
                break
            yield from self._step_aside(job)
        self.compute_busy[job.engine] += job.compute
        self.used -= job.bytes
        job.end = self.env.now
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
        if not end.processed and self._switch is not None:  # a more urgent job is ready
            so_far = done + env.now - begin
            point = math.ceil(so_far / self._switch.interval - 1e-9) * self._switch.interval
            if job.compute - point > self._switch.dump + self._switch.restore:
                yield env.timeout(max(0.0, point - so_far))
                self._running[job.engine] = None
                return point
            yield end
        self._running[job.engine] = None
        return job.compute

    def _step_aside(self, job: SyntheticJob) -> Process:
        """Dump, let more urgent jobs run, restore."""
        assert self._switch is not None
        job.preempted += 1
        self.switch_time[job.engine] += self._switch.dump + self._switch.restore
        yield self.env.timeout(self._switch.dump)
        self.used -= job.bytes
        self._notify()
        yield from self._serve(job.engine, self._level(job))
        self._restoring.append(job)
        while not self._make_room(job):
            yield self._changed
            yield from self._serve(job.engine, self._level(job))  # what came meanwhile may hold the memory
        self._restoring.remove(job)
        self.used += job.bytes
        yield self.env.timeout(self._switch.restore)

    def _make_room(self, job: SyntheticJob) -> bool:
        """Whether there is room for ``job``, after rolling back later jobs that are loaded and have not started."""
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
            if running is not None and any(
                job.ready and self._level(job) > self._level(running) for job in self._queues[engine]
            ):
                self._stop(engine)

    def _stop(self, engine: int) -> None:
        if not self._pause[engine].triggered:
            self._pause[engine].succeed()
