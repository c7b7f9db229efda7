"""Rewrites multiplexers so that Yosys sees what a register is held by.

A register that is written under one condition within another is fed by a multiplexer of a multiplexer, and what it is
otherwise goes into both. Yosys finds a clock enable only where the way back from a register is used once: else it leads
the register's own value through look-up tables. So ``c ? (a ? m : x) : x`` becomes ``c & a ? m : x``."""

import re
from dataclasses import dataclass, field

_MUX = re.compile(
    r"  cell \$mux (?P<name>\S+)\n    parameter \\WIDTH (?P<width>\d+)\n    connect \\A (?P<otherwise>.*)\n"
    r"    connect \\B (?P<chosen>.*)\n    connect \\S (?P<select>.*)\n    connect \\Y (?P<out>.*)\n  end\n"
)
_HEAD = re.compile(r"^module .*\n", re.MULTILINE)
_GATE = "  cell ${kind} {out}_made\n{parameters}    connect \\A {a}\n{b}    connect \\Y {out}\n  end\n"
_PORT = "    parameter \\{port}_SIGNED 0\n    parameter \\{port}_WIDTH 1\n"


@dataclass
class _Mux:
    name: str
    width: str
    otherwise: str
    chosen: str
    select: str
    out: str

    def __str__(self) -> str:
        return (
            f"  cell $mux {self.name}\n    parameter \\WIDTH {self.width}\n    connect \\A {self.otherwise}\n"
            f"    connect \\B {self.chosen}\n    connect \\S {self.select}\n    connect \\Y {self.out}\n  end\n"
        )


@dataclass
class _Gates:
    """Makes gates of single bits, each once."""

    text: list[str] = field(default_factory=list)
    made: dict[tuple[str, ...], str] = field(default_factory=dict)

    def all_of(self, one: str, other: str) -> str:
        return self._gate("and", one, other)

    def none_of(self, one: str) -> str:
        return self._gate("not", one)

    def _gate(self, kind: str, *operands: str) -> str:
        if (kind, *operands) not in self.made:
            out = self.made[kind, *operands] = f"$enable${len(self.made)}"
            parameters = "".join(_PORT.format(port=port) for port, _ in zip("AB", operands, strict=False))
            parameters += "    parameter \\Y_WIDTH 1\n"
            b = f"    connect \\B {operands[1]}\n" if operands[1:] else ""
            self.text.append(_GATE.format(out=out, kind=kind, parameters=parameters, a=operands[0], b=b))
        return self.made[kind, *operands]


def with_enables(rtlil: str) -> str:
    """Return a netlist of a single module, as Yosys writes it, that does the same."""
    muxes = {found["out"]: _Mux(**found.groupdict()) for found in _MUX.finditer(rtlil)}
    gates = _Gates()
    for mux in muxes.values():
        while _merged(mux, muxes, gates):
            pass
    if not gates.text:
        return rtlil
    wires = "".join(f"  wire {out}\n" for out in gates.made.values())
    text = _MUX.sub(lambda found: str(muxes[found["out"]]), rtlil)
    text = _HEAD.sub(lambda found: found[0] + wires, text)
    head, end, tail = text.rpartition("end\n")
    return "".join((head, *gates.text, end, tail))


def _merged(mux: _Mux, muxes: dict[str, _Mux], gates: _Gates) -> bool:
    """Take one of another's conditions into ``mux``, and return whether there was one to take."""
    for inner, same, when in (
        (muxes.get(mux.chosen), mux.otherwise, lambda: mux.select),
        (muxes.get(mux.otherwise), mux.chosen, lambda: gates.none_of(mux.select)),
    ):
        if inner is None or same not in (inner.otherwise, inner.chosen):
            continue
        if same == inner.otherwise:
            value, condition = inner.chosen, inner.select
        else:
            value, condition = inner.otherwise, gates.none_of(inner.select)
        mux.otherwise, mux.chosen, mux.select = same, value, gates.all_of(when(), condition)
        return True
    return False
