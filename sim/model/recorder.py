"""When instructions ran on the model."""

from collections.abc import Sequence

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

    def __len__(self) -> int:
        return sum(len(done) for *_, done in self._stretches)

    @property
    def runs(self) -> list[InstructionRun]:
        """One after the other."""
        return [
            InstructionRun(engine, unit, job_id, *times)
            for engine, unit, job_id, pcs, taken, done in self._stretches
            for times in zip(pcs, taken, done, strict=False)
        ]
