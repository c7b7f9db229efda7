"""Instruction words field by field, legal or not."""

import random
from collections.abc import Mapping

from hw.contract.formats import Field, format_bits
from hw.contract.isa import FORMATS, INSN_BITS, INSN_BYTES, Insn, Op, field_place


def raw_word(op: Op, fields: Mapping[str, int]) -> bytes:
    """The word of ``op`` with any values in ``fields``, reduced to the widths of theirs."""
    word, low = 0, 0
    for field in FORMATS[op]:
        value = int(op) if field.name == "opcode" else fields.get(field.name, field.default)
        word |= (value & (1 << field.width) - 1) << low
        low += field.width
    return word.to_bytes(INSN_BYTES, "little")


def with_bits(word: bytes, low: int, width: int, value: int) -> bytes:
    """``word`` with ``value`` in ``width`` bits from ``low``."""
    mask = (1 << width) - 1
    number = int.from_bytes(word, "little") & ~(mask << low) | (value & mask) << low
    return number.to_bytes(INSN_BYTES, "little")


def chained(word: bytes, op: Op, number: int, last: bool) -> bytes:
    """``word`` as number ``number`` of a chain in which each instruction waits for the one before."""
    count = 16
    wait = 0 if number == 0 else 1 << number % count
    signal = 0 if last else 1 << (number + 1) % count
    return with_bits(with_bits(word, *field_place(op, "wait"), wait), *field_place(op, "signal"), signal)


def mutated(rng: random.Random, insn: Insn, spare: tuple[str, ...] = ()) -> bytes:
    """One to three flaws in the word of ``insn``: fields at their ends, near them, or at random; now and then an opcode
    or reserved bits. The fields in ``spare`` stay."""
    word = raw_word(insn.op, insn.fields)
    used = format_bits(FORMATS[insn.op])
    fields = [field for field in FORMATS[insn.op] if field.name not in ("opcode", *spare)]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        what = rng.random()
        if what < 0.03:
            word = with_bits(word, 0, 8, rng.randrange(256))
        elif what < 0.06 or not fields:
            word = with_bits(word, rng.randrange(used, INSN_BITS), 1, 1)
        else:
            field = rng.choice(fields)
            word = with_bits(word, *field_place(insn.op, field.name), _odd(rng, field, insn[field.name]))
    return word


def _odd(rng: random.Random, field: Field, value: int) -> int:
    top = (1 << field.width) - 1
    near = value + rng.choice((-64, -8, -2, -1, 1, 2, 8, 64))
    flipped = value ^ 1 << rng.randrange(field.width)
    return rng.choice((0, 1, top, top >> 1, near, near, flipped, flipped, rng.randrange(top + 1))) & top
