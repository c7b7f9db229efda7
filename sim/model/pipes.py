"""Models the units that stay on the chip as pipelines: when they take a command, and when they signal its end.

``ChipPipe``: ``hw/dma/units.py`` between scratchpads, and ``hw/vec/unit.py``. ``MacPipe``: ``hw/mac/sequencer.py``.
Both take a command that is valid from a cycle on and what the formulas of :mod:`sim.cost.exact` say of it, and return
the cycle in which they accept it and that of the signal.
"""

from array import array
from collections.abc import Callable
from typing import Any

from hw.contract.isa import Unit
from hw.contract.timing import MAC_LANDED, MAC_STARTS
from sim.cost.exact.pipelines import MacBlocks
from sim.cost.exact.program import ProgramTable
from sim.functional.state import Segments
from sim.model.core import Core

_VALID, _BEGIN, _FROM, _INTO, _WORK, _NUMBER = range(6)  #: the layout of ``asked_t``
#: Where an instruction says at which word of LV1 it begins, and of LV2, by unit.
_NEAR = {Unit.LD1: _INTO, Unit.LD0: _FROM, Unit.ST1: _FROM, Unit.VEC: _INTO}
_FAR = {Unit.LD1: _FROM, Unit.ST1: _INTO}
ON_CHIP = tuple(_NEAR)  #: units that are a ``ChipPipe``


class ChipPipe:
    """Is LD1, LD0, ST1 or VEC, which the core models with the ports that it meets others at: ``places`` are arena and
    port of what it reads and writes, ``described`` tells where the core finds the work of an instruction, and ``word``
    are the bytes of a word of LV2."""

    __slots__ = (
        "_asked", "_at", "_begin", "_clear", "_described", "_far", "_near", "_parameters", "_pipe",
        "_program", "_put_back", "_run", "_segments", "_word",
    )  # fmt: skip

    def __init__(
        self, core: Core, unit: Unit, places: tuple[tuple[int, int], tuple[int, int]], described: Callable[[Any], int],
        word: int,
    ) -> None:  # fmt: skip
        self._described, self._word = described, word
        self._near, self._far, self._parameters = _NEAR[unit], _FAR.get(unit), unit is Unit.VEC
        self._asked = array("q", [0] * 6)
        self._at = self._asked.buffer_info()[0]
        self._run, self._put_back = core.call.pipe_run, core.call.pipe_put_back
        self._begin, self._clear = core.call.pipe_begin, core.call.pipe_clear
        self._pipe = core.call.pipe(core.address, unit is Unit.VEC, *places[0], *places[1])

    def clear(self) -> None:
        """Go to the state after a reset."""
        self._clear(self._pipe)

    @property
    def number(self) -> int:
        """Return the number of the instruction that was taken last."""
        return self._asked[_NUMBER]

    def put_back(self, number: int) -> int:
        """Return by how many cycles others at LV2 have put back instruction ``number`` since it was timed."""
        late: int = self._put_back(self._pipe, number)
        return late

    def begin(self, program: ProgramTable, segments: Segments) -> None:
        """Begin a body, whose instructions are those of ``program``."""
        self._begin(self._pipe)
        self._program, self._segments = program, segments

    def run(self, valid: int, work: Any, pc: int) -> tuple[int, int]:
        """Take the instruction at ``pc`` and return when it is accepted and when it signals: less than 0, if others may
        yet hold it up at LV2."""
        asked, program = self._asked, self._program
        asked[_VALID] = valid
        asked[self._near] = program.near[pc]
        if self._parameters:
            asked[_FROM] = program.into[pc] // self._word
        elif self._far is not None:
            asked[self._far] = (self._segments[program.into_segment[pc]][0] + program.into[pc]) // self._word
        asked[_WORK] = work.core or self._described(work)
        end: int = self._run(self._pipe, self._at)
        return asked[_BEGIN], end


class MacPipe:
    """Models the loader of weights and pixels. ``fires`` is when the last block began, ``end`` the first cycle without
    a pixel."""

    __slots__ = ("end", "fires", "ready", "rows")

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.ready = self.end = self.fires = 0

    def run(self, valid: int, work: MacBlocks, _: int) -> tuple[int, int]:
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
