"""When instructions ran: what a simulator of the RTL and the fast model both tell, so that they can be compared."""

from collections.abc import Iterable
from typing import NamedTuple

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
