"""Reads Amaranth's netlist (NIR) into Python records, and the words that connect its cells.

NIR is an internal interface of Amaranth 0.5: what this reader does not know is refused by name.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from amaranth.hdl import Fragment, Value, _ir as ir, _nir as nir
from amaranth.lib import wiring

from sim.rtl.native.bits import CONSTANT, Piece, Word
from sim.rtl.top import SimTop

TOP = 0  #: the cell whose output bits are the inputs of the design


class NetlistError(ValueError):
    """Says that the design has something that the native simulator cannot evaluate; names the module and the cell."""


@dataclass(frozen=True)
class Cells:
    """Holds the netlist of one design.

    ``cells[0]`` is the top; ``inputs`` and ``outputs`` are its ports without the clock; ``modules`` gives the
    hierarchical name of every module, the top's own name left out; ``names`` that of the registers' signals.
    """

    cells: list[nir.Cell]
    modules: list[str]
    inputs: Mapping[str, Word]
    outputs: Mapping[str, Word]
    names: Mapping[int, str]
    clock: int
    _words: dict[int, Word] = field(default_factory=dict)

    def word(self, nets: nir.Value) -> Word:
        """Return the nets of a cell's input as runs of bits of one cell."""
        key = id(nets)  # the cells keep it alive
        if key not in self._words:
            self._words[key] = word(nets)
        return self._words[key]

    def where(self, cell: nir.Cell) -> str:
        """Return the place of a cell, for messages."""
        return f"module {self.modules[cell.module_idx] or 'top'}"


def read_cells(top: SimTop) -> Cells:
    """Elaborate ``top``. It must not have been elaborated before."""
    ports: dict = {"clk": (top.domain.clk, ir.PortDirection.Input)}
    for path, member, value in top.signature.flatten(top):
        direction = ir.PortDirection.Input if member.flow == wiring.In else ir.PortDirection.Output
        ports["__".join(map(str, path))] = (Value.cast(value), direction)
    design = Fragment.get(top, None).prepare(ports=ports, hierarchy=("sim_top",))
    netlist = nir.Netlist()
    # What else ``build_netlist`` does serves a netlist that is written out; loops are found when cells are ordered.
    with _unchecked_values():
        ir._emit_netlist(netlist, design)
        netlist.resolve_all_nets()
    inputs = {
        name: (Piece(TOP, start, width),) for name, (start, width) in netlist.top.ports_i.items() if name != "clk"
    }
    outputs = {name: word(value) for name, value in netlist.top.ports_o.items()}
    modules = [".".join(module.name[1:]) for module in netlist.modules]
    clock = TOP << 16 | netlist.top.ports_i["clk"][0]
    return Cells(netlist.cells, modules, inputs, outputs, _register_names(netlist, modules), clock)


@contextmanager
def _unchecked_values() -> Iterator[None]:
    """Leave a check out meanwhile: Amaranth looks at each of millions of nets to see that it is one, which takes a
    quarter of all elaboration."""

    def unchecked(kind: type, nets=()):
        return tuple.__new__(kind, (nets,) if isinstance(nets, nir.Net) else nets)

    checked = nir.Value.__new__
    nir.Value.__new__ = unchecked
    try:
        yield
    finally:
        nir.Value.__new__ = checked


def _register_names(netlist: nir.Netlist, modules: list[str]) -> dict[int, str]:
    """Return the hierarchical names of flip-flops: those that a written netlist gives them."""
    result: dict[int, str] = {}
    for index, module in enumerate(netlist.modules):
        for signal, name in module.signal_names.items():
            value = netlist.signals[signal]
            if not value or not value[0].is_cell or value[0].bit or value[-1] >> 16 != value[0] >> 16:
                continue
            cell = netlist.cells[value[0].cell]
            if isinstance(cell, nir.FlipFlop) and cell.module_idx == index and len(value) == len(cell.data):
                result.setdefault(value[0].cell, ".".join(part for part in (modules[index], name) if part))
    return result


def word(nets: nir.Value) -> Word:
    """Return the nets as runs of bits of one cell."""
    result: list[Piece] = []
    i, count = 0, len(nets)
    while i < count:
        first = int(nets[i])
        if first < 0:
            raise NetlistError("a net without a driver")
        j = i + 1
        if first < 2:
            number = first
            while j < count and 0 <= nets[j] < 2:
                number |= nets[j] << (j - i)
                j += 1
            result.append(Piece(CONSTANT, int(number), j - i))
        elif j < count and nets[j] == first:
            while j < count and nets[j] == first:
                j += 1
            result.append(Piece(first >> 16, first & 0xFFFF, j - i, True))
        else:
            # Whole cells are common: compare them at once.
            if nets[i:] == tuple(range(first, first + count - i)):
                j = count
            while j < count and nets[j] == first + (j - i):
                j += 1
            result.append(Piece(first >> 16, first & 0xFFFF, j - i))
        i = j
    return tuple(result)


def bit(net: nir.Net) -> Word:
    """Return a single net as a piece."""
    return (Piece(CONSTANT, int(net), 1),) if net < 2 else (Piece(net >> 16, net & 0xFFFF, 1),)
