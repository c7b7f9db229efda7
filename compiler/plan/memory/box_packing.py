"""Packing of boxes of buffers: what lives at the same time is stacked, and what follows it takes its bytes.

Moments are vertices, and a buffer is an edge from the moment at which it begins to the one at which it has ended. Edges
between the same two moments become one, with all their bytes, and two of which the second begins where the first ends
become one with the bytes of the larger (the reduction of series-parallel graphs; Valdes, Tarjan, Lawler, 1982). Where
lives nest, few boxes are left, and the search has few to place. Bytes are lost where two that follow each other differ.
"""

from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from compiler.plan.memory.first_fit import Integers
from compiler.plan.memory.packing_search import canonical_packing

#: Parts of the larger of two that follow each other by which the other may be smaller, tried in turn.
_LOSSES = (0.0, 0.01, 0.04)


@dataclass(frozen=True)
class BufferBox:
    """Is a box that lives from step ``first`` up to, not with, ``past``, and may lie from ``base`` on: ``size`` bytes,
    and the numbers of its buffers with their offsets in it."""

    first: int
    past: int
    size: int
    base: int
    inside: tuple[tuple[int, int], ...]

    def under(self, other: "BufferBox") -> "BufferBox":
        """Return both as one, ``other`` of the same life on top."""
        inside = (*self.inside, *((number, self.size + at) for number, at in other.inside))
        return BufferBox(self.first, self.past, self.size + other.size, max(self.base, other.base - self.size), inside)

    def then(self, other: "BufferBox") -> "BufferBox":
        """Return both as one, ``other`` after this one in the same bytes."""
        size, base = max(self.size, other.size), max(self.base, other.base)
        return BufferBox(self.first, other.past, size, base, (*self.inside, *other.inside))


class _Reduction:
    """Makes boxes of boxes, those first that lose the least part of their bytes, none that loses more than ``loss``."""

    def __init__(self, loss: float) -> None:
        self._loss = loss
        self.boxes: dict[tuple[int, int], BufferBox] = {}  #: by first and past
        self._begin: dict[int, set[int]] = {}  # by moment: where those that begin there end
        self._end: dict[int, set[int]] = {}  # and where those that end there begin
        self._pairs: list[tuple[float, int, int, int, int, int, int]] = []  # sizes tell whether boxes are still these

    def add(self, box: BufferBox) -> None:
        """Add a box, below or above what has its life."""
        key = (box.first, box.past)
        here = self.boxes[key] = self.boxes[key].under(box) if key in self.boxes else box
        self._begin.setdefault(here.first, set()).add(here.past)
        self._end.setdefault(here.past, set()).add(here.first)
        for past in self._begin.get(here.past, ()):
            self._pair(here, self.boxes[here.past, past])
        for first in self._end.get(here.first, ()):
            self._pair(self.boxes[first, here.first], here)

    def _pair(self, one: BufferBox, other: BufferBox) -> None:
        lost = abs(one.size - other.size) / max(one.size, other.size, 1)
        if lost <= self._loss:
            life = other.past - one.first
            heappush(self._pairs, (lost, life, one.first, one.past, other.past, one.size, other.size))

    def _take(self, first: int, past: int) -> BufferBox:
        self._begin[first].discard(past)
        self._end[past].discard(first)
        return self.boxes.pop((first, past))

    def reduce(self) -> list[BufferBox]:
        """Return what is left when no two can be joined."""
        while self._pairs:
            _, _, first, middle, past, *sizes = heappop(self._pairs)
            both = [self.boxes.get((first, middle)), self.boxes.get((middle, past))]
            if [one.size if one else None for one in both] == sizes:
                self.add(self._take(first, middle).then(self._take(middle, past)))
        return [self.boxes[key] for key in sorted(self.boxes)]


def boxes(lives: Integers, sizes: Integers, bases: Integers, loss: float) -> list[BufferBox]:
    """Return boxes of all buffers: see :func:`boxed_packing`; ``loss``: the part of the larger of two that follow each
    other by which the other may be smaller."""
    reduction = _Reduction(loss)
    for number, ((first, last), size, base) in enumerate(
        zip(lives.tolist(), sizes.tolist(), bases.tolist(), strict=True)
    ):
        reduction.add(BufferBox(first, last + 1, size, base, ((number, 0),)))
    return reduction.reduce()


def boxed_packing(lives: Integers, sizes: Integers, bases: Integers, limit: int, nodes: int) -> Integers | None:
    """Return offsets as :func:`canonical_packing` does, found for boxes; None if it finds none, or boxes are not
    fewer than half of the buffers."""
    tried = (len(sizes) + 1) // 2
    for loss in _LOSSES:
        made = boxes(lives, sizes, bases, loss)
        if len(made) >= tried:
            continue
        tried = len(made)
        spans = np.array([(one.first, one.past - 1) for one in made], np.int64)
        heights, lowest = (np.array(one, np.int64) for one in zip(*((box.size, box.base) for box in made), strict=True))
        found = canonical_packing(spans, heights, lowest, limit, nodes)
        if found is not None:
            offsets = np.zeros(len(sizes), np.int64)
            for box, at in zip(made, found.tolist(), strict=True):
                for number, above in box.inside:
                    offsets[number] = at + above
            return offsets
    return None
