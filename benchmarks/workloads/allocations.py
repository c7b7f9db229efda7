"""Static allocations in the form of MiniMalloc's benchmark: buffers with a life and a size, to be packed low.

Its instances (Moffitt, ASPLOS 2023) are lists of ``id, lower, upper, size`` for a capacity of 1,048,576 bytes, lives
and sizes in KiB. Those that were looked at (154, 170 and 454 buffers) look like dissections of a square, full in the
steps that were added up: stacks of long and thin buffers, and short and thick ones that follow each other. These are
made the same way from seeds. So the most bytes alive at a time are a bound, which for dissections is reached.
"""

import random
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

CAPACITY = 1 << 20  #: bytes; lives are counted up to it as well
GRAIN = 1024  #: of sizes and lives
_SIDE = CAPACITY // GRAIN


class Allocation(NamedTuple):
    """Is a buffer that lives from ``lower`` up to, not with, ``upper``, and has ``size`` bytes."""

    lower: int
    upper: int
    size: int


def dissected(seed: int, buffers: int, loss: float = 0.0) -> list[Allocation]:
    """Return a dissection of the square by lives and bytes into about as many ``buffers``, cut in turn into parts of
    the life and of the bytes. Of each, up to twice the part ``loss`` of its bytes is taken away."""
    rng, found = random.Random(seed), list[Allocation]()

    def cut(at: int, life: int, size: int, count: int, *, by_life: bool) -> None:
        whole = life if by_life else size
        parts = min(rng.randint(2, 4 if by_life else 8), count, whole)
        if count == 1 or life * size == 1:
            left = max(1, round(size * (1 - rng.random() * 2 * loss)))
            found.append(Allocation(at * GRAIN, (at + life) * GRAIN, left * GRAIN))
        elif parts == 1:
            cut(at, life, size, count, by_life=not by_life)
        elif by_life:
            for length in _lengths(rng, whole, parts):
                cut(at, length, size, max(1, round(count * length / whole)), by_life=False)
                at += length
        else:
            lengths = _lengths(rng, whole, parts)
            cut_further = rng.sample(range(parts), rng.randint(1, parts))
            bytes_of_these, rest = sum(lengths[part] for part in cut_further), count - parts + len(cut_further)
            for part, length in enumerate(lengths):
                inside = max(1, round(rest * length / bytes_of_these)) if part in cut_further else 1
                cut(at, life, length, inside, by_life=True)

    cut(0, _SIDE, _SIDE, buffers, by_life=False)
    rng.shuffle(found)
    return found


def chained(seed: int, buffers: int) -> list[Allocation]:
    """Return the results of so many layers in a row: most are read by the next, some later, a few much later."""
    rng, found = random.Random(seed), list[Allocation]()
    for layer in range(buffers):
        after = 1 if rng.random() < 0.6 else rng.randint(2, 8) if rng.random() < 0.8 else rng.randint(8, buffers // 2)
        size = 2 ** rng.randint(0, 5) * rng.randint(2, 7)
        found.append(Allocation(layer * GRAIN, (min(layer + after, buffers) + 1) * GRAIN, size * GRAIN))
    return found


def scattered(seed: int, buffers: int) -> list[Allocation]:
    """Return buffers that begin anywhere, with lives and sizes most of which are short and small."""
    rng, found = random.Random(seed), list[Allocation]()
    for _ in range(buffers):
        lower = rng.randrange(_SIDE - 24)
        upper = min(_SIDE, lower + 1 + int(rng.expovariate(1 / 60)))
        found.append(Allocation(lower * GRAIN, upper * GRAIN, (1 + int(rng.expovariate(1 / 40))) * GRAIN))
    return found


def instances() -> dict[str, list[Allocation]]:
    """Return the instances by name, family and number."""
    made: dict[str, list[Allocation]] = {}
    for number, buffers in enumerate((110, 110, 110, 130, 160, 240, 320, 360), 1):
        made[f"dissected_{number}"] = dissected(number, buffers)
    for number, buffers in enumerate((110, 160, 240, 360), 1):
        made[f"loose_{number}"] = dissected(number, buffers, loss=0.01)
    for number, buffers in enumerate((100, 100, 400, 400), 1):
        made[f"chained_{number}"] = chained(number, buffers)
    for number, buffers in enumerate((170, 170, 450, 450), 1):
        made[f"scattered_{number}"] = scattered(number, buffers)
    return made


def load(buffers: Iterable[Allocation]) -> int:
    """Return the most bytes alive at a time, which no packing is below."""
    changes = sorted(change for one in buffers for change in ((one.lower, one.size), (one.upper, -one.size)))
    return max(accumulate(size for _, size in changes), default=0)


def height(buffers: Sequence[Allocation], offsets: Sequence[int]) -> int:
    """Return the bytes that a packing takes. Raises ValueError if two that live at a time share bytes, or one lies
    below the first."""
    placed = list(zip(offsets, buffers, strict=True))
    moments = sorted({one.lower for one in buffers})
    for moment in moments:
        alive = sorted((at, at + one.size) for at, one in placed if one.lower <= moment < one.upper)
        if alive[0][0] < 0 or any(below[1] > above[0] for below, above in pairwise(alive)):
            raise ValueError(f"buffers share bytes at {moment}")
    return max((at + one.size for at, one in placed), default=0)


def _lengths(rng: random.Random, whole: int, parts: int) -> list[int]:
    cuts = sorted(rng.sample(range(1, whole), parts - 1))
    return [to - at for at, to in pairwise([0, *cuts, whole])]
