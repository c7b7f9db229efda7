"""Chooses where to put the LV2 windows of a model that is to run while others are suspended."""

from collections.abc import Iterable
from itertools import product

from sw.driver.errors import DriverError
from sw.driver.memory.ranges import Range, intersect, normalise, overlap, size


def choose_windows(
    sizes: tuple[int, int],
    lv2_bytes: int,
    align: int,
    *,
    taken: Iterable[Range] = (),
    dirty: Iterable[Range] = (),
    clean: Iterable[Range] = (),
    prefetched: Iterable[Range] = (),
    current: tuple[int, int] | None = None,
) -> tuple[int, int]:
    """Return the addresses of the LV2 windows (segments 6 and 7) of a model that is to run while others are suspended.

    Least overlap with ``dirty`` bytes comes first (they must be dumped), then with ``clean`` ones (they are loaded
    again), then with ``prefetched`` weights; then staying at ``current``; then low addresses. Never overlaps ``taken``
    (:class:`DriverError` if that is impossible). Addresses are multiples of ``align``; a window of no bytes lies at 0.
    """
    weights = [normalise(r) for r in (dirty, clean, prefetched)]
    blocked = normalise(taken)
    edges = [edge for r in [*weights, blocked] for pair in r for edge in pair]
    options = [_places(n, lv2_bytes, align, edges, sizes, now) for n, now in zip(sizes, current or (0, 0), strict=True)]
    priced = [
        [(at, tuple(size(intersect([(at, at + n)], r)) for r in weights)) for at in places]
        for n, places in (
            (n, [p for p in o if not overlap([(p, p + n)], blocked)]) for n, o in zip(sizes, options, strict=True)
        )
    ]
    best = None
    for (a, cost_a), (b, cost_b) in product(*priced):
        if overlap([(a, a + sizes[0])], [(b, b + sizes[1])]):
            continue
        total = tuple(x + y for x, y in zip(cost_a, cost_b, strict=True))
        key = (total, (a, b) != current, a, b)
        best = key if best is None else min(best, key)
    if best is None:
        raise DriverError(
            f"LV2 has no place for windows of {sizes[0]} and {sizes[1]} bytes beside {size(blocked)} bytes of models "
            "that run: suspend these, too, or wait for them"
        )
    return best[2], best[3]


def _places(
    window: int, lv2_bytes: int, align: int, edges: list[int], sizes: tuple[int, int], current: int
) -> list[int]:
    """Return where a window may sensibly start: at an edge of something, or beside the other window at one."""
    if not window:
        return [0]
    places = {0, lv2_bytes - window, current}
    for edge in {0, lv2_bytes, *edges}:
        for shift in (0, -window, *sizes, -sum(sizes)):
            at = edge + shift
            places |= {at // align * align, -(-at // align) * align}
    return sorted(at for at in places if at % align == 0 and 0 <= at <= lv2_bytes - window)
