"""Says when instructions ran, as a simulator of the RTL and the fast model both tell it, so that they can be
compared."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hw.contract.isa import Unit
from sim.trace import Span


class InstructionRun(NamedTuple):
    """Describes a run of the instruction at ``pc`` of a job: when its unit accepted it, and when it signalled, in
    cycles."""

    engine: int
    unit: Unit
    job_id: int
    pc: int
    taken: int
    done: int


def spans(runs: Iterable[InstructionRun]) -> list[Span]:
    """Return the runs as spans on a track for each unit."""
    return [
        Span(
            (f"engine {run.engine}", run.unit.name),
            f"{run.unit.name} {run.pc}",
            run.taken,
            run.done,
            kind=f"job {run.job_id}",
            details={"pc": run.pc, "job_id": run.job_id},
        )
        for run in runs
    ]


def as_runs(table: npt.NDArray[np.int64]) -> list[InstructionRun]:
    """Return the rows of a table whose columns are the members of :class:`InstructionRun`."""
    return [InstructionRun(engine, Unit(unit), *rest) for engine, unit, *rest in table.tolist()]


def save_runs(path: Path, runs: Sequence[InstructionRun] | npt.NDArray[np.int64]) -> None:
    """Write runs, or a table of them, to an .npy file: quick to write, a tenth of the size of a timeline."""
    with path.open("wb") as file:
        np.save(file, np.asarray(runs, np.int64).reshape(-1, len(InstructionRun._fields)))


def load_runs(path: Path) -> list[InstructionRun]:
    """Return what :func:`save_runs` has written."""
    return as_runs(np.load(path))
