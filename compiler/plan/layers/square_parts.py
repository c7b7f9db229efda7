"""Sums of squares of a row without its sum, from an instruction that subtracts the square of the sum.

Every 8-bit value less its zero point, ``s``, is replaced by a few bytes whose sum is :data:`PARTS_SUM` whatever ``s``
is, and whose squares add up to ``2 * s**2 + PARTS_SQUARE``. So the sum over a row says only how long the row is. Up to
127 these are ``s, -s, 1, 1``. No byte holds the opposite of -128, and a zero point moves the range: beyond 127 other
numbers are found, four up to 142, then six, then ten.
"""

import functools
import math

import numpy as np
import numpy.typing as npt

PARTS_SUM = 2  #: of the parts of any value
PARTS_SQUARE = 2  #: of the parts of zero
_BYTES = np.arange(-128, 128)
_WHOLE = 127  #: up to here a value and its opposite are bytes
_LARGEST = {4: 142, 6: 209, 10: 255}  #: magnitude of a value by the number of its parts


def square_parts(zero_point: int, dtype: str) -> npt.NDArray[np.int8]:
    """Return (parts, 256) bytes: by stored value, as an unsigned byte, the parts of that less ``zero_point``."""
    values = np.abs(np.arange(256, dtype=np.uint8).view(dtype).astype(np.int64) - zero_point)
    count = next(count for count, most in _LARGEST.items() if values.max() <= most)
    return np.array([_parts(int(value), count) for value in values], np.int8).T.copy()


@functools.cache
def _parts(value: int, count: int) -> list[int]:
    """Return ``count`` bytes for a magnitude: four that are looked for, and pairs of a number and its opposite."""
    pairs, wanted = (count - 4) // 2, 2 * value**2 + PARTS_SQUARE
    if value <= _WHOLE:
        return [value, -value, 1, 1, *[0, 0] * pairs]
    near = math.isqrt(2 * value**2 // count) if pairs else 0
    for apart in (near + sign * off for off in range(_WHOLE) for sign in (1, -1)):
        found = _four(wanted - 2 * pairs * apart**2) if 0 <= apart <= _WHOLE else None
        if found is not None:
            return [*found, *[apart, -apart] * pairs]
    raise AssertionError(f"{value} has no {count} parts")


def _four(squares: int) -> list[int] | None:
    """Return four bytes with the sum :data:`PARTS_SUM` and this sum of squares; None if there are none."""
    a, b = np.meshgrid(_BYTES, _BYTES, indexing="ij")
    rest = PARTS_SUM - a - b
    square = 2 * (squares - a * a - b * b) - rest * rest  # of the difference of the other two
    apart = np.rint(np.sqrt(np.maximum(square, 0))).astype(np.int64)
    c, d = (rest + apart) // 2, (rest - apart) // 2
    fits = (apart * apart == square) & ((rest + apart) % 2 == 0) & (c <= _BYTES[-1]) & (d >= _BYTES[0])
    if not fits.any():
        return None
    at = np.unravel_index(fits.argmax(), fits.shape)
    return [int(part[at]) for part in (a, b, c, d)]
