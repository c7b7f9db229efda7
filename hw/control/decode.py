"""Decodes instructions: which unit an instruction is for, and whether it is legal."""

from collections.abc import Iterable
from itertools import pairwise

from amaranth.hdl import Cat, Module, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.contract.formats import ParameterSlots, format_bits
from hw.contract.isa import DESTINATION_SEGMENTS, FORMATS, INSN_BITS, SOURCE_SEGMENTS, UNIT_OF, Op, Unit
from hw.contract.params import SocParams
from hw.contract.slots import slots_of

MASKS = ("wait", "signal")


def field_bits(insn: Value, op: Op, name: str) -> Value:
    """Return the bits of one field of ``op`` in an instruction word."""
    low = 0
    for f in FORMATS[op]:
        if f.name == name:
            return insn[low : low + f.width]
        low += f.width
    raise KeyError(f"{op.name} has no field {name!r}")


class SlotBits:
    """Is a slot of an instruction word: what names a field, the number of a parameter, and whether it is in use."""

    def __init__(self, bits: Value, selector_bits: int) -> None:
        self.selector, self.parameter = bits[:selector_bits], bits[selector_bits:]
        self.used = self.selector.any()


def slot_values(insn: Value, slots: ParameterSlots) -> list[SlotBits]:
    """Return the slots of an instruction word."""
    first, bits = slots.first, slots.slot_bits
    return [SlotBits(insn[first + k * bits : first + (k + 1) * bits], slots.selector_bits) for k in range(slots.count)]


class Decoder(wiring.Component):
    """Classifies an instruction, combinationally; every check derives from ``hw.contract.isa.FORMATS``.

    Legal means: an opcode of ``ops``, reserved bits zero, counts at least one, segments that the operation may name,
    semaphore masks that name existing semaphores only. With ``semaphores=False`` (prologues) the masks must be empty.
    Slots may name parameters if the job has them; those in use come first and name fields that there are.

    Members
    -------
    insn : In(512)
    parameters : In(1)
        The job has the flag PARAMS.
    unit : Out(7)
        One-hot target unit, zero for END, CANCEL and unknown opcodes.
    end, cancel : Out(1)
    illegal : Out(1)
    """

    def __init__(self, params: SocParams, ops: Iterable[Op] = tuple(Op), *, semaphores: bool = True) -> None:
        self.params, self.ops = params, tuple(ops)
        self.usable = params.semaphores if semaphores else 0
        super().__init__(
            {
                "insn": In(INSN_BITS),
                "parameters": In(1),
                "unit": Out(len(Unit)),
                "end": Out(1),
                "cancel": Out(1),
                "illegal": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        # Checks of a format are shared by the opcodes that have it.
        problems: dict[int, Value] = {}
        m.d.comb += self.illegal.eq(1)
        with m.Switch(self.insn[:8]):
            for op in self.ops:
                with m.Case(int(op)):
                    key = id(FORMATS[op])
                    if key not in problems:
                        problems[key] = self._problem(op)
                    m.d.comb += self.illegal.eq(problems[key] | self._wrong_segment(op))
                    if op in UNIT_OF:
                        m.d.comb += self.unit[UNIT_OF[op]].eq(1)
                    elif op == Op.END:
                        m.d.comb += self.end.eq(1)
                    else:
                        m.d.comb += self.cancel.eq(1)
        return m

    def _problem(self, op: Op) -> Value:
        flaws = self._reserved(op)
        for f in FORMATS[op]:
            bits = field_bits(self.insn, op, f.name)
            if f.name == "opcode":
                continue
            if f.name in MASKS:
                flaws.append(bits[self.usable :].any())
            elif f.low == 1:
                flaws.append(~bits.any())
        return Cat(flaws).any()

    def _reserved(self, op: Op) -> list[Value]:
        used, slots = format_bits(FORMATS[op]), slots_of(FORMATS[op])
        if slots is None:
            return [self.insn[used:].any()]
        named = slot_values(self.insn, slots)
        flaws = [self.insn[used : slots.first].any(), self.insn[slots.end :].any()]
        flaws.append(~self.parameters & self.insn[slots.first : slots.end].any())
        flaws += [slot.selector > len(slots.fields) for slot in named]
        flaws += [~slot.used & slot.parameter.any() for slot in named]
        flaws += [after.used & ~before.used for before, after in pairwise(named)]
        return flaws

    def _wrong_segment(self, op: Op) -> Value:
        flaws = [
            ~Cat(field_bits(self.insn, op, name) == segment for segment in allowed[op]).any()
            for name, allowed in (("src_seg", SOURCE_SEGMENTS), ("dst_seg", DESTINATION_SEGMENTS))
            if op in allowed
        ]
        return Cat(flaws).any()
