"""What a model keeps of a run: when its instructions ran and, where that is wanted, what they waited for."""

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
    """Instructions of one unit in one body, in order; see ``QueueModel``."""

    unit: Unit
    pcs: Sequence[int]
    issued: Sequence[int]
    taken: Sequence[int]
    done: Sequence[int]


class BodyRun(NamedTuple):
    """A body that has ended."""

    engine: int
    job: Job
    program: ProgramTable
    units: list[UnitRun]


class PrologueRun(NamedTuple):
    """A prologue that has ended: its loads."""

    engine: int
    job: Job
    program: ProgramTable
    pcs: Sequence[int]
    taken: Sequence[int]
    done: Sequence[int]


class History(NamedTuple):
    """All that happened since recording began, in order. ``doorbells``: engine, time and RING_TAIL; ``bursts``,
    ``served``: see ``sim.model.dram``."""

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
        """A body has ended; what its queues hold will not change any more."""
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
        """A prologue has ended."""
        if self.enabled:
            self.history.prologues.append(PrologueRun(engine, job, program, pcs, taken, done))

    def doorbell(self, engine: int, time: int, tail: int) -> None:
        """The host has written RING_TAIL."""
        if self.enabled:
            self.history.doorbells.append((engine, time, tail))

    def table(self) -> npt.NDArray[np.int64]:
        """A row for each instruction, the members of ``InstructionRun`` in order."""
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
    """Rows of the instructions that have ended."""
    rows = np.empty((len(done), len(InstructionRun._fields)), np.int64)
    rows[:, :3] = engine, unit, job.members["job_id"]
    for column, values in enumerate((pcs, taken, done), 3):
        rows[:, column] = values[: len(done)]
    return rows
