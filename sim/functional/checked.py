"""Checks and notes every access to the memories."""

import numpy.typing as npt

from hw.contract.job import Fault, FaultUnit
from hw.contract.params import SocParams
from hw.contract.spaces import Space
from sim.functional.state import FunctionalFault, MemoryAccess
from sim.functional.strided import Box

ADDRESS_SPACE = 1 << 32


class CheckedMemories:
    """Checks accesses of all units; ``accesses`` is what the latest instruction touched."""

    def __init__(self, params: SocParams) -> None:
        self.params = params
        self.accesses: list[MemoryAccess] = []
        self._pc = 0
        self._unit: int = FaultUnit.EXECUTOR
        self._only_checks = False  # nothing is written

    def _fault(self, code: Fault, addr: int, why: str) -> FunctionalFault:
        return FunctionalFault(code, self._pc, addr % ADDRESS_SPACE, self._unit, why)

    def _touch(self, space: Space, box: Box, write: bool, limit: int, base: int = 0) -> Box:
        """Check ``box``, whose offsets are relative to ``base``, against ``limit``; note it as an access."""
        low, high = box.bounds()
        if low < 0 or high > limit:
            bad = low if low < 0 else max(limit, low)
            raise self._fault(Fault.LIMIT, bad, f"{space} {low} to {high}, limit {limit}")
        moved = Box(box.offset + base, box.shape, box.strides)
        if low < high:  # not empty
            self.accesses.append(MemoryAccess(space, moved, write))
        return moved

    def _view(self, memory: npt.NDArray, space: Space, box: Box, write: bool, base: int = 0, limit: int | None = None):
        """Return a view of ``box`` in ``memory`` after the limit check."""
        limit = memory.size - base if limit is None else limit
        return self._touch(space, box, write, limit, base).view(memory)
