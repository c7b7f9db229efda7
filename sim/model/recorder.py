"""When instructions ran on the model."""

from hw.contract.isa import Unit
from sim.timing.runs import InstructionRun


class Recorder:
    """Keeps ``runs`` while ``enabled``."""

    def __init__(self) -> None:
        self.enabled = False
        self.runs: list[InstructionRun] = []

    def ran(self, engine: int, unit: Unit, job_id: int, pc: int, taken: int, done: int) -> None:
        """The instruction at ``pc`` of a job was accepted at ``taken`` and signalled at ``done``."""
        if self.enabled:
            self.runs.append(InstructionRun(engine, unit, job_id, pc, taken, done))
