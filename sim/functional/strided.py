"""Defines strided boxes over linear memories, the one shape in which every instruction touches memory.

A box is the set of elements ``offset + sum(i[d] * strides[d])`` for ``0 <= i[d] < shape[d]``. Views are made with
bounds already known, so they never leave the array they are made from.
"""

from dataclasses import dataclass

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


@dataclass(frozen=True)
class Box:
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
        if self.empty:
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
