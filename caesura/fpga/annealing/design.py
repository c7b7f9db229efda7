"""Reads a placed design as the arrays of ``core.h``, and writes where its cells have come to lie."""

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from caesura.fpga.annealing.tile_cells import HALVES, kinds_of, slice_key, tile_key
from caesura.fpga.paths import CellDelays
from caesura.fpga.spacing import GAP
from caesura.fpga.synthesis import TOP

NONE, FIXED = -1, -2  #: of a place: nothing is there, or what never moves
#: Inputs that are joined without a wire: to the cell ahead in a chain, to tables that are selected from, to the table
#: of a register.
_WIRELESS = {"FCI", "FXA", "FXB", "F1", "DI"}
_WIRED, _DIRECT, _TABLE = range(3)  #: see ``core.h``
_BETWEEN = {"FCI", "FXA", "FXB"}  #: those of them that may lead from a tile to the next in its row
_BEL = re.compile(r"X(\d+)/Y(\d+)/(?:SLICE([A-D])\.(K|FF|RAMW)(\d?))?")
#: Units that the shortest wire takes by nextpnr's estimate, and the ps of one where nothing has a wire.
_SHORTEST, _USUAL = 6, 54
_GLOBAL = "DCCA"  #: the driver of a clock, which has wires of its own
_KINDS = {"K": "table", "FF": "reg", "RAMW": "writer"}

Array = npt.NDArray[np.int32]


