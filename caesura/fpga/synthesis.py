"""The second stage: maps a netlist to the cells of an ECP5."""

import inspect
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from caesura.fpga import enables, folding
from caesura.fpga.netlist import TOP, Netlist
from caesura.fpga.tools import yosys

BLOCK = 18  #: bits of the factors that a multiplier takes
#: Products with a factor of so few bits become adders: they would leave most of a block of 18 × 18 bits unused. So does
#: what is left of a product that is wider than a block.
NARROW = 6
#: The type under which Yosys' own mapping keeps products from blocks.
_SOFT = "$__soft_mul"
#: How sums, and products that take no block, become carry chains.
_CHAINS = Path(__file__).with_name("chains.v")
_BEGIN = f"synth_ecp5 -top {TOP} -run begin:coarse"
#: Up to where products become blocks these are the commands of ``synth_ecp5``: ahead of :mod:`caesura.fpga.enables`,
#: and behind it.
_FLAT = (
    "read_rtlil netlist.il", _BEGIN, "proc", "flatten", "opt_expr", "opt_clean",
    f"select {TOP}", "write_rtlil -selected flat.il",
)  # fmt: skip
_COARSE = (
    "read_rtlil enables.il", _BEGIN, "opt -nodffe -nosdff", "fsm", "opt", "wreduce", "peepopt", "opt_clean", "share",
    "techmap -map +/cmp2lut.v -D LUT_WIDTH=4", "opt_expr", "opt_clean",
)  # fmt: skip
_WIDTHS = " ".join(f"-D DSP_{factor}_MAXWIDTH={BLOCK} -D DSP_{factor}_MINWIDTH={NARROW + 1}" for factor in "AB")
_MAP = (
    f"techmap -map +/mul2dsp.v {_WIDTHS} -D DSP_NAME=$__MUL18X18",
    "techmap -map chains.v", "opt_clean", f"synth_ecp5 -top {TOP} -run coarse: -json mapped.json",
)  # fmt: skip
#: All that a mapped netlist depends on, beside the netlist and the version of Yosys.
DEPENDS_ON = (
    *_FLAT, *_COARSE, *_MAP, _CHAINS.read_text(), "no_rw_check", "elements named apart",
    *map(inspect.getsource, (enables, folding)),
)  # fmt: skip
#: A product as RTLIL has it, with its parameters.
_PRODUCT = re.compile(r"^  cell \$mul (\S+)\n((?:    parameter .*\n)+)", re.MULTILINE)
#: A memory of whose words none is looked at that is read while it is written, and what a reader says of that.
_UNCHECKED = re.compile(r"attribute \\no_rw_check 1\n(?:  attribute .*\n)*  memory .*\\(\S+)$", re.MULTILINE)
_READER = re.compile(
    r'(parameter \\MEMID "\\\\(\S+)"\n(?:    parameter .*\n)*?    parameter \\COLLISION_X_MASK )1\'0$', re.MULTILINE
)
#: The number of an element at the end of a name. One of bits follows a space.
_ELEMENT = re.compile(r"(?<=[^\s\[])\[(\d+)\](?=\s)")
_WIDTH = re.compile(r"parameter \\[AB]_WIDTH (\d+)")


def without_collisions(rtlil: str) -> str:
    """Return a netlist whose memories with the attribute ``no_rw_check`` may read anything where they are written in
    the same cycle. Yosys heeds the attribute itself only for readers that it makes synchronous."""

    def unchecked(module: str) -> str:
        names = set(_UNCHECKED.findall(module))
        return _READER.sub(lambda found: f"{found[1]}1'{int(found[2] in names)}", module)

    return "".join(map(unchecked, re.split(r"^(?=module )", rtlil, flags=re.MULTILINE)))


def with_elements_apart(rtlil: str) -> str:
    """Return a netlist in which no element of an array is named like a bit of another signal, ``a.3`` in place of
    ``a[3]``: where results of ABC come back, Yosys takes one for the other, and ends with an internal error if the
    element is wider."""
    return _ELEMENT.sub(r".\1", rtlil)


def synthesise(netlist: Netlist, work: Path, logic: int | None = None) -> bytes:
    """Return the mapped netlist as Yosys' JSON. Look-up tables between two registers may take ``logic`` picoseconds,
    with some for wires, and are fewer for it; None: as little as can be. Raises :class:`sim.toolchain.BuildError`."""
    _flatten(netlist, work)
    return _mapped((), work, logic)


def synthesise_without(netlist: Netlist, excess: int, work: Path, logic: int | None = None) -> bytes:
    """Return the netlist mapped with ``excess`` multipliers fewer: the narrowest products become adders. ``logic``: as
    of :func:`synthesise`. Raises :class:`sim.toolchain.BuildError`."""
    _flatten(netlist, work)
    yosys((*_COARSE, "write_rtlil coarse.il"), work)
    coarse = (work / "coarse.il").read_text()
    return _mapped([f"chtype -set {_SOFT} c:{name}" for name in _narrowest(coarse, excess)], work, logic)


def _flatten(netlist: Netlist, work: Path) -> None:
    """Write ``enables.il``: the netlist as a single module, ready to be mapped."""
    (work / "netlist.il").write_text(with_elements_apart(without_collisions(netlist.text)))
    yosys(_FLAT, work)
    (work / "enables.il").write_text(enables.with_enables((work / "flat.il").read_text()))


def _mapped(choices: Sequence[str], work: Path, logic: int | None) -> bytes:
    (work / "chains.v").write_text(_CHAINS.read_text())
    bound = () if logic is None else (f"scratchpad -set abc9.D {logic}",)
    yosys((*_COARSE, *choices, *bound, *_MAP), work)
    return folding.folded((work / "mapped.json").read_bytes())


def _narrowest(coarse: str, number: int) -> list[str]:
    """Return the cells that are the ``number`` narrowest of those products that take blocks."""
    products = [(sorted(map(int, _WIDTH.findall(found[2]))), found[1]) for found in _PRODUCT.finditer(coarse)]
    taking = [(math.prod(widths), name) for widths, name in products if widths[0] > NARROW]
    return [name for _, name in sorted(taking)[:number]]


def blocks_of_products(rtlil: str) -> int:
    """Return how many multipliers all products of a netlist would take, narrow ones left out. It is near what synthesis
    finds, which knows more of their widths."""
    widths = (map(int, _WIDTH.findall(found[2])) for found in _PRODUCT.finditer(rtlil))
    return sum(math.prod(map(_blocks, pair)) for pair in map(tuple, widths) if min(pair) > NARROW)


def _blocks(width: int) -> int:
    """Return into how many parts that take blocks a factor is cut."""
    whole, rest = divmod(width, BLOCK)
    return whole + (rest > NARROW)


def multipliers(mapped: bytes) -> int:
    """Return how many multipliers a mapped netlist takes."""
    return sum(cell["type"] == "MULT18X18D" for cell in top_of(mapped)["cells"].values())


def top_of(mapped: bytes) -> dict[str, Any]:
    """Return the only module of a mapped netlist: ``cells`` and ``netnames``, by name."""
    return json.loads(mapped)["modules"][TOP]
