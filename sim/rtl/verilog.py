"""Writes the accelerator as Verilog, for other simulators and for synthesis."""

import re
import tempfile
from pathlib import Path

from hw import Soc
from hw.contract.params import SocParams
from sim.rtl.rtlil import require_yosys, run_yosys, to_rtlil

TOP = "caesura_soc"
MEMORY = re.compile(r"^  reg \[\d+:0\] (\S+) +\[(\d+):0\];$", re.MULTILINE)
#: Initial value of the output register of a memory, which Amaranth leaves undefined: simulation would start with X.
READ_REGISTER = re.compile(r"(?<=INIT_VALUE )(\d+)'x+")
#: As Amaranth's own Verilog output with ``strip_internal_attrs``, but with multiplexers in place of processes:
#: event-driven simulators never run a process that assigns a constant.
CONVERSION = (
    "read_rtlil netlist.il", "proc -norom", "pmuxtree", "memory_collect",
    "attrmap -remove generator -remove top -remove src -remove hdlname",
    "attrmap -modattr -remove generator -remove top -remove src -remove hdlname",
    "write_verilog -norename -noattr netlist.v",
)  # fmt: skip


def write_verilog(params: SocParams, out_dir: Path) -> Path:
    """Write the SoC without DRAM to ``out_dir/caesura_soc.v`` and return the path.

    Module ``caesura_soc`` has the ports ``clk``, ``rst`` (synchronous, active high), ``irq``, an AXI4-Lite slave
    ``axil_*`` and an AXI4 master ``axi_*``. Connect ports by name: their order means nothing.
    """
    require_yosys("Verilog")
    path = Path(out_dir) / f"{TOP}.v"
    path.write_text(converted(to_rtlil(Soc(params), name=TOP, separator="_")))
    return path


def converted(rtlil: str, *, collect: bool = True) -> str:
    """Return the netlist ``rtlil``, from :func:`sim.rtl.rtlil.to_rtlil`, as Verilog. ``collect`` gathers the ports of
    each memory in one cell, which Yosys cannot do for one of the size of a DRAM."""
    with tempfile.TemporaryDirectory(prefix="caesura-") as folder:
        work = Path(folder)
        (work / "netlist.il").write_text(READ_REGISTER.sub(_zero, rtlil))
        commands = [command for command in CONVERSION if collect or command != "memory_collect"]
        run_yosys(commands, work, work / "yosys.log")
        text = (work / "netlist.v").read_text()
    return MEMORY.sub(_zero_at_power_on, text)


def _zero_at_power_on(declaration: re.Match) -> str:
    """Add a loop that clears a memory: the netlist leaves rows out that are zero, see ``sim.rtl.rtlil``.

    It comes before the initial values that Yosys writes for the rest of the rows.
    """
    memory, last = declaration[1], declaration[2]
    return (
        f"{declaration[0]}\n  initial begin : zero_{memory.strip(chr(92))}\n    integer i;\n"
        f"    for (i = 0; i <= {last}; i = i + 1) {memory} [i] = 0;\n  end"
    )


def _zero(constant: re.Match) -> str:
    return f"{constant[1]}'{'0' * int(constant[1])}"
