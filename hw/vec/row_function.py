"""Computes the factor in the record of a row; see ``hw.contract.row_function``, which it equals bit for bit."""

from itertools import pairwise

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.contract.row_function import (
    ARGUMENT_BITS,
    C0_BITS,
    C1_BITS,
    C2_BITS,
    INTERVAL_BITS,
    PLACE_BITS,
    RECIPROCAL,
    ROOT_EVEN,
    ROOT_ODD,
    VALUE_BITS,
    coefficients,
)
from hw.vec.requantise import normalise, steps_below

LATENCY = 5  #: enabled cycles from the integer to its factor

_COEFFICIENTS = data.StructLayout({"c0": C0_BITS, "c1": C1_BITS, "c2": C2_BITS})
_MANTISSA = 23  #: bits of a float32 behind its point
_BIAS = 127  #: of its exponent


class RowFunction(wiring.Component):
    """Computes ``2**exponent / value``, or with ``root`` ``2**exponent / sqrt(value)``, as a float32; 0 for 0.

    The pipeline moves when ``en`` is high; ``factor`` belongs to the ``value`` of ``LATENCY`` enabled cycles ago.
    ``root`` and ``exponent`` must hold while values are under way.
    """

    def __init__(self) -> None:
        super().__init__(
            {"en": In(1), "value": In(ARGUMENT_BITS), "root": In(1), "exponent": In(signed(7)), "factor": Out(32)}
        )

    def elaborate(self, platform):
        m = Module()
        rows = [_row(*row) for rom in (RECIPROCAL, ROOT_EVEN, ROOT_ODD) for row in coefficients(rom).tolist()]
        m.submodules.rom = rom = Memory(shape=_COEFFICIENTS.size, depth=len(rows), init=rows)
        read = rom.read_port()
        c = Signal(_COEFFICIENTS)
        m.d.comb += [read.en.eq(self.en), c.eq(read.data)]

        # 1: shift until the highest bit is set. 2: read the coefficients, square the place in the interval.
        shifted, zeros = normalise(m, self.value, steps_below(ARGUMENT_BITS))
        normal1 = Signal(ARGUMENT_BITS)
        places = [Signal(range(ARGUMENT_BITS), name=f"places{k}") for k in range(1, 5)]
        zero = [Signal(name=f"zero{k}") for k in range(1, 5)]
        top = ARGUMENT_BITS - 1
        place = Signal(PLACE_BITS)
        place2, square2 = Signal(PLACE_BITS), Signal(PLACE_BITS)
        m.d.comb += [
            place.eq(normal1[top - INTERVAL_BITS - PLACE_BITS : top - INTERVAL_BITS]),
            read.addr.eq(
                Cat(
                    normal1[top - INTERVAL_BITS : top],
                    Mux(self.root, Mux(places[0][0], ROOT_ODD, ROOT_EVEN), RECIPROCAL),
                )
            ),
        ]
        # 3: multiply. 4: add. 5: put the float32 together.
        constant3 = Signal(C0_BITS)
        linear3, quadratic3 = Signal(C1_BITS + PLACE_BITS), Signal(C2_BITS + PLACE_BITS)
        y4 = Signal(VALUE_BITS + 1)
        one, power, mantissa = Signal(), Signal(8), Signal(_MANTISSA)
        down = Mux(self.root, places[3] >> 1, places[3])
        m.d.comb += [
            one.eq(y4[VALUE_BITS]),
            power.eq(_BIAS - 1 + one + self.exponent - down),
            mantissa.eq(Mux(one, 0, y4[VALUE_BITS - 1 - _MANTISSA : VALUE_BITS - 1])),
        ]
        with m.If(self.en):
            m.d.sync += [
                normal1.eq(shifted),
                places[0].eq(top - zeros),
                zero[0].eq(~shifted[top]),
                *(later.eq(here) for here, later in pairwise(places)),
                *(later.eq(here) for here, later in pairwise(zero)),
                place2.eq(place),
                square2.eq((place * place) >> PLACE_BITS),
                constant3.eq(c.c0),
                linear3.eq(c.c1 * place2),
                quadratic3.eq(c.c2 * square2),
                y4.eq(((constant3 << PLACE_BITS) - linear3 + quadratic3) >> PLACE_BITS),
                self.factor.eq(Mux(zero[3], 0, Cat(mantissa, power))),
            ]
        return m


def _row(c0: int, c1: int, c2: int) -> int:
    return c0 | c1 << C0_BITS | c2 << C0_BITS + C1_BITS
