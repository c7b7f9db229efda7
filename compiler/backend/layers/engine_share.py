"""Splitting a layer over engines."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True)
class EngineShare:
    """Part ``index`` of ``count`` nearly equal, contiguous parts of a list of tiles."""

    index: int = 0
    count: int = 1

    def of(self, items: Iterable[Item]) -> list[Item]:
        """Return the items of this part; may be empty."""
        whole = list(items)
        low, high = (len(whole) * i // self.count for i in (self.index, self.index + 1))
        return whole[low:high]

    def owner(self, item: int, items: int) -> int:
        """Return the part that item number ``item`` of ``items`` is in."""
        return next(i for i in range(self.count) if item < items * (i + 1) // self.count)


def imbalance(items: int, parts: int) -> float:
    """Return how much longer the largest of ``parts`` parts of ``items`` equal items is than a perfect part."""
    return -(-items // parts) * parts / items
