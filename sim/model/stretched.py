"""Defines the fast model of a machine whose units are faster or slower: the same rules, another clock for a unit.

What the formulas of :mod:`sim.cost.exact` say of an instruction is multiplied on its way from the program to the unit:
runs and steps of a copy, blocks and pixels of a MAC, parameters and vectors of a VEC. Fixed stages of the pipelines,
the first weights of a MAC, and what is not the unit's (queues, semaphores, DRAM) stay as they are. What a slower ST2
takes longer over a store is seen by the store behind it.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.contract.bus import HostCosts, Progress
from hw.contract.isa import Unit
from hw.contract.params import SocParams
from sim.cost.exact.copies import BurstTable, BusCopy, CopySteps
from sim.cost.exact.decoded import Work
from sim.cost.exact.pipelines import MacBlocks
from sim.cost.exact.program import PIECE, Programs, ProgramTable
from sim.model.bus import ModelBus

Factors = Mapping[Unit, float]  #: how many times as long instructions of a unit take; 1 for a unit that is left out


class StretchedBus(ModelBus):
    """Is the :class:`~sim.model.bus.ModelBus` of a machine whose units take ``factors`` of their time. Raises
    ValueError for a factor that is negative or no number."""

    def __init__(
        self, params: SocParams, factors: Factors, *, costs: HostCosts | None = None, data: bool = True,
        progress: Progress | None = None,
    ) -> None:  # fmt: skip
        for unit, factor in factors.items():
            if not 0 <= factor < float("inf"):
                raise ValueError(f"durations of {unit.name} change by a factor of at least 0, not {factor}")
        super().__init__(params, costs=costs, data=data, progress=progress)
        shared = self._soc.shared
        shared.programs = StretchedPrograms(params, shared.dram, factors)


class StretchedPrograms(Programs):
    """Holds programs whose instructions take ``factors`` of their time."""

    def __init__(self, params: SocParams, dram: npt.NDArray[np.uint8], factors: Factors) -> None:
        super().__init__(params, dram)
        self._factors = factors

    def table(self, memory: npt.NDArray[np.uint8], parameters: tuple[int, ...]) -> ProgramTable:
        """See :meth:`Programs.table`."""
        return StretchedTable(memory, self._params, self._factors, parameters)


class StretchedTable(ProgramTable):
    """Holds a program whose column ``work`` holds multiples of what the formulas say."""

    def __init__(
        self,
        memory: npt.NDArray[np.uint8],
        params: SocParams,
        factors: Factors,
        parameters: tuple[int, ...] = (),
    ) -> None:
        super().__init__(memory, params, parameters)
        self._factors = factors

    def measured(self, pc: int) -> Any:
        """See :meth:`ProgramTable.measured`."""
        work = self.work[pc]
        return self._stretched(pc, super().measured(pc)) if work is None else work

    def _add(self, number: int) -> None:
        super()._add(number)
        for pc in range(number * PIECE, min((number + 1) * PIECE, len(self))):
            self.work[pc] = self._stretched(pc, self.work[pc])

    def _stretched(self, pc: int, work: Any) -> Any:
        unit = self.units[pc]
        return stretched(work, self._factors[Unit(unit)]) if work is not None and unit in self._factors else work


@lru_cache(maxsize=1 << 14)
def stretched(work: Work, factor: float) -> Work:
    """Return ``work`` for an instruction that takes ``factor`` times as long. Cycles are rounded to whole ones; of what
    takes any at all, at least one is left."""
    if isinstance(work, MacBlocks):
        return work._replace(period=_cycles(work.period, factor), last=_cycles(work.last, factor))
    if isinstance(work, BusCopy):
        return _bus_copy(work, factor)
    if isinstance(work, CopySteps):
        return _copy_steps(work, factor)
    return work._replace(setup=_cycles(work.setup, factor), steps=_cycles(work.steps, factor))


def _copy_steps(work: CopySteps, factor: float) -> CopySteps:
    runs, steps, late, ahead = (_cycles(count, factor) for count in work[:4])
    return CopySteps(runs, steps, late, ahead, work.fields)


def _bus_copy(work: BusCopy, factor: float) -> BusCopy:
    """Stretch a copy over the bus. Words come from DRAM one per cycle: a realigner that takes longer over each is
    behind by the end of a burst, and holds up what follows: the next burst, or the end."""
    bursts = work.bursts
    table = np.array([bursts[row] for row in range(bursts.part)], np.int64).reshape(bursts.part, 4)
    behind = [round(max(0.0, factor - 1) * beats) for beats in table[:, 1].tolist()]
    repeats = len(bursts) > bursts.part
    before = [behind[-1] if repeats else 0, *behind[:-1]] if behind else []
    table[:, 2] = [_cycles(pause, factor) + late for pause, late in zip(table[:, 2].tolist(), before, strict=True)]
    trail = _cycles(work.trail, factor) + (behind[-1] if behind else 0)
    return BusCopy(_copy_steps(work.steps, factor), BurstTable(table, len(bursts)), work.lead, trail)


def _cycles(count: int, factor: float) -> int:
    return max(1, round(count * factor)) if count > 0 else count
