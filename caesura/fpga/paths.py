"""Finds the longest paths of a routed design, and the source lines that they pass.

nextpnr reports one path. Its delay file (SDF) has the delay of every wire and cell, from which all others follow: the
longest way from the output of a register to the input of each other one.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Pin = tuple[str, str]  #: cell and port

MOST = 10  #: paths that are told
_INSTANCE = re.compile(r"\(INSTANCE (.*)\)\s*$")
_WIRE = re.compile(r"\(INTERCONNECT (\S+) (\S+) \(\d+:\d+:(\d+)\)")
_CELL = re.compile(r"\(IOPATH (\S+) (\S+) \(\d+:\d+:(\d+)\)")
_CHECK = re.compile(r"\(SETUPHOLD \(\w+ (\S+)\) \(\w+ (\S+)\) \((-?\d+):(-?\d+):(-?\d+)\)")


@dataclass
class CellDelays:
    """Holds delays in ps: ``ways`` from each pin to others, ``starts`` from the clock to outputs of registers, and
    ``setups``, what inputs of registers need ahead of the clock."""

    ways: dict[Pin, list[tuple[Pin, int]]]
    starts: dict[Pin, int]
    setups: dict[Pin, int]

    @classmethod
    def read(cls, path: Path) -> "CellDelays":
        """Read nextpnr's delay file."""
        ways: dict[Pin, list[tuple[Pin, int]]] = defaultdict(list)
        paths: list[tuple[str, str, str, int]] = []
        setups: dict[Pin, int] = {}
        clocks: set[Pin] = set()
        cell = ""
        with path.open() as lines:
            for line in lines:
                if wire := _WIRE.search(line):
                    ways[_pin(wire[1])].append((_pin(wire[2]), int(wire[3])))
                elif way := _CELL.search(line):
                    paths.append((cell, way[1], way[2], int(way[3])))
                elif check := _CHECK.search(line):
                    pin = cell, check[1]
                    clocks.add((cell, check[2]))
                    setups[pin] = max(setups.get(pin, 0), *map(int, check.groups()[2:]))
                elif instance := _INSTANCE.search(line):
                    cell = _plain(instance[1])
        starts: dict[Pin, int] = {}
        for cell, come, go, delay in paths:
            if (cell, come) in clocks:
                starts[cell, go] = max(starts.get((cell, go), 0), delay)
            else:
                ways[cell, come].append(((cell, go), delay))
        return cls(dict(ways), starts, setups)

    def arrivals(self) -> tuple[dict[Pin, int], dict[Pin, Pin]]:
        """Return when each pin holds its value, in ps after the clock, and the pin ahead of it on the longest way."""
        waiting: dict[Pin, int] = defaultdict(int)
        reached, todo = set(self.starts), list(self.starts)
        while todo:
            for pin, _ in self.ways.get(todo.pop(), ()):
                waiting[pin] += 1
                if pin not in reached:
                    reached.add(pin)
                    todo.append(pin)
        when, before = dict(self.starts), {}
        todo = [pin for pin in self.starts if not waiting[pin]]
        while todo:
            pin = todo.pop()
            for after, delay in self.ways.get(pin, ()):
                if when[pin] + delay >= when.get(after, 0):
                    when[after], before[after] = when[pin] + delay, pin
                waiting[after] -= 1
                if not waiting[after]:
                    todo.append(after)
        return when, before


def _plain(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name)


def _pin(name: str) -> Pin:
    cell, _, port = name.rpartition("/")
    return _plain(cell), port


class SourceLines:
    """Says where cells of a mapped netlist come from."""

    _MADE = re.compile(r"_(?:LUT4|CCU2C|PFUMX|L6MUX21|TRELLIS_FF|TRELLIS_DPR16X4|MULT18X18D|DP16KD|INV)_")
    _PACKED = re.compile(r"\$(?:CCU2_COMB|COMB|RAMW|DPRAM)\S*$")

    def __init__(self, top: Mapping[str, Any]) -> None:
        self._cells, self._nets = top["cells"], top["netnames"]

    def of(self, cell: str) -> str | None:
        """Return file and line that ``cell`` is made from, or those of the signal that it is named after; None where
        neither is known."""
        name = self._PACKED.sub("", cell)
        for table, key in ((self._cells, name), (self._nets, self.signal(name))):
            for place in table.get(key, {}).get("attributes", {}).get("src", "").split("|"):
                if ".py:" in place:
                    return place
        return None

    def signal(self, cell: str) -> str:
        """Return the signal that a cell is named after: mapping names a cell after what it drives or is driven by."""
        return self._MADE.split(self._PACKED.sub("", cell))[0].removeprefix("\\")


def worst_paths(delays: CellDelays, lines: SourceLines, most: int = MOST) -> list[dict[str, Any]]:
    """Return the longest path between each two source lines, the ``most`` worst of them.

    Each has ``delay`` in ns, setup included; ``start`` and ``end``, the lines of the registers, with ``signal_start``
    and ``signal_end``; ``through``, the lines that it passes, as far as they are known; and ``levels``, how many cells
    lie between.
    """
    when, before = delays.arrivals()
    ends = sorted(((when[pin] + need, pin) for pin, need in delays.setups.items() if pin in when), reverse=True)
    told: dict[tuple[str, str], dict[str, Any]] = {}
    for delay, pin in ends:
        if len(told) == most:
            break
        cells = _cells(pin, before)
        start, end = (lines.of(cell) or lines.signal(cell) for cell in (cells[0], cells[-1]))
        if (start, end) not in told:
            inner = [line for cell in cells[1:-1] if (line := lines.of(cell))]
            told[start, end] = {
                "delay": round(delay / 1000, 2), "levels": len(cells) - 2,
                "start": start, "signal_start": lines.signal(cells[0]),
                "end": end, "signal_end": lines.signal(cells[-1]),
                "through": [line for at, line in enumerate(inner) if line not in inner[:at]],
            }  # fmt: skip
    return list(told.values())


def _cells(pin: Pin, before: Mapping[Pin, Pin]) -> list[str]:
    cells = [pin[0]]
    while pin in before:
        pin = before[pin]
        if pin[0] != cells[-1]:
            cells.append(pin[0])
    return cells[::-1]
