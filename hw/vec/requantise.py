"""Requantises in one lane, equal to NumPy float32 bit for bit."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


def normalise(m: Module, value: Signal) -> tuple[Signal, Value]:
    """Return ``value`` shifted left until its highest bit is set, and how many zeros stood before the leading one. For
    a ``value`` of 0 the first is 0, and the second means nothing."""
    width = len(value)
    zeros: list[Signal] = []
    shifted = value
    for step in reversed([1 << k for k in range((width - 1).bit_length())]):
        move = Signal(name=f"move{step}")
        stage = Signal(width, name=f"shift{step}")
        m.d.comb += [
            move.eq(shifted[width - step :] == 0),
            stage.eq(Mux(move, Cat(Const(0, step), shifted[:-step]), shifted)),
        ]
        shifted, zeros = stage, [move, *zeros]
    return shifted, Cat(zeros)


MANTISSA = 24  #: bits of a float32 significand, hidden one included
RESULT = 24  #: bits of the result
LATENCY = 6  #: enabled cycles from operands to result


def _round_half_even(value, drop: int):
    """Return ``value`` without its lowest ``drop`` bits, rounded to nearest, ties to even; it is one bit wider than the
    rest."""
    kept, half, below = value[drop:], value[drop - 1], value[: drop - 1].any()
    return kept + (half & (below | kept[0]))


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
        with m.If(self.en):
            # 1: add the bias.
            total = Signal(signed(32))
            scale1 = Signal(32)
            m.d.sync += [total.eq(self.s + self.bias), scale1.eq(self.scale)]

            # 2: sign and magnitude, shifted until bit 31 is set: a binary search for the leading one.
            magnitude = Signal(32)
            m.d.comb += magnitude.eq(Mux(total[-1], -total, total))
            shifted, leading = normalise(m, magnitude)
            normal2, zeros2, negative2, scale2 = Signal(32), Signal(5), Signal(), Signal(31)
            m.d.sync += [normal2.eq(shifted), zeros2.eq(leading), scale2.eq(scale1)]
            m.d.sync += negative2.eq(total[-1] ^ scale1[31])

            # 3: round to a float32 significand; the exponent of the product so far.
            rounded = Signal(MANTISSA + 1)
            m.d.comb += rounded.eq(_round_half_even(normal2, 8))
            significand3, negative3, zero3 = Signal(MANTISSA), Signal(), Signal()
            factor3, exponent3 = Signal(MANTISSA), Signal(signed(10))
            m.d.sync += [
                significand3.eq(Mux(rounded[MANTISSA], 1 << (MANTISSA - 1), rounded[:MANTISSA])),
                factor3.eq(Cat(scale2[:23], 1)),
                exponent3.eq(scale2[23:31] - 127 + 31 - zeros2 + rounded[MANTISSA]),
                negative3.eq(negative2),
                zero3.eq(~normal2[31] | (scale2[23:31] == 0)),
            ]

            # 4: multiply.
            product4 = Signal(2 * MANTISSA)
            exponent4, negative4, zero4 = Signal(signed(10)), Signal(), Signal()
            m.d.sync += [
                product4.eq(significand3 * factor3),
                exponent4.eq(exponent3), negative4.eq(negative3), zero4.eq(zero3),
            ]  # fmt: skip

            # 5: round to a float32 product.
            high = product4[-1]
            aligned4, rounded4 = Signal(2 * MANTISSA), Signal(MANTISSA + 1)
            m.d.comb += [
                aligned4.eq(Mux(high, product4, Cat(Const(0, 1), product4[:-1]))),
                rounded4.eq(_round_half_even(aligned4, MANTISSA)),
            ]
            significand5, exponent5, negative5 = Signal(MANTISSA), Signal(signed(10)), Signal()
            small5, huge5, exponent = Signal(), Signal(), Signal(signed(10))
            m.d.comb += exponent.eq(exponent4 + high + rounded4[MANTISSA])
            m.d.sync += [
                significand5.eq(Mux(rounded4[MANTISSA], 1 << (MANTISSA - 1), rounded4[:MANTISSA])),
                exponent5.eq(exponent),
                negative5.eq(negative4),
                small5.eq(zero4 | (exponent < -1)),  # below one half
                huge5.eq(exponent > RESULT - 2),  # beyond any result
            ]

            # 6: round to an integer, add the zero point, clamp. The integer has exponent5 + 1 bits.
            places = Signal(5)
            aligned = Signal(MANTISSA + RESULT)
            integer = Signal(RESULT)
            result, clamped = Signal(signed(RESULT + 2)), Signal(signed(RESULT + 2))
            m.d.comb += [
                places.eq(exponent5 + 1),
                aligned.eq(significand5 << places),
                integer.eq(_round_half_even(aligned, MANTISSA)),
            ]
            with m.If(small5):
                m.d.comb += integer.eq(0)
            with m.Elif(huge5):
                m.d.comb += integer.eq(1 << (RESULT - 1))
            m.d.comb += [
                result.eq(Mux(negative5, -integer, integer) + self.zp_y),
                clamped.eq(Mux(result < self.lo, self.lo, Mux(result > self.hi, self.hi, result))),
            ]
            m.d.sync += self.y.eq(clamped)
        return m
