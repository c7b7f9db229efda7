"""Packing of buffers below a limit by a beam search, which follows the few best packings of so many buffers at once.

The next buffer comes where the ends of those placed have a hollow: in the step with the most bytes alive of all
hollows, on its ground, or, once, higher, if the ground there is left to nobody. Packings of the same number of buffers
are compared by the bytes that nobody can use any more, for one that is placed; of those that have placed the same the
best is left. Moves are made in C (``packing_beam.c``).
"""

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from compiler.plan.memory.first_fit import Integers
from compiler.plan.memory.packing_search import beginnings
from sim.c_library import c_library

_WIDTH = 4  #: packings that are followed


def beam_packing(lives: Integers, sizes: Integers, bases: Integers, limit: int, nodes: int) -> Integers | None:
    """Return offsets as :func:`canonical_packing` does, or None if ``nodes`` moves find none, or one has no bytes."""
    if not sizes.all():
        return None
    if not len(sizes):
        return sizes.copy()
    begins, first, past = beginnings(lives)
    lengths = np.diff(begins, append=lives[:, 1].max() + 1)
    load = np.zeros(len(begins) + 1, np.int64)
    np.add.at(load, first, sizes)
    np.subtract.at(load, past, sizes)
    given = [np.ascontiguousarray(one, np.int64) for one in (first, past, sizes, bases, lengths, load.cumsum())]
    offsets = np.zeros(len(sizes), np.int64)
    numbers = [ctypes.c_int64(one) for one in (len(sizes), len(begins), limit, _WIDTH, nodes)]
    pointers = [ctypes.c_void_p(one.ctypes.data) for one in (*given, offsets)]
    return offsets if _library().caesura_beam(*numbers, *pointers) else None


@cache
def _library() -> Any:
    return c_library(Path(__file__).with_suffix(".c"), standard=True)
