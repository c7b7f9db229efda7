"""Code segments in DRAM as programs, worked out once however often they run."""

from collections import OrderedDict
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from hw.contract.params import SocParams
from sim.timing.program import ProgramTable

_KEPT = 8  #: programs that stay for the next device
_known: OrderedDict[tuple[SocParams, bytes], ProgramTable] = OrderedDict()


class Programs:
    """The programs of one DRAM."""

    def __init__(self, params: SocParams, dram: npt.NDArray[np.uint8]) -> None:
        self._params, self._dram = params.with_nominal_dram(), dram
        self._here: dict[tuple[int, int], ProgramTable] = {}

    def at(self, base: int, limit: int) -> ProgramTable:
        """The program in the segment of ``limit`` bytes at ``base``."""
        program = self._here.get((base, limit))
        if program is None:
            code = self._dram[base : base + limit].tobytes()
            program = self._here[base, limit] = _program(code, self._params)
        return program

    def changed(self, address: int, size: int) -> None:
        """Bytes of the DRAM were written."""
        for base, limit in list(self._here):
            if base < address + size and address < base + limit:
                del self._here[base, limit]


def _program(code: bytes, params: SocParams) -> ProgramTable:
    key = params, blake2b(code, digest_size=16).digest()
    if key in _known:
        _known.move_to_end(key)
        return _known[key]
    program = _known[key] = ProgramTable(code, params)
    if len(_known) > _KEPT:
        _known.popitem(last=False)
    return program
