"""Keeps when the instructions of a run ran."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hw.contract.isa import Unit
from sim.instruction_runs import InstructionRun
from sim.model.completion import Spans
from sim.model.jobs import Job
from sim.model.queues import QueueModel


class UnitRun(NamedTuple):
    """Holds the instructions that one unit of an engine ran for one job, in order."""

    engine: int
    unit: Unit
    job: Job
    pcs: Sequence[int]
    taken: Sequence[int]
    done: Sequence[int]


class Recorder:
    """Keeps what ran while ``enabled``, as it comes."""

    def __init__(self) -> None:
        self.enabled = False
        self._bodies: list[UnitRun] = []
        self._prologues: list[UnitRun] = []

    def body(self, engine: int, job: Job, queues: Iterable[QueueModel]) -> None:
        """Keep a body that has ended; what its queues hold will not change any more."""
        if self.enabled:
            self._bodies += [UnitRun(engine, q.unit, job, q.pcs, q.taken, q.done) for q in queues if q.done]

    def prologue(self, engine: int, job: Job, loads: Spans) -> None:
        """Keep the ``loads`` of a prologue that has ended."""
        if self.enabled:
            self._prologues.append(UnitRun(engine, Unit.LD2, job, *loads))

    def table(self) -> npt.NDArray[np.int64]:
        """Return a table with a row for each instruction, whose columns are the members of ``InstructionRun``."""
        parts = [_rows(run) for run in (*self._prologues, *self._bodies)]
        return np.concatenate(parts) if parts else np.empty((0, len(InstructionRun._fields)), np.int64)


def _rows(run: UnitRun) -> npt.NDArray[np.int64]:
    """Return the rows of the instructions that have ended."""
    rows = np.empty((len(run.done), len(InstructionRun._fields)), np.int64)
    rows[:, :3] = run.engine, run.unit, run.job.members["job_id"]
    for column, values in enumerate((run.pcs, run.taken, run.done), 3):
        rows[:, column] = values[: len(run.done)]
    return rows
