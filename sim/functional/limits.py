"""Checks and notes every access to the memories, and finds the byte that a copy faults on: the first one beyond a
limit, as the hardware meets them, run by run."""

import numpy as np
import numpy.typing as npt

from hw.contract.job import Fault, FaultUnit
from hw.contract.params import SocParams
from hw.contract.spaces import Space
from sim.functional.state import FunctionalFault, MemoryAccess
from sim.functional.strided import Box

ADDRESS_SPACE = 1 << 32


class CheckedMemories:
    """Checks accesses of all units; ``accesses`` is what the latest instruction touched."""

    def __init__(self, params: SocParams) -> None:
        self.params = params
        self.accesses: list[MemoryAccess] = []
        self._pc = 0
        self._unit: int = FaultUnit.EXECUTOR
        self._only_checks = False  # nothing is written

    def _fault(self, code: Fault, addr: int, why: str) -> FunctionalFault:
        return FunctionalFault(code, self._pc, addr % ADDRESS_SPACE, self._unit, why)

    def _touch(self, space: Space, box: Box, write: bool, limit: int, base: int = 0) -> Box:
        """Check ``box``, whose offsets are relative to ``base``, against ``limit``; note it as an access."""
        low, high = box.bounds()
        if low < 0 or high > limit:
            bad = low if low < 0 else max(limit, low)
            raise self._fault(Fault.LIMIT, bad, f"{space} {low} to {high}, limit {limit}")
        moved = Box(box.offset + base, box.shape, box.strides)
        if low < high:  # not empty
            self.accesses.append(MemoryAccess(space, moved, write))
        return moved

    def _view(self, memory: npt.NDArray, space: Space, box: Box, write: bool, base: int = 0, limit: int | None = None):
        """Return a view of ``box`` in ``memory`` after the limit check."""
        limit = memory.size - base if limit is None else limit
        return self._touch(space, box, write, limit, base).view(memory)


_LOOPS = ("2", "1", "0")


def source_start(f: dict[str, int]) -> int:
    """Return the offset of the source where all counts are zero, as a number without a modulus.

    Offsets count modulo 2^32. The first byte that is read lies in the first 4 GiB then, and from one run that is read
    to the next there is one stride, too little to get around them: only the way to the first may do so, under padding.
    """
    ahead = f["lo1"] * f["src_s1"] + f["lo0"] * f["src_s0"] + f["lo"]
    return (f["src"] + ahead) % (1 << 32) - ahead


def wholly_within(f: dict[str, int], src_limit: int, dst_limit: int) -> bool:
    """Return whether the box around all runs of a copy, clipped or not, stays within both limits. False proves
    nothing."""
    src = source_start(f)
    for at, side, limit in ((src, "src", src_limit), (f["dst"], "dst", dst_limit)):
        low, high = at, at + f["len"]
        for loop in _LOOPS:
            reach = (f[f"n{loop}"] - 1) * f[f"{side}_s{loop}"]
            if reach < 0:
                low += reach
            else:
                high += reach
        if low < 0 or high > limit:
            return False
    return True


def first_beyond(fields: dict[str, int], src_limit: int, dst_limit: int) -> int | None:
    """Return the offset (modulo 2^32) of the first byte at or beyond its limit, or None.

    Runs count in loop order; within a run the source, of which only bytes that are read matter, comes before the
    destination. ``fields`` are those of a copy instruction. The loops are not walked: at each level the reach of what
    lies inside tells whether it holds such a byte, which finds the first index in one step.
    """
    f = fields
    first, end = f["lo"], min(f["hi"], f["len"])
    reads = {"2": (0, f["n2"]), "1": (f["lo1"], min(f["hi1"], f["n1"])), "0": (f["lo0"], min(f["hi0"], f["n0"]))}
    src = source_start(f)
    some_read = first < end
    src, dst = src + first, f["dst"]
    for level, loop in enumerate(_LOOPS):
        inner, index = _LOOPS[level + 1 :], np.arange(f[f"n{loop}"], dtype=np.int64)
        read = (index >= reads[loop][0]) & (index < reads[loop][1]) & some_read
        low, high = _reach(f, "src", inner, reads, end - first)
        at = src + index * f[f"src_s{loop}"]
        bad = read & ((at + low < 0) | (at + high > src_limit)) & all(reads[i][0] < reads[i][1] for i in inner)
        low, high = _reach(f, "dst", inner, {i: (0, f[f"n{i}"]) for i in inner}, f["len"])
        at = dst + index * f[f"dst_s{loop}"]
        bad |= (at + low < 0) | (at + high > dst_limit)
        if not bad.any():
            return None
        i = int(bad.argmax())
        some_read = bool(read[i])
        src, dst = src + i * f[f"src_s{loop}"], dst + i * f[f"dst_s{loop}"]
    for here, size, limit, counts in ((src, end - first, src_limit, some_read), (dst, f["len"], dst_limit, True)):
        if counts and (here < 0 or here + size > limit):
            return (here if here < 0 else max(here, limit)) % (1 << 32)
    return None


def _reach(f: dict[str, int], side: str, loops: tuple[str, ...], ranges: dict, size: int) -> tuple[int, int]:
    """Return the lowest offset and end of what ``loops`` touch, relative to where all their counts are zero."""
    low, high = 0, size
    for loop in loops:
        stride, (first, end) = f[f"{side}_s{loop}"], ranges[loop]
        ends = (first * stride, (end - 1) * stride)
        low, high = low + min(ends), high + max(ends)
    return low, high
