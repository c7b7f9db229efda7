"""Walks the loops of a VEC instruction: one operand vector per step, addresses by addition only."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.contract.isa import Op
from hw.contract.params import SocParams
from hw.interfaces import struct_layout

LV1_ADDR = 24  #: bits of an LV1 byte address in a VEC instruction


class Walker(wiring.Component):
    """Steps through (i2, i1, i0, j1, j0), innermost last.

    ``start`` loads the first step of ``insn``, which must hold until ``last`` was taken with ``step``. ``a`` and ``b``
    are the operands of the current step, ``d`` the destination of its window, ``group`` is i0 and ``part`` i2;
    ``first`` and ``final`` frame a window, ``last`` is the last step of the instruction. ``a_turns`` and ``b_turns``:
    the operand of the next step lies in another word of LV1; addresses beyond LV1 count by their place in it.
    """

    def __init__(self, params: SocParams) -> None:
        self._word = slice((params.lv1_word - 1).bit_length(), (params.lv1_bytes - 1).bit_length())
        group_bits = (params.vec_groups - 1).bit_length()
        super().__init__(
            {
                "insn": In(struct_layout(Op.VEC)), "start": In(1), "step": In(1),
                "a": Out(LV1_ADDR), "b": Out(LV1_ADDR), "d": Out(LV1_ADDR), "group": Out(group_bits), "part": Out(2),
                "first": Out(1), "final": Out(1), "last": Out(1), "a_turns": Out(1), "b_turns": Out(1),
            }
        )  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        insn = self.insn
        loops = [("j0", insn.k0), ("j1", insn.k1), ("i0", insn.n0), ("i1", insn.n1), ("i2", insn.n2)]
        counts = [Signal.like(limit, name=name) for name, limit in loops]
        #: Which loops are in their last iteration, in registers: the address of the next step depends on it.
        at_end = [Signal(name=f"{name}_at_end") for name, _ in loops]
        highest = [Signal.like(limit, name=f"{name}_highest") for name, limit in loops]
        window_end = Signal()
        m.d.comb += [
            window_end.eq(at_end[0] & at_end[1]),
            self.first.eq((counts[0] == 0) & (counts[1] == 0)),
            self.final.eq(window_end),
            self.last.eq(Cat(at_end).all()),
            self.group.eq(counts[2]),
            self.part.eq(counts[4]),
        ]
        with m.If(self.start):
            for count, end, most, (_, limit) in zip(counts, at_end, highest, loops, strict=True):
                m.d.sync += [count.eq(0), most.eq(limit - 1), end.eq(limit == 1)]
        with m.Elif(self.step):
            carry: Value | int = 1
            for count, end, most in zip(counts, at_end, highest, strict=True):
                following = Signal.like(count, name=f"{count.name}_following")
                m.d.comb += following.eq(Mux(end, 0, count + 1))
                with m.If(carry):
                    m.d.sync += [count.eq(following), end.eq(following == most)]
                carry = carry & end

        a_s0 = Mux(insn.src_acc, 0, insn.a_s0)  # an accumulator row holds every lane group
        window = [insn.a_k0, insn.a_k1]
        a_turns = self._pointer(m, self.a, insn.a, [*window, a_s0, insn.a_s1, insn.a_s2], at_end, self.step)
        moved = self.step & window_end
        b_turns = self._pointer(m, self.b, insn.b, [insn.b_s0, insn.b_s1, insn.b_s2], at_end[2:], moved)
        self._pointer(m, self.d, insn.d, [insn.d_s0, insn.d_s1, insn.d_s2], at_end[2:], moved)
        m.d.comb += [self.a_turns.eq(a_turns), self.b_turns.eq(b_turns & window_end)]
        return m

    def _pointer(self, m: Module, here, first, strides, at_end, step) -> Value:
        """Move ``here`` along the loops with ``strides``, innermost first, by one adder; return whether that leads to
        another word."""
        starts = [here, *(Signal(LV1_ADDR) for _ in strides[1:])]  # where each loop's current iteration began
        base, stride = Signal(LV1_ADDR), Signal(signed(LV1_ADDR))
        carry: Value | int = 1
        for start, amount, end in zip(starts, strides, at_end, strict=True):
            with m.If(carry):
                m.d.comb += [base.eq(start), stride.eq(amount)]
            carry = carry & end
        moved = Signal(LV1_ADDR)
        m.d.comb += moved.eq(base + stride)
        with m.If(self.start):
            m.d.sync += [start.eq(first) for start in starts]
        with m.Elif(step):
            carry = 1
            for start, end in zip(starts, at_end, strict=True):
                with m.If(carry):
                    m.d.sync += start.eq(moved)
                carry = carry & end
        return moved[self._word] != here[self._word]


#: What travels beside the operands: destination and place of a step in its window and instruction.
STEP = data.StructLayout({"valid": 1, "d": LV1_ADDR, "group": 8, "part": 2, "first": 1, "final": 1, "last": 1})
