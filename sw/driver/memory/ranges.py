"""Computes with sets of bytes, which are sorted lists of disjoint half-open ranges."""

from collections.abc import Iterable

Range = tuple[int, int]  #: first byte and end


def normalise(ranges: Iterable[Range]) -> list[Range]:
    """Return the same bytes as sorted, disjoint, non-empty ranges; ranges that touch are merged."""
    result: list[Range] = []
    for start, end in sorted(r for r in ranges if r[0] < r[1]):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return result


def intersect(a: Iterable[Range], b: Iterable[Range]) -> list[Range]:
    """Return the bytes that are in both sets."""
    others = normalise(b)
    return normalise((max(s, x), min(e, y)) for s, e in a for x, y in others)


def subtract(a: Iterable[Range], b: Iterable[Range]) -> list[Range]:
    """Return the bytes of ``a`` that are not in ``b``."""
    holes = normalise(b)
    result = []
    for first, end in normalise(a):
        start = first
        for low, high in holes:
            if high > start and low < end:
                result.append((start, low))
                start = max(start, high)
        result.append((start, end))
    return normalise(result)


def size(ranges: Iterable[Range]) -> int:
    """Return how many bytes are in the set."""
    return sum(end - start for start, end in normalise(ranges))


def overlap(a: Iterable[Range], b: Iterable[Range]) -> bool:
    """Return whether any byte is in both sets."""
    others = list(b)
    return any(s < y and x < e for s, e in a for x, y in others)
