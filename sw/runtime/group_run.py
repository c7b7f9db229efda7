"""Describes a group of a request as it runs."""

from collections import deque
from dataclasses import dataclass, field

from sw.driver import DeviceJob, JobResult
from sw.runtime.job_groups import JobGroup
from sw.runtime.request import Request
from sw.runtime.scheduler import Decision


@dataclass(eq=False)
class GroupRun:
    """Is a group of a request, from the decision for it until it has ended. Cycles are the SoC's."""

    request: Request
    index: int  #: of the group in its step
    group: JobGroup
    decision: Decision
    decided: int
    left: deque[int]  #: indices of jobs not queued yet
    jobs: list[DeviceJob] = field(default_factory=list)  #: those that were queued, until all have ended
    results: list[JobResult] = field(default_factory=list)
    idle: tuple[float, float] = (0.0, 0.0)  #: measured: of compute and of memory access, before and within it
    stopped: list[int] = field(default_factory=list)  #: when its preempted bodies had begun or gone on, about

    @property
    def key(self) -> tuple[int, int]:
        """Return the name by which the scheduler knows the group."""
        return self.decision.key

    def has(self, job_id: int) -> bool:
        """Return whether the job is one of this group."""
        return any(job.id == job_id for job in self.jobs)

    @property
    def load_start(self) -> int:
        """Return when the group's first prologue began, or when it was decided on if it has none."""
        return min((r.prologue_start for r in self.results if r.prologue_start), default=self.decided)

    @property
    def load_end(self) -> int:
        """Return when the group's last prologue had landed."""
        return max((r.prologue_end for r in self.results if r.prologue_start), default=self.decided)

    @property
    def start(self) -> int:
        """Return when the group's first body began."""
        return min([r.start for r in self.results] + self.stopped)

    @property
    def end(self) -> int:
        """Return when the group's last body had drained."""
        return max(r.end for r in self.results)
