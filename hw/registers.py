"""Connects a register file with the logic that owns the registers."""

from amaranth.hdl import unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.contract.regs import Access, Reg


def word_layout(reg: Reg):
    """Return the layout of one register: the fields that the table names, up to the highest, or a word if it names
    none."""
    if not reg.bits:
        return unsigned(32)
    end = max(bits.low + bits.width for bits in reg.bits)
    return data.FlexibleLayout(end, {bits.name: data.Field(bits.width, bits.low) for bits in reg.bits})


class RegisterElement(wiring.Signature):
    """Connects one register, seen from the register file.

    ``r_data`` is what a read returns. Writable registers have ``w_stb``, a pulse with ``w_data``. A register that
    reading changes may use ``r_stb``, a pulse in the cycle in which ``r_data`` was taken. Both words have the fields
    that the table names.
    """

    def __init__(self, reg: Reg) -> None:
        members = {"r_data": In(word_layout(reg)), "r_stb": Out(1)}
        if reg.access != Access.RO:
            members |= {"w_data": Out(word_layout(reg)), "w_stb": Out(1)}
        super().__init__(members)


class RegisterArray(wiring.Signature):
    """Connects ``count`` consecutive registers, seen from the register file.

    ``read`` or ``write`` is held with a stable ``index`` (and ``w_data``) until ``ack``, with which a read takes
    ``r_data``.
    """

    def __init__(self, reg: Reg) -> None:
        index_bits = (reg.count - 1).bit_length()
        members = {"index": Out(index_bits), "r_data": In(32), "read": Out(1), "ack": In(1)}
        if reg.access != Access.RO:
            members |= {"w_data": Out(32), "write": Out(1)}
        super().__init__(members)


class Registers(wiring.Signature):
    """Has a member per register of a table, by its name in lower case."""

    def __init__(self, regs: tuple[Reg, ...]) -> None:
        super().__init__(
            {reg.name.lower(): Out(RegisterElement(reg) if reg.count == 1 else RegisterArray(reg)) for reg in regs}
        )
