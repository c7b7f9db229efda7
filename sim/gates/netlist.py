"""Reads a netlist in cells of an ECP5, as Yosys writes it in JSON, into tables of numbers for the simulator."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_Ints = npt.NDArray[np.int32]
_Cell = Mapping[str, Any]

_LUT_INPUTS = 5
_FACTOR, _PRODUCT = 18, 36
_DEEP_ADDRESS, _DEEP_DATA, _DEEP_BITS = 14, 18, 18432
_DEEP_WIDTHS = (1, 2, 4, 9, 18, 36)
_SHALLOW_BITS = 64
_CONSTANTS = {"0": 0, "1": 1, "x": 0, "z": 0}  #: nets of their own; what does not matter is low
_COMBINATIONAL = 3  #: of the kinds below, the first so many
KINDS = ("lut", "product", "read", "flop", "write", "deep")
_IGNORED = ("$scopeinfo",)


class GateError(ValueError):
    """Says that a netlist has a cell, or a setting of one, that the simulator does not know, or a loop."""


class GateNetlist:
    """Is a netlist of one module with one clock.

    ``ports``: nets of each port, lowest bit first; ``inputs`` and ``outputs`` of each kind in ``KINDS``, a row of nets
    for each cell, and ``settings``: what else the simulator has to know of a kind. ``levels``: a level for each
    combinational cell, above those of all cells that it reads. :class:`GateError` for what cannot be simulated.
    """

    def __init__(self, mapped: bytes, top: str = "top", clock: str = "clk") -> None:
        module = json.loads(mapped)["modules"][top]
        self._nets: dict[int, int] = {}
        self._rows: dict[str, list[tuple[list[int], list[int]]]] = {kind: [] for kind in KINDS}
        self.settings: dict[str, list[Any]] = {kind: [] for kind in ("lut", "flop", "deep", "through", "filled")}
        self.shallow: list[npt.NDArray[np.uint8]] = []
        self.ports = {name: [self._net(bit) for bit in port["bits"]] for name, port in module["ports"].items()}
        (self._clock,) = self.ports[clock]
        for name, cell in module["cells"].items():
            if cell["type"] in _IGNORED:
                continue
            make = _CELLS.get(cell["type"])
            if make is None:
                raise GateError(f"a cell {cell['type']} ({name}) is none that can be simulated")
            make(self, _Pins(self, name, cell))
        self.nets = len(self._nets) + 2
        self.inputs, self.outputs = ({kind: self._table(kind, end) for kind in KINDS} for end in (0, 1))
        self.levels = self._leveled()

    def _net(self, bit: int | str) -> int:
        """Return the number of a net; 0 and 1 are the constants."""
        if isinstance(bit, str):
            return _CONSTANTS[bit]
        return self._nets.setdefault(bit, len(self._nets) + 2)

    def new_net(self) -> int:
        """Return a net that is inside of a cell."""
        return self._nets.setdefault(-1 - len(self._nets), len(self._nets) + 2)

    def add(self, kind: str, inputs: list[int], outputs: list[int]) -> None:
        """Add a cell of ``kind``."""
        self._rows[kind].append((inputs, outputs))

    def check_clock(self, net: int, name: str) -> None:
        """Raise :class:`GateError` for another clock than that of all."""
        if net != self._clock:
            raise GateError(f"{name} has a clock of its own")

    def _table(self, kind: str, end: int) -> _Ints:
        rows = [row[end] for row in self._rows[kind]]
        return np.array(rows, np.int32).reshape(len(rows), len(rows[0]) if rows else 0)

    def _leveled(self) -> _Ints:
        sources = [kind for kind in KINDS[:_COMBINATIONAL] if len(self.inputs[kind])]
        driver = np.full(self.nets, -1, np.int64)
        first, waits, readers = 0, [], list[tuple[int, _Ints]]()
        for kind in sources:
            outputs = self.outputs[kind]
            driver[outputs] = first + np.arange(len(outputs))[:, np.newaxis]
            readers.append((first, self.inputs[kind]))
            first += len(outputs)
        driver[:2] = -1
        ends, begins = list[npt.NDArray[np.int64]](), list[npt.NDArray[np.int64]]()
        for start, inputs in readers:
            into = np.repeat(start + np.arange(len(inputs)), inputs.shape[1])
            out_of = driver[inputs].ravel()
            ends.append(into[out_of >= 0])
            begins.append(out_of[out_of >= 0])
        into, out_of = (np.concatenate(part) if part else np.zeros(0, np.int64) for part in (ends, begins))
        order = np.argsort(out_of, kind="stable")
        into, starts = into[order], np.searchsorted(out_of[order], np.arange(first + 1))
        waits = np.bincount(into, minlength=first).tolist()
        levels, ready = [0] * first, [node for node in range(first) if not waits[node]]
        done = 0
        while ready:
            node = ready.pop()
            done += 1
            for reader in into[starts[node] : starts[node + 1]].tolist():
                levels[reader] = max(levels[reader], levels[node] + 1)
                waits[reader] -= 1
                if not waits[reader]:
                    ready.append(reader)
        if done < first:
            raise GateError(f"{first - done} combinational cells are in a loop, or behind one")
        return np.array(levels, np.int32)


class _Pins:
    """Reads what one cell is connected to."""

    def __init__(self, netlist: GateNetlist, name: str, cell: _Cell) -> None:
        self.name, self._netlist = name, netlist
        self._connections, self.parameters = cell["connections"], cell["parameters"]

    def __call__(self, pin: str) -> int:
        return self.all(pin)[0]

    def all(self, pin: str) -> list[int]:
        """Return the nets of a pin of several bits; an input that is open is low, and an output goes nowhere."""
        bits = self._connections.get(pin) or ["0"]
        return [self._netlist._net(bit) for bit in bits]

    def numbered(self, stem: str, count: int) -> list[int]:
        """Return the nets of the pins ``stem`` 0 to ``count`` - 1."""
        return [self(f"{stem}{i}") for i in range(count)]

    def driven(self, pins: Sequence[str]) -> list[int]:
        """Return the nets that outputs drive, with one that nobody reads for each that is open."""
        found = [self._connections.get(pin) for pin in pins]
        return [self._netlist._net(bits[0]) if bits else self._netlist.new_net() for bits in found]

    def number(self, name: str) -> int:
        """Return a parameter that is a number."""
        return int(self.parameters[name].replace("x", "0"), 2)

    def setting(self, name: str, default: str) -> str:
        """Return a parameter that is a word: Yosys ends one that could be a number with a space."""
        return self.parameters.get(name, default).strip()

    def must(self, name: str, *allowed: str) -> str:
        """Return a parameter. Raises :class:`GateError` for one that is not ``allowed``, of which the first is the
        default."""
        found = self.setting(name, allowed[0])
        if found not in allowed:
            raise GateError(f"{self.name} has {name} {found}; what is known is {' and '.join(allowed)}")
        return found


def _table_of(function: Callable[[list[int]], int]) -> int:
    return sum(function([row >> i & 1 for i in range(_LUT_INPUTS)]) << row for row in range(1 << _LUT_INPUTS))


def _looked_up(init: int) -> Callable[[Sequence[int]], int]:
    return lambda pins: init >> (pins[0] | pins[1] << 1 | pins[2] << 2 | pins[3] << 3) & 1


def _add_lut(netlist: GateNetlist, inputs: list[int], output: int, table: int) -> None:
    netlist.add("lut", inputs + [0] * (_LUT_INPUTS - len(inputs)), [output])
    netlist.settings["lut"].append(table)


def _lut(netlist: GateNetlist, pins: _Pins) -> None:
    _add_lut(netlist, [pins(pin) for pin in "ABCD"], pins.driven("Z")[0], pins.number("INIT") * 0x10001)


_CHOICE = _table_of(lambda pins: pins[1] if pins[2] else pins[0])


def _wide_lut(netlist: GateNetlist, pins: _Pins) -> None:
    _add_lut(netlist, [pins("BLUT"), pins("ALUT"), pins("C0")], pins.driven("Z")[0], _CHOICE)


def _wider_lut(netlist: GateNetlist, pins: _Pins) -> None:
    _add_lut(netlist, [pins("D0"), pins("D1"), pins("SD")], pins.driven("Z")[0], _CHOICE)


def _carry(netlist: GateNetlist, pins: _Pins) -> None:
    """Two full look-up tables with a carry from one to the other: the sum of each, and the carry out."""
    carry = pins("CIN")
    sums, (last,) = pins.driven(("S0", "S1")), pins.driven(("COUT",))
    for half, following in ((0, netlist.new_net()), (1, last)):
        pins.must(f"INJECT1_{half}", "NO")
        whole = _looked_up(pins.number(f"INIT{half}"))

        def generated(row: list[int], whole: Callable[[Sequence[int]], int] = whole) -> int:
            return row[4] if whole(row) else whole([row[0], row[1], 0, 0])

        def added(row: list[int], whole: Callable[[Sequence[int]], int] = whole) -> int:
            return whole(row) ^ row[4]

        inputs = [*(pins(f"{pin}{half}") for pin in "ABCD"), carry]
        _add_lut(netlist, inputs, sums[half], _table_of(added))
        _add_lut(netlist, inputs, following, _table_of(generated))
        carry = following


def _product(netlist: GateNetlist, pins: _Pins) -> None:
    for name, word in pins.parameters.items():
        if name.startswith("REG_") and name.endswith("_CLK") and word.strip() != "NONE":
            raise GateError(f"{pins.name} has a register ({name} {word})")
    factors = pins.numbered("A", _FACTOR) + pins.numbered("B", _FACTOR)
    outputs = pins.driven([f"P{i}" for i in range(_PRODUCT)])
    netlist.add("product", [*factors, pins("SIGNEDA"), pins("SIGNEDB")], outputs)


def _flop(netlist: GateNetlist, pins: _Pins) -> None:
    netlist.check_clock(pins("CLK"), pins.name)
    pins.must("CLKMUX", "CLK")
    pins.must("LSRMUX", "LSR")
    order = pins.must("SRMODE", "LSR_OVER_CE", "CE_OVER_LSR")
    enable = pins.must("CEMUX", "1", "CE", "INV", "0")
    source = {"1": 1, "0": 0}.get(enable, pins("CE"))
    kind = (enable == "INV") | (order == "CE_OVER_LSR") << 1 | (pins.must("REGSET", "RESET", "SET") == "SET") << 2
    netlist.add("flop", [pins("DI"), source, pins("LSR")], pins.driven("Q"))
    netlist.settings["flop"].append(kind)


def _shallow(netlist: GateNetlist, pins: _Pins) -> None:
    netlist.check_clock(pins("WCK"), pins.name)
    pins.must("WCKMUX", "WCK")
    enable = {"WRE": pins("WRE"), "1": 1, "0": 0}[pins.must("WREMUX", "WRE", "1", "0")]
    row, data = pins.all("WAD"), pins.all("DI")
    netlist.add("write", [enable, *row, *data], [])
    netlist.add("read", pins.all("RAD"), pins.all("DO"))
    first = pins.number("INITVAL") if "INITVAL" in pins.parameters else 0
    netlist.shallow.append(np.array([first >> i & 1 for i in range(_SHALLOW_BITS)], np.uint8))


def _deep(netlist: GateNetlist, pins: _Pins) -> None:
    width = pins.number("DATA_WIDTH_A")
    if width not in _DEEP_WIDTHS or width != pins.number("DATA_WIDTH_B"):
        raise GateError(f"{pins.name} has ports of other widths than {_DEEP_WIDTHS}, or of two")
    inputs = list[int]()
    modes = set[str]()
    for port in "AB":
        netlist.check_clock(pins(f"CLK{port}"), pins.name)
        pins.must(f"CLK{port}MUX", f"CLK{port}")
        pins.must(f"REGMODE_{port}", "NOREG")
        pins.must(f"CSDECODE_{port}", "0b000")
        modes.add(pins.must(f"WRITEMODE_{port}", "NORMAL", "READBEFOREWRITE"))
        if pins(f"RST{port}") or any(pins.numbered(f"CS{port}", 3)):
            raise GateError(f"{pins.name} is reset, or selected by more than its clock enable")
        inputs += pins.numbered(f"AD{port}", _DEEP_ADDRESS) + pins.numbered(f"DI{port}", _DEEP_DATA)
        inputs += [pins(f"WE{port}"), pins(f"CE{port}")]
    outputs = pins.driven([f"DO{port}{i}" for port in "AB" for i in range(_DEEP_DATA)])
    netlist.add("deep", inputs, outputs)
    netlist.settings["deep"].append(width)
    netlist.settings["through"].append(modes == {"NORMAL"})
    netlist.settings["filled"].append(np.fromiter(_first_bits(pins.parameters), np.uint8, _DEEP_BITS))


def _first_bits(parameters: Mapping[str, str]) -> Iterator[int]:
    """Yield the first contents of a block RAM: 64 parameters of 16 words of 18 bits, each in 20 bits."""
    for index in range(_DEEP_BITS // 288):
        bits = parameters.get(f"INITVAL_{index:02X}", "0")[::-1].ljust(320, "0")
        for word in range(16):
            yield from (int(bit == "1") for bit in bits[20 * word : 20 * word + _DEEP_DATA])


_CELLS: Mapping[str, Callable[[GateNetlist, _Pins], None]] = {
    "LUT4": _lut,
    "PFUMX": _wide_lut,
    "L6MUX21": _wider_lut,
    "CCU2C": _carry,
    "MULT18X18D": _product,
    "TRELLIS_FF": _flop,
    "TRELLIS_DPR16X4": _shallow,
    "DP16KD": _deep,
}
