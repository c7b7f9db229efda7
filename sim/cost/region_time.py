"""Computes how long the layers of a region take side by side, before anything of it is compiled: a list schedule of few
tiles.

Each layer is cut into equal tiles, more of them if it takes long. A tile is loaded, computed on the arrays, handled by
the vector unit, and stored; each unit takes one tile at a time, and each layer has two buffers ahead of every unit. A
reader loads a tile when the layers that it reads have stored theirs, one more if it sees a window around each pixel.
Layers of one kind use the same buffers one after the other. The real schedule
(``compiler/emission/program/region_order.py``) follows the same rules with the tiles and instructions that there are;
here as there, one that waits for short tasks is tried, too.

``region_time.c`` does it; ``tests/support/cost_oracle.py`` has the same in Python.
"""

import ctypes
import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from sim.c_library import structure
from sim.cost.c_walks import address, c_walk, columns, doubles, integers
from sim.cost.overheads import INSN_AROUND

_FEWEST = 4  #: tiles of a layer
_LONGEST = 1024.0  #: cycles of a tile on a unit, where there are more
_STAGES = 4
MOST_MEMBERS = 64  #: of a region, which C reads as bits

#: The layout of ``region_time.c``.
_Region = structure(
    "_Region",
    "count around",
    "tiles reads beyond busy before unit first need_first needs order next looked "
    "levels work begin cycles rank patience start end",
)


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
    """Return the cycles until the last result of ``members`` is stored; each reads only those ahead of it. Raises
    :class:`sim.toolchain.compilers.BuildError` if the C of it cannot be compiled."""
    count = len(members)
    if count > MOST_MEMBERS:
        raise ValueError(f"a region has at most {MOST_MEMBERS} members, not {count}")
    tiles = array("q", map(tile_count, members))
    reads = array("q", [sum(1 << source for source in member.reads) for member in members])
    beyond = array("q", [member.around for member in members])
    busy = array("d", [cycles for member in members for cycles in member.busy])
    queues, tasks = _STAGES * count, _STAGES * sum(tiles)
    needs = sum(many * (7 + len(member.reads)) + 2 for many, member in zip(tiles, members, strict=True))
    _numbers, integer_columns = columns(integers, (count, queues, queues + 1, tasks + 1, needs, tasks, queues, queues))
    _lengths, double_columns = columns(doubles, (count, queues, queues, *[tasks] * 5))
    given = map(address, (tiles, reads, beyond, busy))
    return float(
        c_walk("side_by_side")(ctypes.byref(_Region(count, INSN_AROUND, *given, *integer_columns, *double_columns)))
    )