class PlacedDesign:
    """Is a design that nextpnr has placed. ``arrays`` are those of ``core.h``, ``width`` and ``height`` the tiles of
    the part, ``unit`` the ps by which wires are measured. ``logic`` are columns with logic, by row."""

    def __init__(self, placed: bytes, delays: CellDelays, logic: Mapping[int, Sequence[int]]) -> None:
        self._design = json.loads(placed)
        self._cells: dict[str, dict[str, Any]] = self._design["modules"][TOP]["cells"]
        self.names = list(self._cells)
        self._bels = [_bel(cell) for cell in self._cells.values()]
        self.width = 1 + max(max(bel[0] for bel in self._bels), max(max(columns) for columns in logic.values()))
        self.height = 1 + max(max(bel[1] for bel in self._bels), max(logic))
        wires = (delay for (cell, _), ways in delays.ways.items() for (to, _), delay in ways if to != cell and delay)
        self.unit = min(wires, default=_SHORTEST * _USUAL) // _SHORTEST
        self.arrays: dict[str, Array] = {}
        self._place(logic)
        self._join(delays)

    def _place(self, logic: Mapping[int, Sequence[int]]) -> None:
        """Fill the arrays by cell, by place and by tile."""
        cells, tiles = len(self.names), self.width * self.height
        by_cell = {name: np.zeros(cells, np.int32) for name in ("column", "row", "half", "tile_key", "slice_key")}
        places = {name: np.full(HALVES * tiles, NONE, np.int32) for name in ("table", "reg")}
        places["writer"] = np.full(tiles, NONE, np.int32)
        by_tile = {name: np.zeros(tiles, np.int32) for name in ("logic", "goes_on")}
        tile_keys: dict[Any, int] = {}
        slice_keys: dict[Any, int] = {}
        for row, columns in logic.items():
            by_tile["logic"][[row * self.width + column for column in columns]] = 1
        candidates = []
        for number, (name, (column, row, half, what)) in enumerate(zip(self.names, self._bels, strict=True)):
            by_cell["column"][number], by_cell["row"][number], by_cell["half"][number] = column, row, half
            if what is None:
                continue
            tile, cell = row * self.width + column, self._cells[name]
            moves = not name.startswith(GAP)
            places[what][tile if what == "writer" else HALVES * tile + half] = number if moves else FIXED
            if moves and what != "writer":
                candidates.append(number)
            if what == "reg":
                by_cell["tile_key"][number] = tile_keys.setdefault(tile_key(cell), len(tile_keys))
                by_cell["slice_key"][number] = slice_keys.setdefault(slice_key(cell), len(slice_keys))
        self.arrays |= by_cell | places | by_tile | {"candidate": np.array(candidates, np.int32)}

    def _join(self, delays: CellDelays) -> None:
        """Fill the arrays by net and by pin, and what follows from what is joined to what."""
        drivers: dict[int, tuple[int, str]] = {}
        sinks: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for number, cell in enumerate(self._cells.values()):
            for port, way in cell["port_directions"].items():
                for bit in cell["connections"][port]:
                    if way == "output":
                        drivers[bit] = number, port
                    elif way == "input" and isinstance(bit, int):
                        sinks[bit].append((number, port))
        nets = {bit: net for net, bit in enumerate(drivers)}
        driver, start, cell_of, setup, direct = [], [], [], [], []
        pin_first, arc_first, arc_net, arc_delay = [0], [0], [], []
        joined: dict[int, set[int]] = defaultdict(set)
        chains = self.arrays["goes_on"]
        for bit, (number, port) in drivers.items():
            name = self.names[number]
            clock = self._cells[name]["type"] == _GLOBAL
            driver.append(NONE if clock else number)
            start.append(delays.starts.get((name, port), NONE))
            for to, pin in () if clock else sinks[bit]:
                sink = self.names[to]
                joined[number].add(nets[bit])
                joined[to].add(nets[bit])
                cell_of.append(to)
                direct.append(_joined_how(self._cells[sink]["type"], pin))
                setup.append(max(0, delays.setups[sink, pin]) if (sink, pin) in delays.setups else NONE)
                for (through, out), delay in delays.ways.get((sink, pin), ()):
                    after = self._cells[sink]["connections"].get(out) if through == sink else None
                    if after:
                        arc_net.append(nets[after[0]])
                        arc_delay.append(delay)
                arc_first.append(len(arc_net))
                if pin in _BETWEEN and self._tile(to) != self._tile(number):
                    chains[min(self._tile(number), self._tile(to))] = 1
            pin_first.append(len(cell_of))
        net_first, net_of = [0], list[int]()
        for number in range(len(self.names)):
            net_of.extend(sorted(joined[number]) if number in joined else ())
            net_first.append(len(net_of))
        named = {
            "driver": driver, "start": start, "cell": cell_of, "setup": setup, "direct": direct, "pin_first": pin_first,
            "arc_first": arc_first, "arc_net": arc_net, "arc_delay": arc_delay, "net_first": net_first, "net": net_of,
        }  # fmt: skip
        self.arrays |= {name: np.array(values, np.int32) for name, values in named.items()}
        source = {bit: number for bit, (number, _) in drivers.items()}
        self.arrays["kind"] = kinds_of([*self._cells.values()], source, self._beside)

    def _tile(self, number: int) -> int:
        return int(self.arrays["row"][number]) * self.width + int(self.arrays["column"][number])

    def _beside(self, number: int) -> int:
        """Return the table in the other half of the slice of table ``number``, or ``NONE``."""
        other = HALVES * self._tile(number) + (int(self.arrays["half"][number]) ^ 1)
        return int(self.arrays["table"][other])

    def written(self) -> bytes:
        """Return the design with its cells where the arrays have them."""
        for number, (name, (*_, what)) in enumerate(zip(self.names, self._bels, strict=True)):
            if what is None or name.startswith(GAP):
                continue
            column, row, half = (int(self.arrays[array][number]) for array in ("column", "row", "half"))
            kind, which = {"table": ("K", half % 2), "reg": ("FF", half % 2), "writer": ("RAMW", "")}[what]
            attributes = self._cells[name]["attributes"]
            attributes["NEXTPNR_BEL"] = f"X{column}/Y{row}/SLICE{'ABCD'[half // 2]}.{kind}{which}"
        return json.dumps(self._design).encode()


def _joined_how(kind: str, pin: str) -> int:
    return _DIRECT if pin in _WIRELESS else _TABLE if kind == "TRELLIS_COMB" and pin in ("A", "B", "C", "D") else _WIRED


def _bel(cell: Mapping[str, Any]) -> tuple[int, int, int, str | None]:
    """Return column and row of a cell, and of one in a tile of logic its half and the array that it is in."""
    place = _BEL.match(cell["attributes"]["NEXTPNR_BEL"])
    assert place
    column, row, half, kind, number = place.groups()
    return int(column), int(row), 2 * "ABCD".index(half) + int(number or 0) if half else 0, _KINDS.get(kind)
