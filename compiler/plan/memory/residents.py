"""Which buffers stay in LV2 where not all can, chosen exactly as far as that is possible: those with the most traffic.

Steps come one after the other, so what was chosen before a step matters only by the buffers that are still alive there.
The best choice is found from the first step to the last (dynamic programming): by set of buffers that stay and are
alive, the traffic that is saved. Addresses are found afterwards; they seldom cost anything.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_CHOICES = 1024  #: sets that are followed from one step to the next


@dataclass(frozen=True)
class BufferLife:
    """Is a buffer that may stay: its ``size``, the bytes of ``traffic`` that this saves, and the ``first`` and the
    ``last`` step that use it."""

    size: int
    traffic: int
    first: int
    last: int


class _Choices:
    """Holds choices up to a step: ``alive``, a row of bits with a bit for the slot of each buffer that stays, the bytes
    ``used`` by these, the traffic ``saved``, and by ``node`` what was chosen on the way."""

    def __init__(self, words: int) -> None:
        self.alive = np.zeros((1, words), np.uint64)
        self.used, self.saved, self.node = (np.zeros(1, np.int64) for _ in range(3))

    def keep(self, rows: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> None:
        """Leave all others."""
        self.alive, self.used = self.alive[rows], self.used[rows]
        self.saved, self.node = self.saved[rows], self.node[rows]

    def grow(self, rows: npt.NDArray[np.intp], bits: npt.NDArray[np.uint64], one: BufferLife, first: int) -> None:
        """Add what ``rows`` become if a buffer stays, too, as nodes from ``first`` on; leave the best."""
        self.alive = np.concatenate([self.alive, self.alive[rows] | bits])
        self.used = np.concatenate([self.used, self.used[rows] + one.size])
        self.saved = np.concatenate([self.saved, self.saved[rows] + one.traffic])
        self.node = np.concatenate([self.node, np.arange(first, first + len(rows))])
        if len(self.node) > _CHOICES:
            self.keep(np.lexsort((self.used, -self.saved))[:_CHOICES])

    def end(self, bits: npt.NDArray[np.uint64], size: int) -> None:
        """End the life of a buffer of ``size`` bytes."""
        self.used = self.used - size * (self.alive & bits).any(axis=1)
        self.alive = self.alive & ~bits

    def merge(self) -> None:
        """Leave of choices with the same alive the one that saves most, the first of equals."""
        keys = self.alive[:, 0] if self.alive.shape[1] == 1 else self.alive.view(f"V{8 * self.alive.shape[1]}")[:, 0]
        _, first, group = np.unique(keys, return_index=True, return_inverse=True)
        best = np.lexsort((-self.saved, group))
        best = best[np.flatnonzero(np.diff(group[best], prepend=-1))]
        self.keep(best[np.argsort(first)])


def residents(
    candidates: Sequence[BufferLife], touched: Sequence[Sequence[int]], always: Sequence[bool], area: int, high: int
) -> list[int]:  # fmt: skip
    """Return the numbers of the ``candidates`` that stay in ``high`` bytes, so that the most traffic is saved.
    ``touched``: by step the numbers of those that pass a staging area of ``area`` bytes there if they do not stay;
    ``always``: whether something does anyway."""
    if _all_fit(candidates, always, area, high):
        return list(range(len(candidates)))
    begin: list[list[int]] = [[] for _ in touched]
    end: list[list[int]] = [[] for _ in touched]
    for number, one in enumerate(candidates):
        begin[one.first].append(number)
        end[one.last].append(number)
    bits = _bits(begin, end)
    choices = _Choices(bits.shape[1])
    starts, numbers, befores = [1], [-1], [np.zeros(0, np.int64)]
    for step, begun in enumerate(begin):
        for number in begun:
            one = candidates[number]
            rows = np.flatnonzero(choices.used + one.size <= high)
            befores.append(choices.node[rows])
            numbers.append(number)
            choices.grow(rows, bits[number], one, starts[-1])
            starts.append(starts[-1] + len(rows))
        fits = choices.used <= high - area
        if not always[step]:
            needed = np.bitwise_or.reduce(bits[np.asarray(touched[step], np.intp)], axis=0)
            fits |= ~(needed & ~choices.alive).any(axis=1)
        if fits.any():
            choices.keep(fits)
        else:
            choices = _Choices(bits.shape[1])
        for number in end[step]:
            choices.end(bits[number], candidates[number].size)
        if end[step]:
            choices.merge()
    stay, node = list[int](), int(choices.node[np.argmax(choices.saved)])
    while node:
        block = bisect_right(starts, node)
        stay.append(numbers[block])
        node = int(befores[block][node - starts[block - 1]])
    return sorted(stay)


def _all_fit(candidates: Sequence[BufferLife], always: Sequence[bool], area: int, high: int) -> bool:
    """Return whether all have room in each step, and all save something."""
    used = np.zeros(len(always) + 1, np.int64)
    for one in candidates:
        used[one.first] += one.size
        used[one.last + 1] -= one.size
    room = high - area * np.array(always, np.int64)
    return bool((used.cumsum()[:-1] <= room).all()) and all(one.traffic > 0 for one in candidates)


def _bits(begin: Sequence[Sequence[int]], end: Sequence[Sequence[int]]) -> npt.NDArray[np.uint64]:
    """Return by buffer a bit for a slot that no other has as long as it is alive, in rows of words."""
    free, slots = list[int](), dict[int, int]()
    count = 0
    for begun, ended in zip(begin, end, strict=True):
        for number in begun:
            if not free:
                free, count = [count], count + 1
            slots[number] = free.pop()
        free += [slots[number] for number in ended]
    bits = np.zeros((len(slots), count // 64 + 1), np.uint64)
    for number, slot in slots.items():
        bits[number, slot // 64] = 1 << slot % 64
    return bits
