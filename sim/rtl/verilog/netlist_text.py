"""Reads RTLIL text as modules."""

import re
from dataclasses import dataclass

_MODULE = re.compile(r"^module \\(\S+)\n(.*?)^end$", re.MULTILINE | re.DOTALL)
INSTANCE = re.compile(r"^  cell \\(\S+) \\(\S+)$", re.MULTILINE)  #: path of its module, and name


@dataclass(frozen=True)
class ModuleText:
    """Holds the ``lines`` of a module by its ``path``, such as ``caesura_soc.engine0.ld2``."""

    path: str
    lines: list[str]

    def text(self) -> str:
        """Return the module as RTLIL."""
        return "\n".join([f"module \\{self.path}", *self.lines, "end", ""])


def modules_of(rtlil: str) -> list[ModuleText]:
    """Return the modules of a netlist from :func:`sim.rtl.rtlil.to_rtlil`, the top first."""
    return [ModuleText(path, body.split("\n")[1:-1]) for path, body in _MODULE.findall(rtlil)]
