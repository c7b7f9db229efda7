"""When instructions ran on the model."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hw.contract.isa import Unit
from sim.timing.runs import InstructionRun

_Stretch = tuple[int, Unit, int, Sequence[int], Sequence[int], Sequence[int]]


class Recorder:
    """Keeps what ran while ``enabled``, as it comes: a list of instructions for each unit and body."""

    def __init__(self) -> None:
        self.enabled = False
        self._stretches: list[_Stretch] = []

    def ran(
        self, engine: int, unit: Unit, job_id: int, pcs: Sequence[int], taken: Sequence[int], done: Sequence[int]
    ) -> None:
        """Instructions of one unit and one job have ended; the sequences will not change any more."""
        if self.enabled and done:
            self._stretches.append((engine, unit, job_id, pcs, taken, done))

    def table(self) -> npt.NDArray[np.int64]:
        """A row for each instruction, the members of ``InstructionRun`` in order."""
        parts = []
        for engine, unit, job_id, pcs, taken, done in self._stretches:
            part = np.empty((len(done), len(InstructionRun._fields)), np.int64)
            part[:, :3] = engine, unit, job_id
            for column, values in enumerate((pcs, taken, done), 3):
                part[:, column] = values[: len(done)]
            parts.append(part)
        return np.concatenate(parts) if parts else np.empty((0, len(InstructionRun._fields)), np.int64)
