"""Requantises in one lane, equal to NumPy float32 bit for bit."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


def normalise(m: Module, value: Value, steps: Sequence[int]) -> tuple[Signal, Value]:
    """Return ``value`` shifted left by each of ``steps``, descending powers of two, that it has as many leading zeros
    for, and the sum of those. With all steps below its width its highest bit is set then; for a ``value`` of 0 the
    first is 0, and the second means nothing."""
    width = len(value)
    zeros: list[Signal] = []
    for step in steps:
        move = Signal(name=f"move{step}")
        stage = Signal(width, name=f"shift{step}")
        m.d.comb += [
            move.eq(value[width - step :] == 0),
            stage.eq(Mux(move, Cat(Const(0, step), value[:-step]), value)),
        ]
        value, zeros = stage, [move, *zeros]
    return stage, Cat(zeros)


def steps_below(width: int) -> list[int]:
    """Return the steps that bring the highest bit of any number of ``width`` bits to the top."""
    return [1 << k for k in reversed(range((width - 1).bit_length()))]


MANTISSA = 24  #: bits of a float32 significand, hidden one included
RESULT = 24  #: bits of the result
LATENCY = 6  #: enabled cycles from operands to result


_BLOCK = 18  #: bits of the factors that a multiplier of an FPGA takes
_STRIP = MANTISSA - _BLOCK  #: what is left of a significand


def _rounds_up(value: Value, drop: int) -> Value:
    """Return whether ``value`` without its lowest ``drop`` bits is one more when it is rounded to nearest, ties to
    even."""
    return value[drop - 1] & (value[: drop - 1].any() | value[drop])


class Requantise(wiring.Component):
    """Computes ``clip(rint(float32(s + bias) * scale) + zp_y, lo, hi)`` with float32 steps, all rounded half to even.

    ``scale`` is the bit pattern of a float32; zero and subnormal numbers act as zero. The pipeline moves when
    ``en`` is high; ``y`` belongs to the operands of ``LATENCY`` enabled cycles ago. ``zp_y``, ``lo`` and ``hi`` must
    hold while operands are under way.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "en": In(1), "s": In(signed(32)), "bias": In(signed(32)), "scale": In(32),
                "zp_y": In(signed(16)), "lo": In(signed(RESULT)), "hi": In(signed(RESULT)), "y": Out(signed(RESULT)),
            }
        )  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        first, *others = steps_below(32)

        # What the integer is held against ahead of the zero point. It holds as long as they do.
        room_below, room_above = Signal(signed(RESULT + 1)), Signal(signed(RESULT + 2))
        m.d.sync += [room_below.eq(self.zp_y - self.lo), room_above.eq(self.zp_y - self.hi - 1)]

        with m.If(self.en):
            # 1: add the bias; sign and magnitude; the first step of the search for the leading one.
            total, turned, magnitude = Signal(signed(32)), Signal(32), Signal(32)
            m.d.comb += [
                total.eq(self.s + self.bias),
                turned.eq(total ^ total[-1].replicate(32)),
                magnitude.eq(turned + total[-1]),
            ]
            shifted, leading = normalise(m, magnitude, [first])
            magnitude1, zeros1, negative1, scale1 = Signal(32), Signal(), Signal(), Signal(31)
            m.d.sync += [magnitude1.eq(shifted), zeros1.eq(leading), scale1.eq(self.scale)]
            m.d.sync += negative1.eq(total[-1] ^ self.scale[31])

            # 2: shift until bit 31 is set.
            shifted, leading = normalise(m, magnitude1, others)
            normal2, zeros2, negative2, scale2 = Signal(32), Signal(5), Signal(), Signal(31)
            m.d.sync += [normal2.eq(shifted), zeros2.eq(Cat(leading, zeros1))]
            m.d.sync += [scale2.eq(scale1), negative2.eq(negative1)]

            # 3: multiply what the float32 significand is before it is rounded, in parts of which one fills a
            # multiplier of 18 bits; whether it is rounded up; the exponent of the product so far.
            kept, up = normal2[8:], _rounds_up(normal2, 8)
            factor = Cat(scale2[:23], 1)
            high3, middle3, low3 = Signal(2 * _BLOCK), Signal(MANTISSA), Signal(MANTISSA + _STRIP)
            factor3, exponent3, negative3, zero3 = Signal(MANTISSA), Signal(signed(10)), Signal(), Signal()
            m.d.sync += [
                high3.eq(kept[_STRIP:] * factor[_STRIP:]),
                middle3.eq(kept[_STRIP:] * factor[:_STRIP]),
                low3.eq(kept[:_STRIP] * factor),
                factor3.eq(Mux(up, factor, 0)),
                exponent3.eq(scale2[23:31] - 127 + 31 - zeros2),
                negative3.eq(negative2),
                zero3.eq(~normal2[31] | (scale2[23:31] == 0)),
            ]

            # 4: put the product together. Where rounding made it a power of two, it is that times the factor.
            product4 = Signal(2 * MANTISSA)
            exponent4, negative4, zero4 = Signal(signed(10)), Signal(), Signal()
            m.d.sync += [
                product4.eq((high3 << 2 * _STRIP) + (middle3 << _STRIP) + low3 + factor3),
                exponent4.eq(exponent3), negative4.eq(negative3), zero4.eq(zero3),
            ]  # fmt: skip

            # 5: round to a float32 product, which may be 1 << MANTISSA: its exponent need not know. Shift it by whole
            # bytes towards an integer, which has exponent + 1 bits.
            high = product4[-1]
            aligned4, rounded4 = Signal(2 * MANTISSA), Signal(MANTISSA + 1)
            exponent, places = Signal(signed(10)), Signal(5)
            m.d.comb += [
                aligned4.eq(Mux(high, product4, Cat(Const(0, 1), product4[:-1]))),
                rounded4.eq(aligned4[MANTISSA:] + _rounds_up(aligned4, MANTISSA)),
                exponent.eq(exponent4 + high),
                places.eq(exponent + 1),
            ]
            bytes5, places5, negative5 = Signal(MANTISSA + 1 + 16), Signal(3), Signal()
            small5, huge5 = Signal(), Signal()
            m.d.sync += [
                bytes5.eq(Mux(places[4], rounded4 << 16, Mux(places[3], rounded4 << 8, rounded4))),
                places5.eq(places[:3]),
                negative5.eq(negative4),
                small5.eq(zero4 | (exponent < -1)),  # below one half
                huge5.eq(exponent > RESULT - 2),  # beyond any result
            ]

            # 6: shift by the bits that are left and round. -(k + 1) is ~k, so a sign, the bit that rounds and the zero
            # point take one addition, and those that compare with the limits stand beside it.
            aligned, integer, carry = Signal(MANTISSA + RESULT), Signal(RESULT), Signal()
            m.d.comb += [aligned.eq(bytes5 << places5), integer.eq(aligned[MANTISSA:])]
            m.d.comb += carry.eq(_rounds_up(aligned, MANTISSA) & ~small5 & ~huge5)
            with m.If(small5):
                m.d.comb += integer.eq(0)
            with m.Elif(huge5):
                m.d.comb += integer.eq(1 << (RESULT - 1))
            one = Signal(RESULT + 1)
            m.d.comb += one.eq(Cat(integer, 0) ^ negative5.replicate(RESULT + 1))

            def more(by: Value, name: str) -> Value:
                """Return the result, with ``by`` in place of the zero point."""
                summed = Signal(signed(RESULT + 4), name=name)  # the lowest bit is there for its carry
                m.d.comb += summed.eq(Cat(1, one).as_signed() + Cat(carry ^ negative5, by).as_signed())
                return summed[1:]

            result, below, above = more(self.zp_y, "result"), more(room_below, "below"), more(room_above, "above")
            m.d.sync += self.y.eq(Mux(below[-1], self.lo, Mux(above[-1], result, self.hi)))
        return m
