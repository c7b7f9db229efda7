"""Converts a netlist from RTLIL to Verilog, with Yosys, and puts what it writes in a form for people."""

import re
import tempfile
from pathlib import Path

from sim.rtl.verilog.equal_modules import merged
from sim.rtl.verilog.layout import laid_out
from sim.rtl.verilog.names import with_plain_names
from sim.rtl.verilog.netlist_text import modules_of
from sim.rtl.yosys import run_yosys

#: Initial value of the output register of a memory, which Amaranth leaves undefined: simulation would start with X.
_READ_REGISTER = re.compile(r"(?<=INIT_VALUE )(\d+)'x+")
#: Multiplexers in place of processes: event-driven simulators never run a process that assigns a constant. Wires that
#: nothing reads are left out, and so are those of no bits, which Verilog cannot say.
_CONVERSION = (
    "read_rtlil netlist.il", "proc -norom", "pmuxtree", "memory_collect", "opt_expr", "opt_clean -purge",
    "write_verilog netlist.v",
)  # fmt: skip


def converted(rtlil: str, *, collect: bool = True) -> dict[str, str]:
    """Return the netlist ``rtlil``, from :func:`sim.rtl.rtlil.to_rtlil`, as Verilog modules by name, the top first.
    ``collect`` gathers the ports of each memory in one cell, which Yosys cannot do for one of the size of a DRAM."""
    modules = merged(with_plain_names(modules_of(rtlil)))
    netlist = "\n".join(module.text() for module in modules)
    with tempfile.TemporaryDirectory(prefix="caesura-") as folder:
        work = Path(folder)
        (work / "netlist.il").write_text(_READ_REGISTER.sub(_zero, netlist))
        commands = [command for command in _CONVERSION if collect or command != "memory_collect"]
        run_yosys(commands, work, work / "yosys.log")
        texts = laid_out((work / "netlist.v").read_text())
    return {module.path: texts[module.path] for module in modules}


def _zero(constant: re.Match) -> str:
    return f"{constant[1]}'{'0' * int(constant[1])}"
