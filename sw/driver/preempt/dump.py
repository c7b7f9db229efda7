"""Dumps what suspended tasks hold on chip to DRAM, before something overwrites it."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from sw.driver.memory.footprint import Footprint
from sw.driver.preempt.copies import Spill, save
from sw.driver.preempt.operation import Effects, StateTransfer
from sw.driver.preempt.program import Program
from sw.driver.preempt.staging import CopyJob
from sw.driver.preempt.suspended_tasks import SuspendedTasks
from sw.driver.preempt.suspension import DirtyRange, Suspension


class Dump(StateTransfer):
    """Dumps what ``wanted`` is about to overwrite of the tasks ``losing`` it.

    ``copies``: where in DRAM each dirty range goes. A range counts as copied once its job has completed; what a job
    overwrites on its way counts as lost once the job may have begun.
    """

    name: ClassVar[str] = "dump"

    def __init__(
        self,
        tasks: SuspendedTasks,
        losing: Sequence[Suspension],
        wanted: Footprint,
        copies: Mapping[DirtyRange, int],
    ) -> None:
        super().__init__()
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

        return Effects(on_start, on_end)

    def ended(self) -> None:
        """Let what comes in overwrite its footprint from now on."""
        for task in self._losing:
            task.overwrite(self._wanted)
