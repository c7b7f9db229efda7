"""Keeps what happened in a run: when its instructions ran and, where that is wanted, what they waited for."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hw.contract.isa import Unit
from sim.model.jobs import Job
from sim.model.queues import QueueModel
from sim.model.requests import BurstLog, ServedLog
from sim.timing.program import ProgramTable
from sim.timing.runs import InstructionRun


class UnitRun(NamedTuple):
    """Holds the instructions of one unit in one body, in order, as ``QueueModel`` does."""

    unit: Unit
    pcs: Sequence[int]
    issued: Sequence[int]
    taken: Sequence[int]
    done: Sequence[int]


class BodyRun(NamedTuple):
    """Describes a body that has ended."""

    engine: int
    job: Job
    program: ProgramTable
    units: list[UnitRun]


class PrologueRun(NamedTuple):
    """Describes the loads of a prologue that has ended."""

    engine: int
    job: Job
    program: ProgramTable
    pcs: Sequence[int]
    taken: Sequence[int]
    done: Sequence[int]


class History(NamedTuple):
    """Holds all that happened since recording began, in order. ``doorbells`` are engine, time and RING_TAIL; ``bursts``
    and ``served`` are those of ``sim.model.dram``."""

    bodies: list[BodyRun]
    prologues: list[PrologueRun]
    doorbells: list[tuple[int, int, int]]
    bursts: BurstLog
    served: ServedLog


class Recorder:
    """Keeps what ran while ``enabled``, as it comes."""

    def __init__(self) -> None:
        self.enabled = False
        self.history = History([], [], [], [], [])

    def body(self, engine: int, job: Job, program: ProgramTable, queues: Sequence[QueueModel]) -> None:
        """Keep a body that has ended; what its queues hold will not change any more."""
        if self.enabled:
            units = [UnitRun(q.unit, q.pcs, q.issued, q.taken, q.done) for q in queues if q.done]
            self.history.bodies.append(BodyRun(engine, job, program, units))

    def prologue(
        self,
        engine: int,
        job: Job,
        program: ProgramTable,
        pcs: Sequence[int],
        taken: Sequence[int],
        done: Sequence[int],
    ) -> None:  # fmt: skip
        """Keep a prologue that has ended."""
        if self.enabled:
            self.history.prologues.append(PrologueRun(engine, job, program, pcs, taken, done))

    def doorbell(self, engine: int, time: int, tail: int) -> None:
        """Keep that the host has written RING_TAIL."""
        if self.enabled:
            self.history.doorbells.append((engine, time, tail))

    def table(self) -> npt.NDArray[np.int64]:
        """Return a table with a row for each instruction, whose columns are the members of ``InstructionRun``."""
        parts = []
        for one in self.history.prologues:
            parts.append(_rows(one.engine, Unit.LD2, one.job, one.pcs, one.taken, one.done))
        for body in self.history.bodies:
            for run in body.units:
                parts.append(_rows(body.engine, run.unit, body.job, run.pcs, run.taken, run.done))
        return np.concatenate(parts) if parts else np.empty((0, len(InstructionRun._fields)), np.int64)


def _rows(
    engine: int, unit: Unit, job: Job, pcs: Sequence[int], taken: Sequence[int], done: Sequence[int]
) -> npt.NDArray[np.int64]:
    """Return the rows of the instructions that have ended."""
    rows = np.empty((len(done), len(InstructionRun._fields)), np.int64)
    rows[:, :3] = engine, unit, job.members["job_id"]
    for column, values in enumerate((pcs, taken, done), 3):
        rows[:, column] = values[: len(done)]
    return rows
