"""Puts Verilog as Yosys writes it in a form for people: ports where the module begins, fields as comments, registers
together."""

import re
import textwrap

WIDTH = 110  #: columns of a comment
_MODULE = re.compile(r"^module (\w+)\(.*?\);\n(.*?)^endmodule$", re.MULTILINE | re.DOTALL)
_ATTRIBUTE = re.compile(r"^ *\(\* (\w+) = (.*) \*\)$")
#: What Yosys says of multiplexers that were a case with all choices, in the middle of an expression.
_INLINE = re.compile(r"\(\* full_case = 32'd1 \*\) ")
_OPERATOR = re.compile(r'\(\* src = "([^"]*)" \*\) ')  #: in the middle of an expression
_PORT = re.compile(r"^  (input|output|inout) (?:(signed) )?(\[\d+:0\] )?(\w+);$")
_NET = re.compile(r"^  (wire|reg) (?:signed )?(?:\[\d+:0\] )?(\w+)( = .*)?;$")
#: Registers that Yosys writes one after the other, each in a block of its own.
_REGISTER = r'^(?:  \(\* src = "([^"]*)" \*\)\n)?  always @\(posedge clk\)\n(    \w+ <= .*)\n'
_REGISTERS = re.compile(rf"(?:{_REGISTER}){{2,}}", re.MULTILINE)
_MEMORY = re.compile(r"^  reg \[\d+:0\] (\S+) +\[(\d+):0\];$")


def laid_out(verilog: str) -> dict[str, str]:
    """Return the modules of ``verilog``, which Yosys wrote, by name."""
    return {name: _module(name, body.split("\n")[:-1]) for name, body in _MODULE.findall(_INLINE.sub("", verilog))}


def comment(text: str, indent: str = "") -> list[str]:
    """Return lines of a comment."""
    return textwrap.wrap(text, WIDTH, initial_indent=f"{indent}// ", subsequent_indent=f"{indent}//   ")


def _module(name: str, lines: list[str]) -> str:
    ports: dict[str, list[str]] = {}  # declarations by name, comments ahead of them
    body: list[str] = []
    said: list[str] = []
    cleared: list[str] = []  # ahead of what comes next
    for line in lines:
        if not _ATTRIBUTE.match(line):
            line = _with_sources(line)
        attribute, port, net, memory = (form.match(line) for form in (_ATTRIBUTE, _PORT, _NET, _MEMORY))
        if attribute:
            said += _said(attribute[1], attribute[2])
            continue
        if port:
            direction, signed, width, called = port.groups()
            kind = " ".join(filter(None, (direction, "wire", signed)))
            ports[called] = [*said, f"  {kind} {width or ''}{called}"]
        elif net and net[2] in ports:
            declaration = ports[net[2]]
            if net[1] == "reg":
                declaration[-1] = declaration[-1].replace(" wire ", " reg ", 1) + (net[3] or "")
        else:
            body += [*said, line]
        if cleared and line == "  initial begin":
            body[-1:] = cleared  # and then the initial values of other rows
        elif cleared:
            body[-1:-1] = ["`ifndef SYNTHESIS", *cleared, "  end", "`endif"]
        cleared = _cleared(memory[1], memory[2]) if memory else []
        said = []
    order = sorted(ports, key=lambda called: (called not in ("clk", "rst"), called))
    declared = ",\n".join("\n".join(ports[called]) for called in order)
    return _REGISTERS.sub(_together, "\n".join([f"module {name} (", declared, ");", *body, "endmodule", ""]))


def _together(blocks: re.Match[str]) -> str:
    """Return one block for all registers of ``blocks``, with their sources behind them."""
    found = re.findall(_REGISTER, blocks[0], re.MULTILINE)
    told = [f"{line}  // {source}" if source else line for source, line in found]
    return "\n".join(["  always @(posedge clk) begin", *told, "  end", ""])


def _said(name: str, value: str) -> list[str]:
    """Return an attribute as it is written: fields as a comment."""
    return comment(f"fields: {value.strip(chr(34))}", "  ") if name == "fields" else [f"  (* {name} = {value} *)"]


def _with_sources(line: str) -> str:
    """Return ``line`` with the sources of its operators behind it."""
    found = dict.fromkeys(_OPERATOR.findall(line))
    return f"{_OPERATOR.sub('', line)}  // {', '.join(found)}" if found else line


def _cleared(memory: str, last: str) -> list[str]:
    """Return the beginning of a block that clears a memory: the netlist leaves rows out that are zero, see
    ``sim.rtl.rtlil``. Where there is no other row it is for simulation alone: memories of FPGAs begin at zero, and
    synthesis takes a minute for such loops."""
    return [
        f"  initial begin : clear_{memory}",
        "    integer i;",
        f"    for (i = 0; i <= {last}; i = i + 1) {memory}[i] = 0;",
    ]
