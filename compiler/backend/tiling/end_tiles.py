"""Smaller tiles at both ends of a job.

While the first tile travels to the MAC array, and the last from there to LV2, nothing else happens: the smaller they
are, the shorter that takes. In between, large tiles cost the fewest instructions.
"""

import itertools
from dataclasses import replace

from compiler.backend.layers.layer import ChannelTile
from compiler.backend.tiling.conv_geometry import PixelTile

Ends = tuple[int, int]
Step = tuple[ChannelTile, PixelTile]

ENDS: tuple[Ends, ...] = tuple(
    (first, last) for first in (1, 2, 3) for last in (1, 2, 3)
)  #: parts of the first and of the last tile, to choose from
WHOLE: Ends = (1, 1)  #: tiles at the ends that are not cut


def split_ends(steps: list[Step], ends: Ends) -> list[Step]:
    """``steps`` with the pixels of the first and of the last cut into as many parts as ``ends`` says."""
    if len(steps) == 1:
        ends = (max(ends), 1)
    first, *others = steps
    cut = _cut(first, ends[0])
    return [*cut, *others[:-1], *_cut(others[-1], ends[1])] if others else cut


def _cut(step: Step, parts: int) -> list[Step]:
    return [(step[0], part) for part in split(step[1], parts)]


def split(tile: PixelTile, parts: int) -> list[PixelTile]:
    """``tile`` cut into ``parts`` runs of rows, or of columns if there are more of them; fewer if it is smaller."""
    along_rows = tile.rows >= min(parts, tile.cols)
    length = tile.rows if along_rows else tile.cols
    bounds = [length * i // min(parts, length) for i in range(min(parts, length) + 1)]
    if along_rows:
        return [replace(tile, y=tile.y + low, rows=high - low) for low, high in itertools.pairwise(bounds)]
    return [replace(tile, x=tile.x + low, cols=high - low) for low, high in itertools.pairwise(bounds)]
