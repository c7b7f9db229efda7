"""Computes the records of rows: what the lanes have of a window becomes a number and a factor."""

from collections.abc import Callable, Sequence

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.contract.isa import RECORD_BYTES, VecOp
from hw.contract.row_function import ARGUMENT_BITS
from hw.data_register import data_register
from hw.vec import row_function
from hw.vec.row_function import RowFunction


def delayed(m: Module, en: Value, value: Value, cycles: int, name: str) -> Signal:
    """Return ``value`` as it was ``cycles`` (at least 1) cycles with ``en`` ago, as an unsigned number."""
    stages = [data_register(len(value), name=f"{name}_ago{k + 1}") for k in range(cycles)]
    with m.If(en):
        m.d.sync += [later.eq(here) for here, later in zip([value, *stages], stages, strict=False)]
    return stages[-1]


_ARGUMENT = 3  #: enabled cycles from the sums of a row to the argument of its function
_HALF = 16  #: bits of an int32 that one product takes


def latency(lanes: int) -> int:
    """Return the enabled cycles from the totals of ``lanes`` lanes to their record."""
    return (lanes - 1).bit_length() + _ARGUMENT + row_function.LATENCY


class Records(wiring.Component):
    """Reduces over all lanes, a level of a tree per cycle, and computes the factor of each row.

    The pipeline moves when ``en`` is high. ``totals`` and ``squares`` are those of the lanes, 32 bits each; ``number``,
    that of the row's record for LOOKUP, comes with them. With ``plain`` the sum of a row counts as 0. ``record``
    belongs to those of :func:`latency` enabled cycles ago. ``op``, ``ma``, ``exponent``, ``bias`` and ``plain`` must
    hold while rows are under way.
    """

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        super().__init__(
            {
                "en": In(1), "op": In(3), "ma": In(signed(23)), "exponent": In(signed(7)), "bias": In(32),
                "plain": In(1),
                "totals": In(32 * lanes), "squares": In(32 * lanes), "number": In(32), "record": Out(8 * RECORD_BYTES),
            }
        )  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        m.submodules.function = function = RowFunction()
        largest = self.op == VecOp.MAX
        totals, squares = (
            [of.word_select(k, 32).as_signed() for k in range(self._lanes)] for of in (self.totals, self.squares)
        )
        summed = self._reduced(m, totals, lambda a, b: Mux(largest, Mux(a > b, a, b), a + b), "total")
        total = Mux(self.plain, 0, summed).as_signed()
        square = self._reduced(m, squares, lambda a, b: a + b, "square").as_unsigned()

        levels = (self._lanes - 1).bit_length()
        given = delayed(m, self.en, self.number, levels, "given")
        number = Signal(32)
        m.d.comb += number.eq(Mux(self.op == VecOp.LOOKUP, given, total))
        kept = delayed(m, self.en, number, _ARGUMENT + row_function.LATENCY, "number")
        argument = self._argument(m, total, square)
        m.d.comb += [
            function.en.eq(self.en),
            function.value.eq(argument),
            function.root.eq(self.op == VecOp.MOMENTS),
            function.exponent.eq(self.exponent),
            self.record.eq(Cat(kept, Mux(largest, 0, function.factor))),
        ]
        return m

    def _argument(self, m: Module, total: Value, square: Value) -> Signal:
        """Return the argument of the row function: the total as uint32, or for MOMENTS what follows from both sums."""
        ma = self.ma
        low, high = total[:_HALF], total[_HALF:].as_signed()
        # 1: products of halves. 2: put them together. 3: subtract.
        ll, lh, hh = Signal(2 * _HALF), Signal(signed(2 * _HALF + 1)), Signal(_HALF)
        ma_low, ma_high = Signal(signed(len(ma) + _HALF)), Signal(signed(len(ma) + _HALF))
        scaled, squared = Signal(ARGUMENT_BITS), Signal(ARGUMENT_BITS)
        plain = delayed(m, self.en, total, _ARGUMENT - 1, "plain")
        argument = Signal(ARGUMENT_BITS)
        with m.If(self.en):
            m.d.sync += [
                ll.eq(low * low), lh.eq(low * high), hh.eq(high * high),
                ma_low.eq(ma * square[:_HALF]), ma_high.eq(ma * square[_HALF:]),
                scaled.eq(ma_low + (ma_high << _HALF) + self.bias),
                squared.eq(ll + (lh << _HALF + 1) + (hh << 2 * _HALF)),
                argument.eq(Mux(self.op == VecOp.MOMENTS, scaled - squared, plain)),
            ]  # fmt: skip
        return argument

    def _reduced(self, m: Module, values: Sequence[Value], join: Callable[[Value, Value], Value], name: str) -> Value:
        while len(values) > 1:
            level = [Signal(signed(32), name=f"{name}{len(values) // 2}_{k}") for k in range(len(values) // 2)]
            with m.If(self.en):
                m.d.sync += [one.eq(join(*values[2 * k : 2 * k + 2])) for k, one in enumerate(level)]
            values = level
        return values[0]
