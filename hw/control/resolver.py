"""Adds parameters of a job to the fields of the instruction at hand."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.data import ArrayLayout
from amaranth.lib.wiring import In, Out

from hw.contract.formats import PARAMETERS
from hw.contract.isa import FORMATS, INSN_BITS, Op
from hw.contract.slots import WRAPPING, slots_of
from hw.control.decode import field_bits, slot_values

#: Each format's slots, an operation of it, and the opcodes of all.
_WITH_SLOTS = tuple(
    (slots, op, [int(other) for other in Op if FORMATS[other] is FORMATS[op]])
    for op in (Op.LD2, Op.VEC)
    if (slots := slots_of(FORMATS[op]))
)
_MOST = max(slots.count for slots, _, _ in _WITH_SLOTS)


class Resolver(wiring.Component):
    """Resolves one slot after the other of ``insn``, two cycles each: the field and the parameter, then their sum,
    which takes the field's place in the instruction itself.

    Members
    -------
    load, group, words : In
        Two parameters, ``group`` times two and the next, come from a descriptor.
    insn : In(512)
        Takes ``resolved`` with each ``write``, and holds still otherwise from ``clear`` to the next.
    clear : In(1)
        Nothing of ``insn`` is resolved yet.
    step : In(1)
        Go on for a cycle.
    left : Out(1)
        A slot is in use that is not resolved; in the cycle of a ``step``: one is left after it.
    write : Out(1)
        A sum is there in this cycle.
    resolved : Out(512)
        ``insn`` with that sum in its field. The slots are as they were.
    overflow : Out(1)
        A field could not hold its sum.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "load": In(1),
                "group": In(range(PARAMETERS // 2)),
                "words": In(64),
                "insn": In(INSN_BITS),
                "clear": In(1),
                "step": In(1),
                "left": Out(1),
                "write": Out(1),
                "resolved": Out(INSN_BITS),
                "overflow": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        parameters = Signal(ArrayLayout(32, PARAMETERS))
        with m.If(self.load):
            for number in range(PARAMETERS):
                with m.If(self.group == number // 2):
                    m.d.sync += parameters[number].eq(self.words.word_select(number % 2, 32))

        done, adding = Signal(range(_MOST + 1)), Signal()
        field, parameter = Signal(32), Signal(32)
        total = Signal(33)
        chosen, width_exceeded = Signal(32), Signal()
        which = Signal(range(PARAMETERS))
        behind = Signal(range(_MOST + 2))
        m.d.comb += [
            total.eq(field + parameter),
            self.resolved.eq(self.insn),
            self.write.eq(self.step & adding),
            behind.eq(done + self.write),
        ]
        for format_slots, op, opcodes in _WITH_SLOTS:
            slots, named = slot_values(self.insn, format_slots), format_slots.fields
            with m.Switch(self.insn[:8]):
                with m.Case(*opcodes):
                    left = (slot.used & (behind <= number) for number, slot in enumerate(slots))
                    m.d.comb += self.left.eq(Cat(left).any())
                    selected = Signal(format_slots.selector_bits, name=f"{op.name.lower()}_selected")
                    with m.Switch(done):
                        for number, slot in enumerate(slots):
                            with m.Case(number):
                                m.d.comb += [which.eq(slot.parameter), selected.eq(slot.selector)]
                    with m.Switch(selected):
                        for selector, name in enumerate(named, 1):
                            with m.Case(selector):
                                value = field_bits(self.insn, op, name)
                                m.d.comb += [chosen.eq(value), field_bits(self.resolved, op, name).eq(total)]
                                if name not in WRAPPING:
                                    m.d.comb += width_exceeded.eq(total[len(value) :].any())
        with m.If(self.clear):
            m.d.sync += [done.eq(0), adding.eq(0), self.overflow.eq(0)]
        with m.Elif(self.write):
            m.d.sync += [adding.eq(0), done.eq(done + 1)]
            with m.If(width_exceeded):
                m.d.sync += self.overflow.eq(1)
        with m.Elif(self.step):
            m.d.sync += [adding.eq(1), field.eq(chosen), parameter.eq(parameters[which])]
        return m
