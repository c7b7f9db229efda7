"""Defines one vector lane: operands, arithmetic, window reduction, requantisation, table."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.block_ram import NO_COLLISION
from hw.contract.isa import WIDE_TABLE_BYTES, VecOp
from hw.contract.timing import TABLE_ROW_BYTES
from hw.vec.requantise import LATENCY as REQUANTISE_LATENCY, RESULT, Requantise

TABLE_ROWS = WIDE_TABLE_BYTES // TABLE_ROW_BYTES  #: in the memory of a lane
PARAM_LATENCY = 3  #: enabled cycles from operands to their total, and to the moment bias and scale are needed
LATENCY = PARAM_LATENCY + REQUANTISE_LATENCY + 1  #: enabled cycles from operands to result

_MARKS = ("valid", "first", "counts")  #: of an operand

#: What all lanes share while an instruction runs: flags of the instruction and scalars of the parameter block.
SETTINGS = data.StructLayout(
    {
        "op": 3, "src_acc": 1, "b_en": 1, "a_signed": 1, "b_signed": 1, "table": 1, "row": 1,
        "zp_a": signed(16), "zp_b": signed(16), "ma": signed(23), "mb": signed(23),
        "zp_y": signed(16), "lo": signed(RESULT), "hi": signed(RESULT),
    }
)  # fmt: skip


class Lane(wiring.Component):
    """Computes one byte per window; see ``VEC_FORMAT`` in ``hw.contract.isa``.

    Everything moves when ``en`` is high; ``valid`` says whether there is an operand, ``first`` marks the first one of
    a window; one without ``counts`` lies behind the end of a row. ``addend`` is the accumulator, or
    minus the number of a record. The ``total`` of a window, and that of its ``squares``, are there ``PARAM_LATENCY``
    enabled cycles after its last operand, when ``bias`` and ``scale`` are needed; byte ``plane`` of the result, or its
    entry in the table, is ``y`` in cycle ``LATENCY``. ``table_*`` fill the lane's table, a row per cycle.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "en": In(1), "settings": In(SETTINGS), "valid": In(1), "first": In(1), "counts": In(1),
                "a": In(8), "b": In(8), "addend": In(signed(32)), "bias": In(signed(32)), "scale": In(32),
                "total": Out(signed(32)), "squares": Out(32), "plane": In(2), "y": Out(8),
                "table_write": In(1), "table_addr": In(range(TABLE_ROWS)), "table_data": In(8 * TABLE_ROW_BYTES),
            }
        )  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        use = self.settings
        m.submodules.requantise = requantise = Requantise()
        m.submodules.table = table = Memory(shape=8 * TABLE_ROW_BYTES, depth=TABLE_ROWS, init=[], attrs=NO_COLLISION)
        write, read = table.write_port(), table.read_port()
        m.d.comb += [
            write.addr.eq(self.table_addr),
            write.data.eq(self.table_data),
            write.en.eq(self.table_write),
        ]

        a1, b1, addend1 = Signal(signed(10)), Signal(signed(10)), Signal(signed(32))
        valid1, first1, counts1, valid2, first2, counts2 = (Signal(name=f"{n}{k}") for k in (1, 2) for n in _MARKS)
        factor1, index1 = Signal(signed(23)), Signal(8)
        product2, other2 = Signal(signed(32)), Signal(signed(32))
        a2, half2, summand2 = Signal(signed(10)), Signal(), Signal(signed(32))
        total3, squares3 = self.total, self.squares
        wide, lin, mul = Signal(), Signal(), Signal()
        augend2, addend2 = Signal(signed(32)), Signal(signed(32))
        a, b = Signal(signed(9)), Signal(signed(9))
        m.d.comb += [
            wide.eq(use.op == VecOp.WIDE),
            a.eq(Mux(use.a_signed & (self.first | ~wide), self.a.as_signed(), self.a)),
            b.eq(Mux(use.b_signed, self.b.as_signed(), self.b)),
            factor1.eq(Mux(use.op == VecOp.MUL, b1, Mux(use.op == VecOp.MOMENTS, a1, use.ma))),
            index1.eq(-addend1 - a1),
            summand2.eq(Mux(use.op == VecOp.LOOKUP, read.data.word_select(half2, 32).as_signed(), a2)),
        ]
        with m.If(self.en):
            # 1: subtract zero points. 2: multiply, or look up. 3: add, or reduce the window.
            m.d.sync += [a1.eq(a - Mux(wide, 0, use.zp_a)), b1.eq(b - use.zp_b), addend1.eq(self.addend)]
            m.d.sync += [valid1.eq(self.valid), first1.eq(self.first), counts1.eq(self.counts)]
            m.d.sync += [valid2.eq(valid1), first2.eq(first1), counts2.eq(counts1)]
            m.d.sync += [
                product2.eq(a1 * factor1),
                other2.eq(Mux(use.src_acc | use.row, addend1, Mux(use.b_en, b1 * use.mb, 0))),
                a2.eq(a1),
                half2.eq(index1[0]),
            ]
            # All operations but the maximum are one addition.
            before = Mux(wide, total3 << 8, total3)
            m.d.comb += [
                lin.eq(use.op == VecOp.LIN),
                mul.eq(use.op == VecOp.MUL),
                augend2.eq(Mux(lin | mul, Mux(lin & use.src_acc, 0, product2), Mux(first2, 0, before))),
                addend2.eq(Mux(lin, other2, Mux(counts2 & ~mul, summand2, 0))),
            ]
            with m.If(valid2):
                with m.If(use.op != VecOp.MAX):
                    m.d.sync += total3.eq(augend2 + addend2)
                with m.Elif(first2):
                    m.d.sync += total3.eq(Mux(counts2, a2, -(1 << 31)))
                with m.Elif(counts2 & (a2 > total3)):
                    m.d.sync += total3.eq(a2)
                with m.If(use.op == VecOp.MOMENTS):
                    m.d.sync += squares3.eq(Mux(first2, 0, squares3) + Mux(counts2, product2, 0))

        straight = Signal(RESULT)
        m.d.comb += [
            requantise.en.eq(self.en),
            requantise.s.eq(total3),
            requantise.bias.eq(self.bias),
            requantise.scale.eq(self.scale),
            requantise.zp_y.eq(use.zp_y),
            requantise.lo.eq(use.lo),
            requantise.hi.eq(use.hi),
            read.addr.eq(Mux(use.op == VecOp.LOOKUP, index1[1:], requantise.y[3:8])),
            read.en.eq(self.en),
            self.y.eq(Mux(use.table, read.data.word_select(straight[:3], 8), straight.word_select(self.plane, 8))),
        ]
        with m.If(self.en):
            m.d.sync += straight.eq(requantise.y)
        return m
