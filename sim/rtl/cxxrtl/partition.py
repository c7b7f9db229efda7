"""Reads what CXXRTL writes: cuts its one huge ``eval()`` into many small functions in several files, and finds
registers under the names that Amaranth gave them.

A C++ compiler's time grows faster than a function does, and one function keeps one core busy: cut up, a netlist that
took four minutes is compiled in seconds. Statements keep their order; local variables that several parts need become
members.
"""

import re
from dataclasses import dataclass
from itertools import pairwise

STATEMENTS_PER_PART = 400  #: lines of statements in one function

_EVAL = "bool p_sim__top::eval(performer *performer) {\n"
_STRUCT_END = "}; // struct p_sim__top\n"
_NAMESPACE_END = "} // namespace cxxrtl_design\n"
_LOCAL = re.compile(r"\t(value<\d+>) (\w+);$")
_NAME = re.compile(r"\b[pi]_\w+")
_MARKED = re.compile(r"\blocal_([pi]_\w+)")
_FRAME = ("bool converged", "bool posedge_p_clk", "return converged")
#: CXXRTL compares every register before it copies it; copying alone makes the whole simulation 1.6 times as fast.
_COMMIT = re.compile(r"if \(([pi]_\w+)\.commit\(observer\)\) changed = true;")


class PartitionError(ValueError):
    """Says that the C++ is not what CXXRTL is known to write, and what was expected."""


@dataclass(frozen=True)
class Partition:
    """Holds the files of a design: ``header`` declares it, each of ``parts`` is a file of parts, ``main`` calls them
    all; ``debug`` is what follows: large with debug information, and no need to be fast."""

    header: str
    main: str
    debug: str
    parts: list[str]


