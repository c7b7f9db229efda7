"""First-fit placement of buffers with lifetimes: two buffers may share bytes if they never live at the same time.

A search for a packing asks for thousands of these, so they are made in C (``first_fit.c``).
"""

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sim.c_library import c_library

Integers = npt.NDArray[np.int64]

NOWHERE = -1  #: the offset of a buffer without a place
ENDLESS = 1 << 62  #: the limit of an address range that has none


def first_fit(
    order: Integers, sizes: Integers, bases: Integers, together: npt.NDArray[np.bool_], limit: int
) -> Integers:  # fmt: skip
    """Return the offset of each buffer: in ``order``, each gets the lowest address from its base on that is free over
    its life, and :data:`NOWHERE` if it would end beyond ``limit``. Buffers that are not in ``order`` have none.

    ``sizes``, of buffers, and ``bases`` are multiples of the alignment; ``together[a, b]``: they live at the same time.
    """
    count = len(sizes)
    given = [np.ascontiguousarray(one, np.int64) for one in (order, sizes, bases)]
    beside: npt.NDArray[np.uint8] = np.ascontiguousarray(together, np.uint8)
    if beside.shape != (count, count) or len(bases) != count:
        raise ValueError(f"{count} sizes, {len(bases)} bases and lives of {beside.shape}")
    offsets, placed = np.full(count, NOWHERE), np.zeros(max(count, 1), np.int64)
    numbers = [ctypes.c_int64(one) for one in (len(order), count, limit)]
    pointers = [*(one.ctypes.data for one in given), beside.ctypes.data, offsets.ctypes.data, placed.ctypes.data]
    _library().caesura_first_fit(*numbers, *map(ctypes.c_void_p, pointers))
    return offsets


def aligned(sizes: Integers, word: int) -> Integers:
    """Return sizes in whole words of ``word`` bytes."""
    return -(-sizes // word) * word


@cache
def _library() -> Any:
    return c_library(Path(__file__).with_suffix(".c"))
