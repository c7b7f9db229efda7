"""Defines strided boxes over linear memories, the one shape in which every instruction touches memory, and cuts
instructions in pieces, so that what they do takes no more room than a piece, however much they ask for.

A box is the set of elements ``offset + sum(i[d] * strides[d])`` for ``0 <= i[d] < shape[d]``. Views are made with
bounds already known, so they never leave the array they are made from.
"""

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


def strided(
    memory: npt.NDArray,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: npt.DTypeLike | None = None,
) -> npt.NDArray:
    """Return elements ``offset + sum(i[d] * strides[d])`` of a contiguous memory, as a view; all of them must lie in
    it. ``dtype`` is what its bytes are taken for, of the same size."""
    size = memory.itemsize
    buffer = memory.reshape(-1)
    return np.ndarray(shape, dtype or memory.dtype, buffer, offset * size, [step * size for step in strides])


class Box(NamedTuple):
    """Names elements of a linear memory that nested strided loops reach; strides are in elements, and may be negative
    or zero."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def empty(self) -> bool:
        """Return whether the box has no element at all."""
        return 0 in self.shape

    def bounds(self) -> tuple[int, int]:
        """Return the smallest element index and one past the largest; (0, 0) if the box is empty."""
        if 0 in self.shape:
            return 0, 0
        low = high = self.offset
        for n, s in zip(self.shape, self.strides, strict=True):
            if s < 0:
                low += (n - 1) * s
            else:
                high += (n - 1) * s
        return low, high + 1

    def view(self, memory: npt.NDArray) -> npt.NDArray:
        """Return a view of the box in one-dimensional ``memory``; raises IndexError if the box leaves it."""
        low, high = self.bounds()
        if low < 0 or high > memory.size:
            raise IndexError(f"elements {low} to {high} of a memory of {memory.size}")
        return strided(memory, self.offset if low < high else 0, self.shape, self.strides)

    def indices(self) -> npt.NDArray[np.int64]:
        """Return every element index, in loop order, with the shape of the box."""
        index = np.array(self.offset, dtype=np.int64)
        for n, s in zip(self.shape, self.strides, strict=True):
            index = index[..., None] + np.arange(n, dtype=np.int64) * s
        return index


Piece = tuple[slice, ...]  #: of the outer loops; the inner ones are whole

MOST = 1 << 20  #: elements of a piece


def pieces(loops: Sequence[int], inner: int, most: int = MOST) -> Iterator[Piece]:
    """Yield parts of nested ``loops`` in order. Counts are given outermost first, and each turn takes ``inner``
    elements. Each part has ``most`` elements at most, or is a single turn; there is one part, of no slices, if
    everything fits in it."""
    if not loops or prod(loops) * inner <= most:
        yield ()
        return
    turn = prod(loops[1:]) * inner
    step = max(1, most // turn)
    for begin in range(0, loops[0], step):
        here = slice(begin, min(begin + step, loops[0]))
        for rest in pieces(loops[1:], inner, most) if turn > most else [()]:
            yield (here, *rest)


def whole(piece: Piece, loops: Sequence[int]) -> list[slice]:
    """Return a slice for each of ``loops``."""
    return [*piece, *(slice(0, count) for count in loops[len(piece) :])]


def cut(here: slice, low: int, high: int) -> tuple[slice, slice]:
    """Return the part in ``here`` of what goes from ``low`` to before ``high``, counted from the beginning of ``here``,
    and from ``low``."""
    first, end = max(here.start, low), max(min(here.stop, high), max(here.start, low))
    return slice(first - here.start, end - here.start), slice(first - low, end - low)
