"""Instructions that the encoder refuses, as bytes."""

from benchmarks.trust.words import raw_word
from hw.contract.isa import DESTINATION_SEGMENTS, SEGMENTS, SOURCE_SEGMENTS, Insn, Op

COPIES = sorted({*SOURCE_SEGMENTS, *DESTINATION_SEGMENTS})  #: that name segments
#: (operation, field, value) of every segment that a copy must not name.
WRONG_SEGMENTS = [
    (op, name, number)
    for name, allowed in (("src_seg", SOURCE_SEGMENTS), ("dst_seg", DESTINATION_SEGMENTS))
    for op in allowed
    for number in range(SEGMENTS)
    if number not in allowed[op]
]


def raw(op: Op, /, **fields: int) -> bytes:
    """An instruction with any bits in its fields, legal or not."""
    return raw_word(op, fields)


def with_field(insn: Insn, name: str, value: int) -> bytes:
    """``insn``, which is legal, with any bits in a field."""
    return raw(insn.op, **insn.fields | {name: value})


def legal_copy(op: Op, **fields: int) -> Insn:
    """A copy of one byte between segments that it may name."""
    ends = {"src_seg": SOURCE_SEGMENTS.get(op), "dst_seg": DESTINATION_SEGMENTS.get(op)}
    segments = {name: int(allowed[-1]) for name, allowed in ends.items() if allowed}
    return Insn(op, {"len": 1, "hi": 1, "hi1": 1, "hi0": 1} | segments | fields)


def legal(op: Op) -> Insn:
    """A legal instruction of any operation."""
    return legal_copy(op) if op in COPIES else Insn(op)
