"""Reads RTLIL text as modules, and takes out what Verilog cannot say: wires and operands of no bits."""

import re
from dataclasses import dataclass

_MODULE = re.compile(r"^module \\(\S+)\n(.*?)^end$", re.MULTILINE | re.DOTALL)
_WIRE = re.compile(r"  wire width (\d+) .*?\\(\S+)$")
#: An operand of no bits, whose value is zero: its width and its value, in a cell of Yosys'.
_EMPTY_WIDTH = re.compile(r"^    parameter \\([AB]_WIDTH|ABITS) 0$")
_EMPTY_OPERAND = re.compile(r"^    connect \\(A|B|ADDR) \{  \}$")
INSTANCE = re.compile(r"^  cell \\(\S+) \\(\S+)$", re.MULTILINE)


@dataclass
class ModuleText:
    """Holds the ``lines`` of a module by its ``path``, such as ``caesura_soc.engine0.ld2``."""

    path: str
    lines: list[str]

    def instances(self) -> list[tuple[str, str]]:
        """Return the instances inside: path of the module and name."""
        return INSTANCE.findall("\n".join(self.lines))

    def text(self) -> str:
        """Return the module as RTLIL."""
        return "\n".join([f"module \\{self.path}", *self.lines, "end", ""])


def modules_of(rtlil: str) -> list[ModuleText]:
    """Return the modules of a netlist from :func:`sim.rtl.rtlil.to_rtlil`, the top first, without parts of no bits."""
    modules = [ModuleText(path, body.split("\n")[1:-1]) for path, body in _MODULE.findall(rtlil)]
    empty = {module.path: _empty_wires(module) for module in modules}
    for module in modules:
        module.lines = _without_empty(module.lines, empty[module.path], empty)
    return modules


def _empty_wires(module: ModuleText) -> set[str]:
    wires = map(_WIRE.match, module.lines)
    return {wire[2] for wire in wires if wire and wire[1] == "0"}


def _without_empty(lines: list[str], own: set[str], of_all: dict[str, set[str]]) -> list[str]:
    kept: list[str] = []
    ports: set[str] = set()  # those of no bits, of the instance that the lines are in
    for line in lines:
        cell = INSTANCE.match(line)
        if cell:
            ports = of_all.get(cell[1], set())
        elif line == "  end":
            ports = set()
        wire, connected = _WIRE.match(line), re.match(r" *connect \\(\S+) ", line)
        if wire and wire[2] in own:
            while kept and kept[-1].startswith("  attribute "):
                kept.pop()
        elif connected and connected[1] in (ports if line.startswith(" ") else own):
            continue
        else:
            line = _EMPTY_WIDTH.sub(r"    parameter \\\1 1", line)
            kept.append(_EMPTY_OPERAND.sub(r"    connect \\\1 1'0", line))
    return kept
