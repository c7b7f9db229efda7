"""The second stage: maps a netlist to the cells of an ECP5."""

import json
from pathlib import Path
from typing import Any

from caesura.fpga.netlist import TOP, Netlist
from caesura.fpga.tools import yosys

#: Products with a factor of so few bits become adders: they would leave most of a block of 18 × 18 bits unused.
NARROW = 6
#: The type under which Yosys' own mapping keeps products from blocks, and then makes adders of them.
_SOFT = "$__soft_mul"
COMMANDS = (
    "read_rtlil netlist.il",
    f"synth_ecp5 -top {TOP} -run begin:coarse", "proc", "flatten", "opt_expr", "opt_clean", "wreduce",
    f"select -set narrow r:A_WIDTH<={NARROW} r:B_WIDTH<={NARROW} %u t:$mul %i",
    f"chtype -set {_SOFT} @narrow",
    f"synth_ecp5 -top {TOP} -run coarse: -json mapped.json",
)  # fmt: skip


def synthesise(netlist: Netlist, work: Path) -> bytes:
    """Return the mapped netlist as Yosys' JSON. Raises :class:`sim.toolchain.BuildError`."""
    (work / "netlist.il").write_text(netlist.text)
    yosys(COMMANDS, work)
    return (work / "mapped.json").read_bytes()


def top_of(mapped: bytes) -> dict[str, Any]:
    """Return the only module of a mapped netlist: ``cells`` and ``netnames``, by name."""
    return json.loads(mapped)["modules"][TOP]
