"""The second stage: maps a netlist to the cells of an ECP5."""

import json
import math
import re
from pathlib import Path
from typing import Any

from caesura.fpga.netlist import TOP, Netlist
from caesura.fpga.tools import yosys

#: Products with a factor of so few bits become adders: they would leave most of a block of 18 × 18 bits unused.
NARROW = 6
#: The type under which Yosys' own mapping keeps products from blocks, and then makes adders of them.
_SOFT = "$__soft_mul"
_COARSE = (
    "read_rtlil netlist.il",
    f"synth_ecp5 -top {TOP} -run begin:coarse", "proc", "flatten", "opt_expr", "opt_clean", "wreduce",
    f"select -set narrow r:A_WIDTH<={NARROW} r:B_WIDTH<={NARROW} %u t:$mul %i",
    f"chtype -set {_SOFT} @narrow",
)  # fmt: skip
_MAP = f"synth_ecp5 -top {TOP} -run coarse: -json mapped.json"
COMMANDS = (*_COARSE, _MAP)
#: A product as RTLIL has it, with its parameters.
_PRODUCT = re.compile(r"^  cell \$mul (\S+)\n((?:    parameter .*\n)+)", re.MULTILINE)
_WIDTH = re.compile(r"parameter \\[AB]_WIDTH (\d+)")


def synthesise(netlist: Netlist, work: Path) -> bytes:
    """Return the mapped netlist as Yosys' JSON. Raises :class:`sim.toolchain.BuildError`."""
    (work / "netlist.il").write_text(netlist.text)
    yosys(COMMANDS, work)
    return (work / "mapped.json").read_bytes()


def synthesise_without(netlist: Netlist, excess: int, work: Path) -> bytes:
    """Return the netlist mapped with ``excess`` multipliers fewer: the narrowest products become adders. Raises
    :class:`sim.toolchain.BuildError`."""
    (work / "netlist.il").write_text(netlist.text)
    yosys((*_COARSE, "write_rtlil coarse.il"), work)
    coarse = (work / "coarse.il").read_text()
    chosen = [f"chtype -set {_SOFT} c:{name}" for name in _narrowest(coarse, excess)]
    yosys((*_COARSE, *chosen, _MAP), work)
    return (work / "mapped.json").read_bytes()


def _narrowest(coarse: str, number: int) -> list[str]:
    """Return the cells that are the ``number`` narrowest products."""
    products = [(math.prod(map(int, _WIDTH.findall(found[2]))), found[1]) for found in _PRODUCT.finditer(coarse)]
    return [name for _, name in sorted(products)[:number]]


def multipliers(mapped: bytes) -> int:
    """Return how many multipliers a mapped netlist takes."""
    return sum(cell["type"] == "MULT18X18D" for cell in top_of(mapped)["cells"].values())


def top_of(mapped: bytes) -> dict[str, Any]:
    """Return the only module of a mapped netlist: ``cells`` and ``netnames``, by name."""
    return json.loads(mapped)["modules"][TOP]
