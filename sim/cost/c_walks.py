"""Compiles the walks of this room that are done in C to one library."""

import ctypes
from array import array
from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

from sim.c_library import c_library

_RESULTS = {
    "list_schedule": ctypes.c_int64,
    "side_by_side": ctypes.c_double,
    "walk": ctypes.c_int64,
}


@cache
def c_walk(name: str) -> Any:
    """Return the function ``caesura_<name>``, which takes pointers. Raises :class:`sim.toolchain.compilers.BuildError`
    if the library cannot be compiled."""
    function = getattr(_library(), f"caesura_{name}")
    function.restype = _RESULTS[name]
    return function


@cache
def _library() -> Any:
    return c_library(*sorted(Path(__file__).parent.glob("*.c")))


def address(numbers: Any) -> int:
    """Return where the numbers of an array lie, until more are added."""
    return numbers.buffer_info()[0]


def integers(count: int) -> "array[int]":
    """Return so many zeros, as C reads integers."""
    return array("q", bytes(8 * count))


def doubles(count: int) -> "array[float]":
    """Return so many zeros, as C reads floating-point numbers."""
    return array("d", bytes(8 * count))


Numbers = TypeVar("Numbers", "array[int]", "array[float]")


def columns(zeros: Callable[[int], Numbers], sizes: Sequence[int]) -> tuple[Numbers, list[int]]:
    """Return columns of so many ``zeros`` each, in one array that has to be kept, and where each lies."""
    space = zeros(sum(sizes))
    return space, [address(space) + 8 * before for before in accumulate(sizes[:-1], initial=0)]
