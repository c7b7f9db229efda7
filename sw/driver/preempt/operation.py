"""Describes a dump or a restore as the driver queues it: several supervisor jobs, and what follows once all have
completed."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from sw.driver.memory.ranges import Range
from sw.driver.models.traffic import DramTraffic
from sw.driver.preempt.program import Program
from sw.driver.preempt.staging import CopyJob
from sw.driver.queues.job import DeviceJob, JobState


@dataclass(frozen=True)
class CopyResult:
    """Describes one supervisor job that moved ``bytes`` to or from DRAM; times and ``traffic`` are as in
    ``JobResult``."""

    engine: int
    start: int
    end: int
    bytes: int
    traffic: DramTraffic


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
