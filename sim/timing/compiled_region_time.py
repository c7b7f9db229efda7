"""Computes in C how long the layers of a region take side by side: the same numbers as :mod:`sim.timing.region_time`,
in a hundredth of the time."""

import ctypes
import logging
from array import array
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from sim.c_library import c_library, structure
from sim.timing.region_time import AROUND, RegionMember, side_by_side_cycles, tile_count

_LOG = logging.getLogger(__name__)
_STAGES = 4
_MOST = 64  #: members, of which C reads bits

#: The layout of ``compiled_region_time.c``.
_Region = structure(
    "_Region", "count around", "tiles reads beyond busy before first done levels work begins rank ends"
)  # fmt: skip

SideBySide = Callable[[Sequence[RegionMember]], float]  #: see :func:`sim.timing.region_time.side_by_side_cycles`


@cache
def fast_side_by_side() -> SideBySide:
    """Return the compiled schedule where there is a compiler, otherwise the one in Python."""
    try:
        return CompiledRegionTime()
    except (ImportError, OSError, RuntimeError) as error:  # RuntimeError: a BuildError
        _LOG.info("orders of layers are priced without C, which is slow: %s", error)
    return side_by_side_cycles


class CompiledRegionTime:
    """Is :func:`sim.timing.region_time.side_by_side_cycles` in C. Raises :class:`sim.rtl.toolchain.BuildError` if that
    cannot be compiled."""

    def __init__(self) -> None:
        self._cycles: Any = c_library(Path(__file__).with_suffix(".c")).caesura_side_by_side
        self._cycles.argtypes = [ctypes.c_void_p]
        self._cycles.restype = ctypes.c_double
        self._numbers, self._lengths = array("q", bytes(8 * _MOST * (2 + _STAGES))), array("d")

    def __call__(self, members: Sequence[RegionMember]) -> float:
        """Return the cycles until the last result of ``members`` is stored; each reads only those ahead of it."""
        count = len(members)
        if count > _MOST:
            return side_by_side_cycles(members)
        tiles = array("q", map(tile_count, members))
        reads = array("q", [sum(1 << source for source in member.reads) for member in members])
        beyond = array("q", [member.around for member in members])
        busy = array("d", [cycles for member in members for cycles in member.busy])
        needed = count * (1 + 3 * _STAGES) + _STAGES * sum(tiles)
        if len(self._lengths) < needed:
            self._lengths = array("d", bytes(8 * needed))
        numbers, lengths = self._numbers.buffer_info()[0], self._lengths.buffer_info()[0]
        region = _Region(
            count, AROUND, *(one.buffer_info()[0] for one in (tiles, reads, beyond, busy)),
            *(numbers + 8 * count * place for place in range(3)),
            lengths, *(lengths + 8 * count * (1 + _STAGES * place) for place in range(4)),
        )  # fmt: skip
        return float(self._cycles(ctypes.byref(region)))
