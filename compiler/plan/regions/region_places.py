"""Which engine computes which member of a region: all share it, or one computes it while others compute others.

In a region no engine reads what another makes there. Members that read each other, directly or by others, are a *part*;
whatever one engine computes of a part, it computes all of it. So a part is either shared as a whole or on one engine.
"""

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

_MANY = 81  #: ways of placing parts beyond which only some are looked at


@dataclass(frozen=True, eq=False)
class Ways:
    """Ways to compute the parts of a region. ``chosen``: by part and way, which of the part's own ways is meant: those
    to share it stand first, then one for each engine. ``shared``: by way, whether engines share all parts."""

    chosen: npt.NDArray[np.intp]
    shared: npt.NDArray[np.bool_]


def parts_of(members: int, edges: Collection[tuple[int, int]], idle: Collection[int]) -> list[list[int]]:
    """Return the parts of a region of so many members, each with its members in rising order. ``edges``: members and
    readers of their results. ``idle``: members that nobody computes; one that nobody reads joins nothing and is in no
    part."""
    read = {maker for maker, _ in edges}
    loose = set(idle) - read
    part = list(range(members))
    for maker, reader in edges:
        if reader not in loose:
            low, high = sorted((part[maker], part[reader]))
            part = [low if one == high else one for one in part]
    groups: dict[int, list[int]] = {}
    for member in range(members):
        if member not in loose:
            groups.setdefault(part[member], []).append(member)
    return list(groups.values())


def place_parts(work: Sequence[float], shared: Sequence[int], engines: int) -> Ways:
    """Return the ways to compute parts with so much ``work`` each, no two alike but for the engines' names, those with
    all parts shared first; ``shared``: by part in how many ways engines can share it. All ways if those are few;
    otherwise those that share the largest parts and deal out the others, each to the engine with the least to do."""
    alone = engines if engines > 1 and len(work) > 1 else 0
    if math.prod(count + alone for count in shared) <= _MANY:
        return _all(tuple(shared), alone)
    return _ways(_dealt(work, shared, engines), shared)


@lru_cache(maxsize=1024)
def _all(shared: tuple[int, ...], engines: int) -> Ways:
    found = []
    for chosen in itertools.product(*(range(count + engines) for count in shared)):
        used = list(dict.fromkeys(way - count for way, count in zip(chosen, shared, strict=True) if way >= count))
        if used == list(range(len(used))) and len(used) != 1:  # one engine alone: the others would wait
            found.append(chosen)
    return _ways(found, shared)


def _dealt(work: Sequence[float], shared: Sequence[int], engines: int) -> list[tuple[int, ...]]:
    count, found = len(work), []
    largest = sorted(range(count), key=lambda part: (-work[part], part))
    for number in range(count, -1, -1):
        if number == count - 1 or not all(shared[part] for part in largest[:number]):
            continue
        chosen, held = [0] * count, [0.0] * engines
        for part in largest[number:]:
            engine = min(range(engines), key=lambda engine: (held[engine], engine))
            chosen[part] = shared[part] + engine
            held[engine] += work[part]
        found.append(tuple(chosen))
    return found


def _ways(found: Sequence[tuple[int, ...]], shared: Sequence[int]) -> Ways:
    chosen = np.array(found, np.intp).reshape(len(found), len(shared))
    each: npt.NDArray[np.bool_] = chosen < np.array(shared, np.intp)
    return Ways(np.ascontiguousarray(chosen.T), np.logical_and.reduce(each, axis=1))
