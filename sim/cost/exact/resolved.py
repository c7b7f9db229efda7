"""Resolves the parameters of a job in code, as the executor does before dispatch."""

from collections.abc import Sequence

import numpy as np

from hw.contract.isa import FORMATS, INSN_BYTES, Insn, IsaError, Op
from hw.contract.slots import slots_of
from hw.contract.timing import SLOT_RESOLVED

_SLOT_BITS = {
    int(op): np.uint64(((1 << slots.end) - (1 << slots.first)) >> 448)
    for op in Op
    if (slots := slots_of(FORMATS[op]))  # they all lie in the last 64-bit word
}


def resolved(code: bytes, parameters: Sequence[int]) -> tuple[bytes, dict[int, int]]:
    """Return the instructions that a job with ``parameters`` executes in place of those in ``code``, and how many
    cycles those that name some take to become so, by place. One that cannot be resolved becomes illegal."""
    raw = np.frombuffer(code, np.uint8)[: len(code) // INSN_BYTES * INSN_BYTES].reshape(-1, INSN_BYTES)
    last = raw.view("<u8")[:, -1]
    result, cycles = bytearray(code), dict[int, int]()
    for op, bits in _SLOT_BITS.items():
        for place in np.flatnonzero((raw[:, 0] == op) & (last & bits != 0)).tolist():
            where = slice(place * INSN_BYTES, (place + 1) * INSN_BYTES)
            try:
                insn = Insn.decode(code[where])
            except IsaError:
                continue  # it stays as it is, which is illegal
            cycles[place] = SLOT_RESOLVED * len(insn.added)
            try:
                result[where] = insn.resolve(parameters).encode()
            except IsaError:
                result[where] = bytes(INSN_BYTES)
    return bytes(result), cycles
