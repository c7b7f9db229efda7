"""Describes a dump or a restore of what suspended tasks have on chip: several supervisor jobs, and what follows once
all have completed."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from sw.driver.memory.ranges import LV2, Footprint, Range
from sw.driver.models.loaded_model import LoadedModel
from sw.driver.preempt.copies import Program, Spill, load, save
from sw.driver.preempt.staging import CopyJob
from sw.driver.preempt.suspended_tasks import SuspendedTasks
from sw.driver.preempt.suspension import DirtyRange, Suspension
from sw.driver.queues.job import DeviceJob, DramTraffic, JobState


@dataclass(frozen=True)
class CopyResult:
    """Describes one supervisor job that moved ``bytes`` of suspended ``models`` to or from DRAM; times and ``traffic``
    are as in ``JobResult``."""

    engine: int
    start: int
    end: int
    bytes: int
    traffic: DramTraffic
    models: tuple[LoadedModel, ...] = ()


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Effects:
    """Says what a supervisor job changes. ``on_start`` is to be assumed once it may have begun; ``on_end`` once it has
    completed."""

    on_start: Callable[[], None] = _nothing
    on_end: Callable[[], None] = _nothing


class StateTransfer(ABC):
    """Joins supervisor jobs that belong together: a ``Dump`` or a ``Restore``.

    ``jobs``: all of them, until the transfer has ended; ``results``: of those that moved data, in order of completion.
    """

    name: ClassVar[str]  #: in messages
    apart = False  #: whether nothing on one engine has to wait for what it does on another

    def __init__(self) -> None:
        self.jobs: list[DeviceJob] = []
        self.results: list[CopyResult] = []
        self._closed = False

    @abstractmethod
    def append(self, program: Program, copy_job: CopyJob) -> None:
        """Add to ``program`` what moves the bytes of ``copy_job``."""

    def written(self, copy_job: CopyJob) -> list[Range]:
        """Return the bytes of LV2 that moving ``copy_job`` overwrites."""
        return [copy_job.lv2.where] if copy_job.lv2 is not None else []

    @abstractmethod
    def effects(self, copy_jobs: Sequence[CopyJob]) -> Effects:
        """Return what changes when one program for all of ``copy_jobs`` runs."""

    @abstractmethod
    def ended(self) -> None:
        """Do what follows once all jobs have completed; called once."""

    def close(self) -> None:
        """Say that all jobs were queued."""
        self._closed = True
        self.settle()

    def settle(self) -> None:
        """Call :meth:`ended` if everything has completed. A transfer that has lost a job never ends."""
        if self._closed and all(job.state is JobState.DONE for job in self.jobs):
            self._closed, self.jobs = False, []
            self.ended()

    @property
    def running(self) -> bool:
        """Return whether jobs of it are queued."""
        return any(job.state in (JobState.HELD, JobState.QUEUED) for job in self.jobs)


class Dump(StateTransfer):
    """Dumps what ``wanted`` is about to overwrite of the tasks ``losing`` it.

    ``copies``: where in DRAM each dirty range goes. ``apart``: it touches private memories of engines, and nothing that
    is wanted of LV2. A range counts as copied once its job has completed; what a job
    overwrites on its way counts as lost once the job may have begun.
    """

    name: ClassVar[str] = "dump"

    def __init__(
        self,
        tasks: SuspendedTasks,
        losing: Sequence[Suspension],
        wanted: Footprint,
        copies: Mapping[DirtyRange, int],
        *,
        apart: bool = False,
    ) -> None:
        super().__init__()
        self.apart = apart
        self._tasks, self._losing, self._wanted, self._copies = tasks, losing, wanted, copies

    def append(self, program: Program, copy_job: CopyJob) -> None:
        """Add the dump of the ranges of ``copy_job`` to ``program``."""
        for r in copy_job.ranges:
            save(program, Spill(r.memory, r.start, r.size, self._copies[r]), copy_job.lv1, copy_job.lv2)

    def effects(self, copy_jobs: Sequence[CopyJob]) -> Effects:
        """Return what a program for ``copy_jobs`` changes: what is lost when it begins, and what is copied when it
        ends."""
        copies = {r: self._copies[r] for copy_job in copy_jobs for r in copy_job.ranges}

        def on_start() -> None:
            for copy_job in copy_jobs:
                self._tasks.overwrite(copy_job.staged())

        def on_end() -> None:
            for r, address in copies.items():
                r.copy = address
            if self.apart:
                self._give_up(copy_jobs[0].engine)

        return Effects(on_start, on_end)

    def _give_up(self, engine: int) -> None:
        """Let what comes in overwrite the memories of ``engine`` once all of them is copied: it does not wait for other
        engines, whose dumps may fail."""
        if all(r.copy is not None for r in self._copies if r.memory[1] == engine):
            mine = {memory: w for memory, w in self._wanted.items() if memory != LV2 and memory[1] == engine}
            for task in self._losing:
                task.overwrite(mine)

    def ended(self) -> None:
        """Let what comes in overwrite its footprint from now on."""
        for task in self._losing:
            task.overwrite(self._wanted)


class Restore(StateTransfer):
    """Restores everything that ``suspended`` lost. Its copies are valid until all of it has completed."""

    name: ClassVar[str] = "restore"

    def __init__(self, tasks: SuspendedTasks, suspended: Suspension) -> None:
        super().__init__()
        self._tasks, self._suspended = tasks, suspended

    def append(self, program: Program, copy_job: CopyJob) -> None:
        """Add the way back of the ranges of ``copy_job`` to ``program``."""
        for r in copy_job.ranges:
            assert r.copy is not None
            load(program, Spill(r.memory, r.start, r.size, r.copy), copy_job.lv1, copy_job.lv2)

    def written(self, copy_job: CopyJob) -> list[Range]:
        """Return, beside staging buffers, what the job brings back: an image may name anything there, and any
        source."""
        return [*super().written(copy_job), *((r.start, r.end) for r in copy_job.ranges if r.memory == LV2)]

    def effects(self, copy_jobs: Sequence[CopyJob]) -> Effects:
        """Return what a program for ``copy_jobs`` changes: what is on chip again when it ends."""

        def on_end() -> None:
            for copy_job in copy_jobs:
                for r in copy_job.ranges:
                    r.on_chip = True

        return Effects(on_end=on_end)

    def ended(self) -> None:
        """Take the task off the list of suspended ones, as it runs again."""
        self._tasks.discard(self._suspended)
