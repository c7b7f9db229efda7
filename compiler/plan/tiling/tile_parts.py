"""The parts of a pixel tile that the PEs of an engine compute side by side, if a channel tile is narrow."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TileParts:
    """Are ``count`` parts of ``rows`` x ``cols`` output pixels each, one ``y_step`` rows and ``x_step`` columns behind
    the other. They cover the tile, and may overlap: then some pixels are computed twice."""

    count: int
    rows: int
    cols: int
    y_step: int = 0
    x_step: int = 0

    @property
    def pixels(self) -> int:
        """Return how many pixels a part has."""
        return self.rows * self.cols

    @property
    def alike(self) -> bool:
        """Return whether all parts are the whole tile."""
        return not self.y_step and not self.x_step


def tile_parts(rows: int, cols: int, count: int) -> TileParts:
    """Return ``count`` parts of a tile of ``rows`` x ``cols`` pixels: runs of rows if there are as many, else of
    columns."""
    if count == 1:
        return TileParts(1, rows, cols)
    if rows >= count:
        size, step = _runs(rows, count)
        return TileParts(count, size, cols, step, 0)
    size, step = _runs(cols, count)
    return TileParts(count, rows, size, 0, step)


def _runs(length: int, count: int) -> tuple[int, int]:
    """Return the length and the distance of ``count`` equal runs of ``length`` things, as short as cover all."""
    size = next(size for size in range(-(-length // count), length + 1) if (length - size) % (count - 1) == 0)
    return size, (length - size) // (count - 1)
