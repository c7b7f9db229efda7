"""Adds the parameters of a job to the fields of instructions that name them.

A body whose operands lie at another place, or are longer, with every inference is one program: its descriptor carries
up to eight numbers, and instructions say to which of their fields each is added. Addresses (as wide as their memories'
largest) wrap around, as bases do; any other sum that its field cannot hold makes the instruction ILLEGAL. What results
is an instruction as any other, which the units check against their limits.
"""

from collections.abc import Sequence
from typing import NamedTuple

from hw.contract.formats import (
    COPY_FORMAT,
    COPY_SLOTS,
    PARAMETER_BITS,
    PARAMETERS,
    VEC_FORMAT,
    VEC_SLOTS,
    Field,
    ParameterSlots,
)

WRAPPING = ("src", "dst", "a", "b", "d", "p")  #: fields that are addresses
_SLOTS = {id(COPY_FORMAT): COPY_SLOTS, id(VEC_FORMAT): VEC_SLOTS}


class SlotError(ValueError):
    """Says why a slot cannot be resolved."""


class Added(NamedTuple):
    """Names a parameter that is added to a field."""

    field: str
    parameter: int

    def __str__(self) -> str:
        return f"{self.field}+P{self.parameter}"


def slots_of(fields: tuple[Field, ...]) -> ParameterSlots | None:
    """Return the slots of a format, None if its instructions name no parameters."""
    return _SLOTS.get(id(fields))


def read_slots(slots: ParameterSlots, word: int) -> tuple[Added, ...]:
    """Return what the slots of an instruction name; raises :class:`SlotError` for a slot that is none."""
    found: list[Added] = []
    for number in range(slots.count):
        slot = word >> slots.first + number * slots.slot_bits & (1 << slots.slot_bits) - 1
        selector, parameter = slot & (1 << slots.selector_bits) - 1, slot >> slots.selector_bits
        if selector > len(slots.fields) or (parameter and not selector):
            raise SlotError(f"parameter slot {number} names no field")
        if selector:
            if len(found) < number:
                raise SlotError(f"parameter slot {number} is in use, but not the one before it")
            found.append(Added(slots.fields[selector - 1], parameter))
    return tuple(found)


def written_slots(slots: ParameterSlots | None, added: Sequence[Added]) -> int:
    """Return the bits of slots that name ``added``; raises :class:`SlotError` where they cannot."""
    if slots is None:
        raise SlotError("it names no parameters")
    if len(added) > slots.count:
        raise SlotError(f"it has {slots.count} parameter slots, not {len(added)}")
    word = 0
    for number, (name, parameter) in enumerate(added):
        if name not in slots.fields:
            raise SlotError(f"no parameter can be added to {name}; those of {', '.join(slots.fields)} can")
        if not 0 <= parameter < PARAMETERS:
            raise SlotError(f"parameters are 0 to {PARAMETERS - 1}, not {parameter}")
        slot = slots.fields.index(name) + 1 | parameter << slots.selector_bits
        word |= slot << slots.first + number * slots.slot_bits
    return word


def sum_in(field: Field, value: int, parameter: int) -> int:
    """Return what ``field`` holds once ``parameter`` was added; raises :class:`SlotError` if it cannot hold it."""
    total = value + parameter
    if field.name in WRAPPING:
        return total & (1 << field.width) - 1
    if total > field.maximum:
        raise SlotError(f"{field.name} is at most {field.maximum}, not {value} + {parameter}")
    return total


assert max(slots.end for slots in _SLOTS.values()) <= 512 and PARAMETER_BITS + 4 <= 8
