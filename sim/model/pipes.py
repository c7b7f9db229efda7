"""The units that stay on the chip as pipelines: when they take a command, and when they signal that it is done.

``CopyPipe``: ``hw/dma/unit.py`` between scratchpads. ``MacPipe``: ``hw/mac/sequencer.py``. ``VecPipe``:
``hw/vec/unit.py``. All take a command that is valid from a cycle on and what the formulas of :mod:`sim.timing` say of
it, and return the cycle in which they accept it and that of the signal.
"""

from hw.contract.timing import (
    COPY_FETCHED,
    COPY_FILLED,
    COPY_LANDED,
    COPY_PLANNED,
    MAC_LANDED,
    MAC_STARTS,
)
from sim.timing.copies import CopySteps
from sim.timing.pipelines import MacBlocks, VecSteps


class CopyPipe:
    """Planner, source and realigner. ``end``: first cycle in which the realigner is free."""

    __slots__ = ("end", "ready")

    def __init__(self) -> None:
        self.ready = self.end = 0

    def run(self, valid: int, work: CopySteps) -> tuple[int, int]:
        """See the module."""
        begin = valid if valid > self.ready else self.ready
        end = begin + COPY_PLANNED + COPY_FILLED
        if end < self.end:
            end = self.end
        runs, steps, late, ahead = work
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
    """Loader of weights and pixels. ``fires``: when the last block began, ``end``: first cycle without a pixel."""

    __slots__ = ("end", "fires", "ready", "rows")

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.ready = self.end = self.fires = 0

    def run(self, valid: int, work: MacBlocks) -> tuple[int, int]:
        """See the module."""
        begin = valid if valid > self.ready else self.ready
        weights = begin + MAC_STARTS
        taken = max(weights, self.end - 1)
        if weights < self.fires:
            weights = self.fires
        first = max(weights + self.rows, self.end, begin + 2)
        if work.blocks == 1:
            loaded = weights + self.rows
        else:
            loaded = first + (work.blocks - 2) * work.period + self.rows
        self.ready = loaded if loaded > taken else taken
        self.fires = first + (work.blocks - 1) * work.period
        self.end = self.fires + work.last
        return begin, self.end - 1 + MAC_LANDED


class VecPipe:
    """One instruction at a time."""

    __slots__ = ("ready",)

    def __init__(self) -> None:
        self.ready = 0

    def run(self, valid: int, work: VecSteps) -> tuple[int, int]:
        """See the module."""
        begin = valid if valid > self.ready else self.ready
        self.ready = begin + work.setup + work.steps - 1 + work.tail
        return begin, self.ready
