"""The second stage: maps a netlist to the cells of an ECP5."""

import json
from pathlib import Path
from typing import Any

from caesura.fpga.netlist import TOP, Netlist
from caesura.fpga.tools import yosys

COMMANDS = ("read_rtlil netlist.il", f"synth_ecp5 -top {TOP} -json mapped.json")


def synthesise(netlist: Netlist, work: Path) -> bytes:
    """Return the mapped netlist as Yosys' JSON. Raises :class:`sim.toolchain.BuildError`."""
    (work / "netlist.il").write_text(netlist.text)
    yosys(COMMANDS, work)
    return (work / "mapped.json").read_bytes()


def top_of(mapped: bytes) -> dict[str, Any]:
    """Return the only module of a mapped netlist: ``cells`` and ``netnames``, by name."""
    return json.loads(mapped)["modules"][TOP]
