"""Reads and writes assembler text: one instruction a line, fields by name, derived from the formats of ``isa``."""

import re

from hw.contract.isa import ENUMERATED, FORMATS, INSN_BYTES, MASKS, Insn, IsaError, Op
from hw.contract.slots import Added

_ADDED = re.compile(r"(\w+)\+P(\d)")


def assemble(text: str) -> list[Insn]:
    """Return the instructions in assembler text: each line is ``MNEMONIC field=value ...``, ``#`` begins a comment.

    Masks are comma-separated bit numbers (``wait=3,5``); enumerated fields also take their names
    (``mode=DEPTHWISE``), and ``field+P3`` adds parameter 3 of the job. Raises :class:`IsaError` with the line number.
    """
    program = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        try:
            program.append(_assemble_line(words))
        except IsaError as error:
            raise IsaError(f"line {number}: {error}") from None
    return program


def _assemble_line(words: list[str]) -> Insn:
    try:
        op = Op[words[0].upper()]
    except KeyError:
        raise IsaError(f"no instruction {words[0]!r}; known are {', '.join(o.name for o in Op)}") from None
    known = {f.name: f for f in FORMATS[op] if f.name != "opcode"}
    values: dict[str, int] = {}
    given: set[str] = set()
    added = []
    for word in words[1:]:
        addition = _ADDED.fullmatch(word)
        if addition:
            added.append(Added(addition[1], int(addition[2])))
            continue
        name, equals, text = word.partition("=")
        if not equals or name not in known:
            raise IsaError(f"{op.name} has no field {name!r}; known are {', '.join(known)}")
        if name in given:
            raise IsaError(f"{op.name}.{name} is given twice")
        given.add(name)
        names = ENUMERATED.get((op.name, name))
        try:
            if names and text.upper() in names.__members__:
                value = int(names[text.upper()])
            elif name in MASKS:
                value = sum({1 << int(bit) for bit in text.split(",")})
            else:
                value = int(text, 0)
        except ValueError:
            raise IsaError(f"{op.name}.{name} takes a number, not {text!r}") from None
        if value != known[name].default:
            values[name] = value
    insn = Insn(op, values, tuple(added))
    insn.encode()
    return insn


def disassemble(code: bytes) -> str:
    """Return encoded instructions as assembler text, one line each, with the PC as a comment."""
    if len(code) % INSN_BYTES:
        raise IsaError(f"code length {len(code)} is not a multiple of {INSN_BYTES}")
    lines = []
    for pc in range(len(code) // INSN_BYTES):
        raw = code[pc * INSN_BYTES : (pc + 1) * INSN_BYTES]
        try:
            lines.append(f"{Insn.decode(raw)}  # {pc}")
        except IsaError as error:
            lines.append(f"# {pc}: {error}")
    return "\n".join(lines) + "\n"
