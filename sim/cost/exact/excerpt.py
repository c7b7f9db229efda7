"""Lets an excerpt stand for instructions of more steps than anybody walks through, so that what is worked out of one
instruction has a limit, whatever its counts are."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import prod
from typing import Any, TypeVar

MOST = 1 << 14  #: steps of an instruction that are worked out one by one
_CLIPPED = ("1", "0")  #: loops of a copy of which only a part is read

Item = TypeVar("Item")


def excerpt(f: Mapping[str, int], loops: Sequence[str], most: int) -> tuple[dict[str, int], int, int]:
    """Return the fields of an instruction like that of ``f`` with ``most`` turns of its ``loops`` (names of their
    counts, outermost first) at the most, and how many turns there are in ``f`` and in the excerpt. Outer loops are cut
    first; of one in which a copy reads a part, it goes on reading as large a part. What has no more turns stays as it
    is."""
    whole = prod(f[name] for name in loops)
    if whole <= most:
        return dict(f), whole, whole
    found = dict(f)
    for place, name in enumerate(loops):
        inner = prod(f[other] for other in loops[place + 1 :])
        count = found[name] = max(1, min(f[name], most // inner))
        for side in ("lo", "hi"):
            if name[1:] in _CLIPPED and f"{side}{name[1:]}" in f and count < f[name]:
                found[f"{side}{name[1:]}"] = -(-min(f[f"{side}{name[1:]}"], f[name]) * count // f[name])
    return found, whole, prod(found[name] for name in loops)


class Repeated(Sequence[Item]):
    """Stands for ``count`` items: those of ``part``, over and over."""

    def __init__(self, part: Sequence[Item], count: int) -> None:
        self._part, self._count = part, count if part else 0

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        if not 0 <= index < self._count:
            raise IndexError(index)
        return self._part[index % len(self._part)]

    def __iter__(self) -> Iterator[Item]:
        return islice((item for _ in iter(int, 1) for item in self._part), self._count)
