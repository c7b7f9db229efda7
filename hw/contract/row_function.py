"""Defines the factor in the record of a row: a reciprocal, or that of a square root, of an integer of up to 48 bits.

Both are a look-up and a parabola, as units for special functions compute them (Oberman and Siu, "A high-performance
area-efficient multifunction interpolator", ARITH 2005). The integer is ``2**e * x`` with x in [1, 2). The upper bits of
the fraction of x choose one of 128 intervals, the 16 bits below them, ``d``, the place in it::

    y = c0 - c1 * d + c2 * d**2             y in (1/2, 1]

with c0, c1, c2 from a ROM. 1/v is ``y * 2**-e``. For ``1/sqrt(v)`` one ROM serves even e, another odd e, and the result
is ``y * 2**-(e >> 1)``. Hardware and functional model do the same in integers, so their factors are equal bit for bit;
they differ from the true values by less than 2**-22 of them.
"""

import functools

import numpy as np
import numpy.typing as npt

ARGUMENT_BITS = 48  #: of the integer
INTERVAL_BITS = 7  #: of the fraction that choose an interval
PLACE_BITS = 16  #: of the fraction that tell the place in it
VALUE_BITS = 26  #: of y behind the point
EXPONENTS = range(-64, 64)  #: powers of two by which a factor may be scaled
C0_BITS, C1_BITS, C2_BITS = 27, 19, 12  #: of the columns of a ROM, in units of 2**-26

RECIPROCAL, ROOT_EVEN, ROOT_ODD = range(3)  #: the ROMs


@functools.cache
def coefficients(rom: int) -> npt.NDArray[np.int64]:
    """Return the (128, 3) numbers c0, c1, c2 of a ROM: the parabola through three points of each interval, the outer of
    which lie where Chebyshev's polynomial puts them."""
    intervals = 1 << INTERVAL_BITS
    nodes = (1 - np.cos((2 * np.arange(3) + 1) * np.pi / 6)) / 2  # in [0, 1] of an interval
    x = 1 + (np.arange(intervals)[:, None] + nodes) / intervals
    y = {RECIPROCAL: 1 / x, ROOT_EVEN: 1 / np.sqrt(x), ROOT_ODD: 1 / np.sqrt(2 * x)}[rom]
    powers = np.linalg.solve(np.vander(nodes, 3, increasing=True), y.T).T
    found = np.rint(powers * [1, -1, 1] * (1 << VALUE_BITS)).astype(np.int64)
    found[0, 0] = 1 << VALUE_BITS if rom != ROOT_ODD else found[0, 0]  # powers of two have exact factors
    return found


def row_factor(value: npt.NDArray[np.int64], root: bool, exponent: int) -> npt.NDArray[np.float32]:
    """Return ``2**exponent / value``, or with ``root`` ``2**exponent / sqrt(value)``; it is 0 where ``value``, taken as
    an unsigned integer of 48 bits, is 0."""
    value = np.asarray(value, np.int64) & ((1 << ARGUMENT_BITS) - 1)
    zero = value == 0
    places = np.frexp(np.where(zero, 1, value).astype(np.float64))[1] - 1  # 48 bits are exact in float64
    fraction_bits = INTERVAL_BITS + PLACE_BITS
    shift = places - fraction_bits
    fraction = np.where(shift > 0, value >> np.maximum(shift, 0), value << np.maximum(-shift, 0))
    fraction &= (1 << fraction_bits) - 1
    interval, d = fraction >> PLACE_BITS, fraction & ((1 << PLACE_BITS) - 1)
    if root:
        odd = (places & 1).astype(bool)[..., None]
        c = np.where(odd, coefficients(ROOT_ODD)[interval], coefficients(ROOT_EVEN)[interval])
        down = places >> 1
    else:
        c, down = coefficients(RECIPROCAL)[interval], places
    square = d * d >> PLACE_BITS
    y = ((c[..., 0] << PLACE_BITS) - c[..., 1] * d + c[..., 2] * square) >> PLACE_BITS
    one = y >> VALUE_BITS  # y is at most 1
    power = 126 + one + exponent - down
    mantissa = np.where(one == 1, 0, (y >> (VALUE_BITS - 24)) & ((1 << 23) - 1))
    word = np.where(zero | (power < 1), 0, np.where(power > 254, 0x7F7FFFFF, (power << 23) | mantissa))
    return word.astype(np.uint32).view(np.float32)
