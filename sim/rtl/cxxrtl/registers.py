"""Reads the registers of a CXXRTL netlist, under the names that Amaranth gave them."""

import re

from sim.rtl.cxxrtl.partition import PartitionError

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
