"""Packing of buffers below a limit by search, where first fit finds none: they are placed from the lowest address up.

Any packing can be pressed down until each buffer lies at the first byte or on another, and built in order of offsets:
so the next buffer lies at its lowest place, not below the last (the canonical solutions of MiniMalloc, Moffitt, ASPLOS
2023). A branch ends where the bytes to come have no room above that in some step, or where another buffer would have
room below. What is left falls apart where no life goes on. Branches are made in C (``packing_search.c``).
"""

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from compiler.plan.memory.first_fit import Integers
from sim.c_library import c_library


def canonical_packing(lives: Integers, sizes: Integers, bases: Integers, limit: int, nodes: int) -> Integers | None:
    """Return offsets below ``limit``, each not below its base, or None if ``nodes`` branches, three times, find none.

    ``lives``, of buffers × 2: the first and the last step of each; ``sizes``, of buffers, and ``bases`` are multiples
    of the alignment."""
    length = lives[:, 1] - lives[:, 0] + 1
    for keys in ((-sizes * length, -length), (-sizes * length,), (-length, -sizes)):
        order = np.lexsort(keys)
        found = _searched(lives[order], sizes[order], bases[order], limit, nodes)
        if found is not None:
            offsets = np.empty_like(found)
            offsets[order] = found
            return offsets
    return None


def beginnings(lives: Integers) -> tuple[Integers, Integers, Integers]:
    """Return the steps in which something begins, and by buffer the number of the first of these in which it lives, and
    of the one up to, not with, which it does. What is alive is most in one of these steps."""
    begins = np.unique(lives[:, 0])
    first = np.searchsorted(begins, lives[:, 0]).astype(np.int64)
    return begins, first, np.searchsorted(begins, lives[:, 1], side="right").astype(np.int64)


def _searched(lives: Integers, sizes: Integers, bases: Integers, limit: int, nodes: int) -> Integers | None:
    """Return offsets of buffers the first of which are tried first."""
    begins, first, past = beginnings(lives)
    left = np.argsort(first, kind="stable").astype(np.int64)
    given = [np.ascontiguousarray(one, np.int64) for one in (first, past, sizes, left)]
    lowest, offsets = np.array(bases, np.int64), np.zeros(len(sizes), np.int64)
    top, rest = np.zeros(len(begins), np.int64), np.zeros(len(begins), np.int64)
    numbers = [ctypes.c_int64(one) for one in (len(sizes), len(begins), limit, nodes)]
    pointers = [ctypes.c_void_p(one.ctypes.data) for one in (*given, lowest, offsets, top, rest)]
    return offsets if _library().caesura_canonical(*numbers, *pointers) else None


@cache
def _library() -> Any:
    return c_library(Path(__file__).with_suffix(".c"), standard=True)
