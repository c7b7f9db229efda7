"""Smaller tiles at both ends of a job.

While the first tile travels to the MAC array, and the last from there to LV2, nothing else happens: the smaller they
are, the shorter that takes. In between, large tiles cost the fewest instructions.
"""

import itertools
from dataclasses import replace

from compiler.backend.geometry import PixelTile
from compiler.backend.layers import ChannelTile

Step = tuple[ChannelTile, PixelTile]

PARTS = (1, 2, 3)  #: of the first and of the last tile, to choose from


def tapered(steps: list[Step], parts: int) -> list[Step]:
    """``steps`` with the pixels of the first and the last cut into ``parts``."""
    last = len(steps) - 1
    cut = ([(tile, part) for part in split(pixels, parts)] for tile, pixels in (steps[0], steps[last]))
    first_parts, last_parts = cut
    return first_parts if last == 0 else [*first_parts, *steps[1:last], *last_parts]


def split(tile: PixelTile, parts: int) -> list[PixelTile]:
    """``tile`` cut into ``parts`` runs of rows, or of columns if there are more of them; fewer if it is smaller."""
    along_rows = tile.rows >= min(parts, tile.cols)
    length = tile.rows if along_rows else tile.cols
    bounds = [length * i // min(parts, length) for i in range(min(parts, length) + 1)]
    if along_rows:
        return [replace(tile, y=tile.y + low, rows=high - low) for low, high in itertools.pairwise(bounds)]
    return [replace(tile, x=tile.x + low, cols=high - low) for low, high in itertools.pairwise(bounds)]
