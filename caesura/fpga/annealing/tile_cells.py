"""Says what the cells of a tile of logic are to those beside them: the rules of ``nextpnr-ecp5`` for a tile."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

HALVES = 8  #: of a tile: a look-up table and a register each; two are a slice
#: See ``core.h``.
REGISTER, PLAIN, TIED, SELECTS, PASSED_BY, TOGETHER = (1 << bit for bit in range(6))

_Cell = Mapping[str, Any]


def kinds_of(cells: Sequence[_Cell], source: Mapping[int, int], beside: Callable[[int], int]) -> npt.NDArray[np.int32]:
    """Return the kind of each of ``cells``. ``source`` is the cell that drives a bit, ``beside`` gives the table in the
    other half of the slice of one, less than 0 for none."""
    kinds = np.array([_kind(cell) for cell in cells], np.int32)
    for number, cell in enumerate(cells):
        joined = {port: source[bits[0]] for port, bits in cell["connections"].items() if bits and bits[0] in source}
        if cell["type"] == "TRELLIS_FF" and "DI" in joined:
            kinds[[number, joined["DI"]]] |= TIED
        if cell["type"] != "TRELLIS_COMB":
            continue
        if "F1" in joined:  # selects between itself and the other table of its slice
            kinds[joined["F1"]] &= ~PLAIN
        for port in ("FXA", "FXB"):  # selects between what tables of two slices select
            if port in joined:
                group = [joined[port], beside(joined[port]), beside(number)]
                kinds[[one for one in group if one >= 0]] |= TOGETHER
    kinds[kinds & TOGETHER != 0] &= ~PLAIN
    return kinds


def _kind(cell: _Cell) -> int:
    joined = cell["connections"]
    if cell["type"] == "TRELLIS_FF":
        return REGISTER | (PASSED_BY if joined.get("M") else 0)
    if cell["type"] != "TRELLIS_COMB":
        return 0
    if cell["parameters"].get("MODE", "LOGIC") != "LOGIC":
        return TOGETHER
    if joined.get("FXA") or joined.get("FXB"):
        return TOGETHER | SELECTS
    return SELECTS if joined.get("OFX") else PLAIN


def slice_key(register: _Cell) -> tuple[Any, ...]:
    """Return what the registers of a slice have in common."""
    return _joined(register, "CE"), *_set(register, "CEMUX", "GSR")


def tile_key(register: _Cell) -> tuple[Any, ...]:
    """Return what the registers of a tile have in common."""
    return _joined(register, "CLK"), _joined(register, "LSR"), *_set(register, "CLKMUX", "LSRMUX", "SRMODE")


def _joined(cell: _Cell, port: str) -> Any:
    return next(iter(cell["connections"].get(port, ())), None)


def _set(cell: _Cell, *names: str) -> list[Any]:
    return [cell["parameters"].get(name) for name in names]
