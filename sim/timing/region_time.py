"""Computes how long the layers of a region take side by side, before anything of it is compiled: a list schedule of few
tiles.

Each layer is cut into equal tiles, more of them if it takes long. A tile is loaded, computed on the arrays, handled by
the vector unit, and stored; each unit takes one tile at a time, and each layer has two buffers ahead of every unit. A
reader loads a tile when the layers that it reads have stored theirs, one more if it sees a window around each pixel.
Layers of one kind use the same buffers one after the other. The real schedule
(``compiler/backend/program/region_order.py``) follows the same rules with the tiles and instructions that there are.

It is the reference of the same in C (:mod:`sim.timing.compiled_region_time`), and stands in for it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hw.contract.timing import GRANT, TO_HEAD, UNIT_START

_FEWEST = 4  #: tiles of a layer
_LONGEST = 1024.0  #: cycles of a tile on a unit, where there are more
#: Of an instruction beside its work: from its dispatch to the first element, and from the last to who waits for it.
AROUND = 2 * UNIT_START + TO_HEAD + GRANT
_LOAD, _ARRAYS, _VECTOR, _STORE = range(4)


@dataclass(frozen=True)
class RegionMember:
    """Is a layer of a region: cycles on LD1, MAC, VEC and ST1, the members that it reads, and how many of their tiles
    it reads beyond its own."""

    busy: tuple[float, float, float, float]
    reads: tuple[int, ...] = ()
    around: int = 0


def tile_count(member: RegionMember) -> int:
    """Return into how many tiles ``member`` is cut."""
    return max(_FEWEST, math.ceil(max(member.busy) / _LONGEST))


def side_by_side_cycles(members: Sequence[RegionMember]) -> float:
    """Return the cycles until the last result of ``members`` is stored; each reads only those ahead of it."""
    tiles = list(map(tile_count, members))
    work = [
        tuple(cycles / count + AROUND if cycles else 0.0 for cycles in member.busy)
        for member, count in zip(members, tiles, strict=True)
    ]
    before = _same_kind(members)
    levels = _levels(members, before, work, tiles)
    ends: list[list[list[float]]] = [[[] for _ in range(4)] for _ in members]
    follow, free = _followers(members, before), [0.0] * 4
    # Of each member and unit (four for a member): work of a tile, its place among others, tiles done, and when the next
    # can begin as far as others are concerned.
    takes = [cycles for units in work for cycles in units]
    rank = [-level for level in levels for _ in range(4)]
    step = [max(units) for units in work for _ in range(4)]
    waiting = list(range(4 * len(members)))
    begins = [_start(members, tiles, ends, before, *divmod(entry, 4)) for entry in waiting]
    while waiting:
        first, least, chosen = math.inf, 0.0, waiting[0]
        for entry in waiting:
            start = begins[entry]
            if start < free[entry & 3] and takes[entry]:
                start = free[entry & 3]
            if start < first or (start == first < math.inf and rank[entry] < least):
                first, least, chosen = start, rank[entry], entry
        number, stage = divmod(chosen, 4)
        end = first + takes[chosen]
        free[stage] = max(free[stage], end)
        ends[number][stage].append(end)
        rank[chosen] = len(ends[number][stage]) * step[chosen] - levels[number]
        if len(ends[number][stage]) == tiles[number]:
            waiting.remove(chosen)
        else:
            begins[chosen] = _start(members, tiles, ends, before, number, stage)
        for entry in follow[chosen]:
            if begins[entry] == math.inf:
                begins[entry] = _start(members, tiles, ends, before, *divmod(entry, 4))
    return max(free)


def _followers(members: Sequence[RegionMember], before: Sequence[int]) -> list[list[int]]:
    """Return for each member and unit, four for a member, those that may be able to begin when it has done a tile."""
    found = []
    for number, member in enumerate(members):
        computes = _ARRAYS if member.busy[_ARRAYS] else _VECTOR
        for stage in range(4):
            beside = [4 * number + other for other in (stage - 1, stage + 1) if _LOAD <= other <= _STORE]
            for other, reader in enumerate(members):
                reads = stage == _STORE and number in reader.reads
                if reads or (stage == computes and before[other] == number):
                    beside.append(4 * other + _LOAD)
            found.append(beside)
    return found


def _start(
    members: Sequence[RegionMember],
    tiles: Sequence[int],
    ends: list[list[list[float]]],
    before: Sequence[int],
    number: int,
    stage: int,
) -> float:
    """Return when the next tile of a member could begin on a unit, as far as others are concerned; it is infinite while
    that is not known yet."""
    mine = ends[number]
    tile, start = len(mine[stage]), 0.0
    if stage != _STORE and tile >= 2:
        read = mine[stage + 1]
        if len(read) < tile - 1:
            return math.inf
        start = read[tile - 2]
    if stage != _LOAD:
        made = mine[stage - 1]
        return max(start, made[tile]) if len(made) > tile else math.inf
    for source in members[number].reads:
        stored = ends[source][_STORE]
        wanted = math.ceil((tile + 1) * tiles[source] / tiles[number]) - 1
        last = min(tiles[source] - 1, wanted + members[number].around)
        if len(stored) <= last:
            return math.inf
        start = max(start, stored[last])
    if tile < 2 and before[number] >= 0:
        computed = ends[before[number]][_ARRAYS if members[before[number]].busy[_ARRAYS] else _VECTOR]
        if len(computed) < tiles[before[number]] - 1 + tile:
            return math.inf
        start = max(start, computed[tiles[before[number]] - 2 + tile])
    return start


def _same_kind(members: Sequence[RegionMember]) -> list[int]:
    """Return for each member the one ahead of it that uses the same buffers, or -1 if there is none."""
    last: dict[bool, int] = {}
    before = []
    for number, member in enumerate(members):
        kind = member.busy[_ARRAYS] > 0
        before.append(last.get(kind, -1))
        last[kind] = number
    return before


def _levels(
    members: Sequence[RegionMember], before: Sequence[int], work: Sequence[tuple[float, ...]], tiles: Sequence[int]
) -> list[float]:
    """Return for each member the cycles of the longest chain of members from it on."""
    alone = [count * max(cycles) for count, cycles in zip(tiles, work, strict=True)]
    levels = list(alone)
    for number in range(len(members) - 1, -1, -1):
        for source in {*members[number].reads, before[number]} - {-1}:
            levels[source] = max(levels[source], alone[source] + levels[number])
    return levels
