"""Writes the core file by which FuseSoC takes the accelerator into a design."""

from collections.abc import Sequence
from pathlib import Path

from caesura.version import __version__

#: Rules of Verilator that the files do not keep, as ``docs/verilog.vlt`` explains.
WAIVED = ("PROCASSINIT", "WIDTHEXPAND", "WIDTHTRUNC", "UNUSEDSIGNAL", "CMPCONST", "DECLFILENAME")

_CORE = """\
CAPI=2:
name: caesura:npu:{top}:{version}
description: An open NPU, {machine}. AXI4-Lite slave for registers, AXI4 master to memory, a level interrupt.
filesets:
  rtl:
    files:
{files}
    file_type: verilogSource-2005
targets:
  default: &default
    filesets: [rtl]
    toplevel: {top}
  lint:
    <<: *default
    description: what Verilator says of it
    default_tool: verilator
    tools:
      verilator:
        mode: lint-only
        verilator_options: [-Wall, {waived}]
"""


def write_core(folder: Path, top: str, files: Sequence[Path], machine: str) -> Path:
    """Write ``TOP.core`` for the Verilog ``files`` in ``folder``, of the ``machine`` of that name; return its path."""
    version = __version__.split(".dev")[0]
    listed = "\n".join(f"      - {path.relative_to(folder)}" for path in files)
    waived = ", ".join(f"-Wno-{rule}" for rule in WAIVED)
    path = folder / f"{top}.core"
    path.write_text(_CORE.format(top=top, version=version, machine=machine, files=listed, waived=waived))
    return path
