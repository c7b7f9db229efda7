"""Restores on chip what a suspended task lost."""

from collections.abc import Sequence
from typing import ClassVar

from sw.driver.memory.footprint import LV2
from sw.driver.memory.ranges import Range
from sw.driver.preempt.copies import Spill, load
from sw.driver.preempt.operation import Effects, StateTransfer
from sw.driver.preempt.program import Program
from sw.driver.preempt.staging import CopyJob
from sw.driver.preempt.suspended_tasks import SuspendedTasks
from sw.driver.preempt.suspension import Suspension


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
