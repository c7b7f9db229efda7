"""Gives signals, memories and instances names that Verilog and SystemVerilog read as they stand."""

import re
from collections.abc import Iterable, Sequence

from sim.rtl.verilog.netlist_text import INSTANCE, ModuleText

#: IEEE 1800-2017, annex B: reserved in SystemVerilog, and most of them in Verilog.
_KEYWORDS = """
accept_on alias always always_comb always_ff always_latch and assert assign assume automatic before begin bind bins
binsof bit break buf bufif0 bufif1 byte case casex casez cell chandle checker class clocking cmos config const
constraint context continue cover covergroup coverpoint cross deassign default defparam design disable dist do edge
else end endcase endchecker endclass endclocking endconfig endfunction endgenerate endgroup endinterface endmodule
endpackage endprimitive endprogram endproperty endspecify endsequence endtable endtask enum event eventually expect
export extends extern final first_match for force foreach forever fork forkjoin function generate genvar global highz0
highz1 if iff ifnone ignore_bins illegal_bins implements implies import incdir include initial inout input inside
instance int integer interconnect interface intersect join join_any join_none large let liblist library local
localparam logic longint macromodule matches medium modport module nand negedge nettype new nexttime nmos nor
noshowcancelled not notif0 notif1 null or output package packed parameter pmos posedge primitive priority program
property protected pull0 pull1 pulldown pullup pulsestyle_ondetect pulsestyle_onevent pure rand randc randcase
randsequence rcmos real realtime ref reg reject_on release repeat restrict return rnmos rpmos rtran rtranif0 rtranif1
s_always s_eventually s_nexttime s_until s_until_with scalared sequence shortint shortreal showcancelled signed small
soft solve specify specparam static string strong strong0 strong1 struct super supply0 supply1 sync_accept_on
sync_reject_on table tagged task this throughout time timeprecision timeunit tran tranif0 tranif1 tri tri0 tri1 triand
trior trireg type typedef union unique unique0 unsigned until until_with untyped use uwire var vectored virtual void
wait wait_order wand weak weak0 weak1 while wildcard wire with within wor xnor xor
"""
#: What the package ``std`` of SystemVerilog holds, which every module sees.
_STANDARD = ("mailbox", "process", "randomize", "semaphore", "std")
RESERVED = frozenset((*_KEYWORDS.split(), *_STANDARD))
_DECLARED = re.compile(r"^  (?:wire|memory|cell) .*\\(\S+)$")
_NAME = re.compile(r"(?<=\\)[^\s\"\\]+")
_NUMBERED = re.compile(r"port\$\d+\$\d+")  #: a port without a name, by the number of a cell somewhere in the design
_SAID = re.compile(r"^ *attribute ")
_PORT = re.compile(r"^(    connect \\)(\S+)( .*)$")


def plain_names(names: Iterable[str]) -> dict[str, str]:
    """Return another name for each that has a sign other than letters, digits and ``_`` or is reserved. Ports without
    a name are numbered."""
    known = list(dict.fromkeys(names))
    taken, plain, ports = set(known), {}, 0
    for name in known:
        new = re.sub(r"\W", "_", name.lstrip("$"), flags=re.ASCII)
        if _NUMBERED.fullmatch(name):
            new, ports = f"port_{ports}", ports + 1
        if new in RESERVED:
            new += "_"
        if new == name:
            continue
        while new in taken:
            new += "_"
        taken.add(new)
        plain[name] = new
    return plain


def with_plain_names(modules: Sequence[ModuleText]) -> list[ModuleText]:
    """Return ``modules`` with plain names inside; ports of instances follow those of their module."""
    plain = {module.path: plain_names(_declared(module)) for module in modules}
    return [ModuleText(module.path, _renamed(module, plain)) for module in modules]


def _declared(module: ModuleText) -> Iterable[str]:
    return (found[1] for found in map(_DECLARED.match, module.lines) if found)


def _renamed(module: ModuleText, plain: dict[str, dict[str, str]]) -> list[str]:
    own = plain[module.path]
    lines: list[str] = []
    ports: dict[str, str] | None = None  # of the cell that the lines are in

    def rename(text: str) -> str:
        return _NAME.sub(lambda name: own.get(name[0], name[0]), text)

    for line in module.lines:
        instance, port = INSTANCE.match(line), _PORT.match(line)
        if instance:
            ports = plain.get(instance[1], {})
            line = f"  cell \\{instance[1]} {rename(chr(92) + instance[2])}"
        elif line.startswith("  cell "):
            ports = {}
            line = rename(line)
        elif line == "  end":
            ports = None
        elif port and ports is not None:
            line = f"{port[1]}{ports.get(port[2], port[2])}{rename(port[3])}"
        elif not _SAID.match(line) and not line.startswith("    parameter "):
            line = rename(line)
        elif line.startswith("    parameter \\MEMID "):
            head, value = line[:20], line[20:]
            line = head + rename(value)
        lines.append(line)
    return lines
