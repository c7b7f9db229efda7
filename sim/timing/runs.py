"""When instructions ran: what a simulator of the RTL and the fast model both tell, so that they can be compared."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hw.contract.isa import Unit
from sim.trace import Span


class InstructionRun(NamedTuple):
    """The instruction at ``pc`` of a job: when its unit accepted it, and when it signalled, in cycles."""

    engine: int
    unit: Unit
    job_id: int
    pc: int
    taken: int
    done: int


def spans(runs: Iterable[InstructionRun]) -> list[Span]:
    """A track for each unit."""
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


def save_runs(path: Path, runs: Sequence[InstructionRun]) -> None:
    """Write ``runs`` to an .npy file, a row for each member: quick to write, a tenth of the size of a timeline."""
    columns = np.array(runs, np.int64).reshape(-1, len(InstructionRun._fields)).T
    with path.open("wb") as file:
        np.save(file, columns)


def load_runs(path: Path) -> list[InstructionRun]:
    """What :func:`save_runs` has written."""
    columns = np.load(path).tolist()
    return [InstructionRun(engine, Unit(unit), *rest) for engine, unit, *rest in zip(*columns, strict=True)]
