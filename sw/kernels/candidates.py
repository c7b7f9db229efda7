"""Is the second layer of the library: the kernels of one class-1 key, as an array to be searched by class-2 value."""

from bisect import bisect_right
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Generic, TypeVar

from hw.image import ValueRange

Entry = TypeVar("Entry")


class Candidates(Generic[Entry]):
    """Holds entries with the values that they cover; it is immutable. ``exact`` has those of a single value, by it. The
    line of values is cut at ``begins``, where a range begins or has ended, and each piece has its winner among the
    ranges: the one that covers fewest values, so the marker alone comes last; of equally wide ones the first given."""

    __slots__ = ("begins", "entries", "exact", "winners")

    def __init__(self, entries: Sequence[tuple[ValueRange, Entry]]) -> None:
        self.entries = tuple(entries)
        self.exact = {covered.low: entry for covered, entry in reversed(self.entries) if covered.exact}
        self.begins, self.winners = _pieces([each for each in self.entries if not each[0].exact])

    def find(self, value: int) -> Entry | None:
        """Return the entry for ``value``: an exact one, else a range, or None if none covers it."""
        found = self.exact.get(value)
        return self.winners[bisect_right(self.begins, value) - 1] if found is None else found


def _pieces(entries: Sequence[tuple[ValueRange, Entry]]) -> tuple[list[int], list[Entry | None]]:
    """Return where pieces begin, and their winners. The last piece, beyond all entries, has none: so a value below the
    first piece, which is looked up at index -1, has none either."""
    if not entries:
        return [1], [None]
    begins = sorted({end for covered, _ in entries for end in (covered.low, covered.high + 1)})
    order = sorted(range(len(entries)), key=lambda number: entries[number][0].low)
    winners: list[Entry | None] = []
    alive: list[tuple[int, int]] = []  # (values covered, number)
    taken = 0
    for begin in begins:
        while taken < len(order) and entries[order[taken]][0].low <= begin:
            covered = entries[order[taken]][0]
            heappush(alive, (covered.high - covered.low, order[taken]))
            taken += 1
        while alive and entries[alive[0][1]][0].high < begin:
            heappop(alive)
        winners.append(entries[alive[0][1]][1] if alive else None)
    return begins, winners