def partition(source: str, files: int) -> Partition:
    """Cut ``source``, the output of ``write_cxxrtl``, into ``files`` files of parts. Raises :class:`PartitionError`."""
    source = _COMMIT.sub(r"\1.curr = \1.next;", source)
    head, found, rest = source.partition(_EVAL)
    body, ended, tail = rest.partition("\n}\n")
    struct, has_struct, implementation = head.partition(_STRUCT_END)
    if not (found and ended and has_struct):
        raise PartitionError("expected the members of struct p_sim__top, then its eval() function")
    local, statements = _statements(body.split("\n"))
    parts = _group(_rename(statements, local))
    users = _users(local, parts)

    members = "".join(f"\t{kind} local_{name};\n" for name, kind in local.items() if len(users[name]) > 1)
    declarations = "".join(f"\tvoid part{k}(bool posedge_p_clk);\n" for k in range(len(parts)))
    calls = "".join(f"\tpart{k}(posedge_p_clk);\n" for k in range(len(parts)))
    functions = [_function(k, part, local, users) for k, part in enumerate(parts)]
    header = f"#pragma once\n{struct}{members}{declarations}{_STRUCT_END}{_NAMESPACE_END}"
    evaluate = f"{_EVAL}\tbool posedge_p_clk = this->posedge_p_clk();\n{calls}\treturn true;\n}}\n"
    main = implementation + evaluate
    bounds = [i * len(functions) // files for i in range(files + 1)]
    texts = ["".join(functions[a:b]) for a, b in pairwise(bounds)]
    return Partition(header, _file(main), _file(tail.replace(_NAMESPACE_END, "")), [_file(text) for text in texts])


def _file(text: str) -> str:
    return f'#include "netlist.h"\nnamespace cxxrtl_design {{\n{text}{_NAMESPACE_END}'


def _statements(lines: list[str]) -> tuple[dict[str, str], list[list[str]]]:
    """Return the types of local variables by name, and the top-level statements, each as its lines."""
    local: dict[str, str] = {}
    statements: list[list[str]] = []
    statement: list[str] = []
    depth = 0
    for line in lines:
        text = line.strip()
        if not text or text.startswith("//"):
            continue
        if not statement:
            declaration = _LOCAL.match(line)
            if declaration:
                local[declaration[2]] = declaration[1]
                continue
            if text.startswith(_FRAME):
                continue
        statement.append(line)
        depth += line.count("{") - line.count("}")
        if depth == 0 and text.endswith((";", "}")):
            statements.append(statement)
            statement = []
    if statement:
        raise PartitionError(f"expected the statement to end: {statement[0].strip()[:80]}")
    return local, statements


def _rename(statements: list[list[str]], local: dict[str, str]) -> list[list[str]]:
    """Mark local variables: with debug information there are members of the same names."""

    def marked(name: re.Match) -> str:
        return f"local_{name[0]}" if name[0] in local else name[0]

    return [[_NAME.sub(marked, line) for line in statement] for statement in statements]


def _group(statements: list[list[str]]) -> list[list[str]]:
    """Return consecutive statements in groups of about ``STATEMENTS_PER_PART`` lines."""
    parts: list[list[str]] = [[]]
    for statement in statements:
        if len(parts[-1]) >= STATEMENTS_PER_PART:
            parts.append([])
        parts[-1].extend(statement)
    return parts


def _users(local: dict[str, str], parts: list[list[str]]) -> dict[str, set[int]]:
    """Return for each local variable the parts that name it."""
    users: dict[str, set[int]] = {name: set() for name in local}
    for k, part in enumerate(parts):
        for name in set(_MARKED.findall("\n".join(part))):
            users[name].add(k)
    return users


def _function(k: int, part: list[str], local: dict[str, str], users: dict[str, set[int]]) -> str:
    own = "".join(f"\t{kind} local_{name};\n" for name, kind in local.items() if users[name] == {k})
    body = "\n".join(part)
    return f"void p_sim__top::part{k}(bool posedge_p_clk) {{\n{own}{body}\n}}\n"


#: In a flattened netlist all wires that are left are registers: the rest are plain values.
_REGISTER = re.compile(r"^\twire<(\d+)> ([pi]_\w+)", re.MULTILINE)
_ESCAPE = re.compile(r"_(?:([0-9a-f]{2})_|_)")


def demangled(member: str) -> str:
    """Return the hierarchical name behind a member's: ``p_host_2e_rsp__valid`` stands for ``host.rsp_valid``."""
    kind, mangled = member[:2], member[2:]
    name = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)) if escape[1] else "_", mangled)
    return name if kind == "p_" else f"${name}"


def register_table(header: str) -> str:
    """Return C++ with the functions ``caesura_register_names`` and ``caesura_registers`` for the design that
    ``header``, the header of a :class:`sim.rtl.cxxrtl.partition.Partition`, declares."""
    registers = [(int(bits), member) for bits, member in _REGISTER.findall(header)]
    if not registers:
        raise PartitionError("expected registers as wire<N> members of struct p_sim__top")
    names = "".join(f"  {_quoted(f'{bits} {demangled(member)}')}\n" for bits, member in registers)
    rows = "".join(f"  {{offsetof(Top, {member}), {bits}}},\n" for bits, member in registers)
    return _TEMPLATE.replace("ROWS", rows).replace("NAMES", names)


def _quoted(line: str) -> str:
    escaped = line.replace("\\", "\\\\")
    return f'"{escaped}\\n"'


_TEMPLATE = """\
#include <cstddef>
#include "netlist.h"

namespace {
using Top = cxxrtl_design::p_sim__top;

// A wire begins with its current value, whose chunks have 32 bits.
const struct { uint32_t offset, bits; } table[] = {
ROWS};
}

extern "C" const char *caesura_register_names(void) {
  return
NAMES  ;
}

extern "C" void caesura_registers(void *handle, uint64_t *out) {
  for (const auto &row : table) {
    const auto *chunks = reinterpret_cast<const uint32_t *>(static_cast<const char *>(handle) + row.offset);
    const uint32_t last = (row.bits + 31) / 32;
    for (uint32_t i = 0; i < last; i += 2) *out++ = chunks[i] | (i + 1 < last ? uint64_t(chunks[i + 1]) << 32 : 0);
  }
}
"""
