"""Models the units that stay on the chip as pipelines: when they take a command, and when they signal that it is done.

``CopyPipe``: ``hw/dma/units.py`` between scratchpads. ``MacPipe``: ``hw/mac/sequencer.py``. ``VecPipe``:
``hw/vec/unit.py``. All take a command that is valid from a cycle on and what the formulas of :mod:`sim.cost.exact` say
of it, and return the cycle in which they accept it and that of the signal.
"""

from hw.contract.timing import (
    COPY_FETCHED,
    COPY_FILLED,
    COPY_LANDED,
    COPY_PLANNED,
    MAC_LANDED,
    MAC_STARTS,
)
from sim.cost.exact.copies import CopySteps
from sim.cost.exact.pipelines import MacBlocks, VecSteps


class CopyPipe:
    """Models planner, source and realigner. ``end`` is the first cycle in which the realigner is free."""

    __slots__ = ("end", "ready")

    def __init__(self) -> None:
        self.ready = self.end = 0

    def run(self, valid: int, work: CopySteps) -> tuple[int, int]:
        """Take a copy and return when it is accepted and when it signals."""
        begin = valid if valid > self.ready else self.ready
        end = begin + COPY_PLANNED + COPY_FILLED
        if end < self.end:
            end = self.end
        runs, steps, late, ahead, _ = work
        end += steps
        if late:
            fetched = begin + COPY_PLANNED + COPY_FETCHED + late
            if fetched > end:
                end = fetched
        self.end = end
        ready = begin + COPY_PLANNED - 1 + runs
        if runs > 2 and end - ahead + 1 > ready:
            ready = end - ahead + 1
        self.ready = ready
        return begin, end + COPY_LANDED - 1


class MacPipe:
    """Models the loader of weights and pixels. ``fires`` is when the last block began, ``end`` the first cycle without
    a pixel."""

    __slots__ = ("end", "fires", "ready", "rows")

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.ready = self.end = self.fires = 0

    def run(self, valid: int, work: MacBlocks) -> tuple[int, int]:
        """Take a MAC instruction and return when it is accepted and when it signals."""
        begin = valid if valid > self.ready else self.ready
        blocks, period, last, _ = work
        weights = begin + MAC_STARTS
        taken = self.end - 1
        if taken < weights:
            taken = weights
        loaded = (weights if weights > self.fires else self.fires) + self.rows
        first = loaded if loaded > self.end else self.end
        if first < begin + 2:
            first = begin + 2
        if blocks > 1:
            loaded = first + (blocks - 2) * period + self.rows
        self.ready = loaded if loaded > taken else taken
        self.fires = first + (blocks - 1) * period
        self.end = self.fires + last
        return begin, self.end - 1 + MAC_LANDED


class VecPipe:
    """Models the vector unit, which runs one instruction at a time."""

    __slots__ = ("ready",)

    def __init__(self) -> None:
        self.ready = 0

    def run(self, valid: int, work: VecSteps) -> tuple[int, int]:
        """Take a VEC instruction and return when it is accepted and when it signals."""
        begin = valid if valid > self.ready else self.ready
        setup, steps, tail, _ = work
        self.ready = end = begin + setup + steps - 1 + tail
        return begin, end
