"""Takes code segments in DRAM as programs: there is one for each base, whatever limits jobs put to it."""

import numpy as np
import numpy.typing as npt

from hw.contract.isa import INSN_BYTES
from hw.contract.params import SocParams
from sim.cost.exact.program import ProgramTable

_NEVER = 1 << 60


class Programs:
    """Holds the programs of one DRAM."""

    def __init__(self, params: SocParams, dram: npt.NDArray[np.uint8]) -> None:
        self._params, self._dram = params.with_nominal_dram(), dram
        self._here: dict[int, _Program] = {}

    def at(self, base: int, limit: int) -> ProgramTable:
        """Return the program in the segment of ``limit`` bytes at ``base``. Its table is that of all segments at
        ``base``, so who executes it looks at the limit; it holds what was decoded by :meth:`ProgramTable.decode`."""
        program = self._here.get(base)
        if program is None:
            program = self._here[base] = _Program(ProgramTable(self._dram[base:], self._params))
        program.reach(limit)
        return program.table

    def changed(self, address: int, size: int) -> None:
        """Bytes of the DRAM were written."""
        for base, program in list(self._here.items()):
            if base < address + size and address < base + program.limit:
                del self._here[base]  # a job that runs it keeps what was decoded
            elif address >= base:
                program.behind = min(program.behind, address - base)


class _Program:
    """Holds the code at a base. ``limit`` is the largest of its segments. What lies behind it may have been decoded
    with it; ``behind`` is the first byte there that has changed since."""

    def __init__(self, table: ProgramTable) -> None:
        self.table, self.limit, self.behind = table, 0, _NEVER

    def reach(self, limit: int) -> None:
        """Take note of a segment of ``limit`` bytes."""
        if limit > self.limit:
            self.limit = limit
            if limit > self.behind:
                self.table.forget(self.behind // INSN_BYTES)
                self.behind = _NEVER
