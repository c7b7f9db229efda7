"""Defines how layers are cut into tiles: what a kernel decides about one layer, and all that it decides."""

from dataclasses import dataclass, replace
from enum import Enum
from typing import ClassVar

from compiler.plan.tiling.conv_tiling import ConvTiling, Ends


@dataclass(frozen=True)
class Tiles:
    """Says how one layer is cut into tiles. ``None`` in place of tiles stands for tiles that are still to be chosen."""

    kind: ClassVar[str]  #: what they are called in a file


class SharedBy(Enum):
    """Names what of a convolution is divided among engines."""

    CHANNELS = "channels"
    PIXELS = "pixels"
    ROWS = "rows"


@dataclass(frozen=True)
class ConvTiles(Tiles):
    """Says the ``tiling`` of the part of an engine, whose largest area has ``shape`` rows and columns, and what engines
    share it by. ``ends``: for each job of a depthwise layer, and each short one, into how many parts its first and its
    last tile are cut."""

    kind: ClassVar[str] = "conv"
    tiling: ConvTiling
    shape: tuple[int, int]
    by: SharedBy
    ends: tuple[Ends, ...] = ()

    def tiling_of(self, shape: tuple[int, int]) -> ConvTiling:
        """Return the tiling of a smaller output, as many tiles of about equal size."""
        rows, cols = (
            most if size == whole else -(-size // -(-whole // most))
            for most, size, whole in zip((self.tiling.rows, self.tiling.cols), shape, self.shape, strict=True)
        )
        return replace(self.tiling, rows=rows, cols=cols)


@dataclass(frozen=True)
class PixelTiles(Tiles):
    """Are tiles of ``rows`` x ``cols`` pixels of ``channels`` channels, of a pool or an element-wise layer."""

    kind: ClassVar[str] = "pixels"
    rows: int
    cols: int
    channels: int


@dataclass(frozen=True)
class ProductTiles(Tiles):
    """Are tiles of ``rows`` rows of a product of computed matrices that has ``columns`` columns; each takes ``depth``
    elements at a time."""

    kind: ClassVar[str] = "product"
    rows: int
    columns: int
    depth: int


@dataclass(frozen=True)
class RowTiles(Tiles):
    """Are tiles of ``rows`` whole rows."""

    kind: ClassVar[str] = "rows"
    rows: int


@dataclass(frozen=True)
class MoveTiles(Tiles):
    """Are tiles of at most ``size`` bytes that are moved."""

    kind: ClassVar[str] = "move"
    size: int


@dataclass(frozen=True)
class Uncut(Tiles):
    """Belongs to a layer that leaves nothing to choose."""

    kind: ClassVar[str] = "uncut"


AnyTiles = ConvTiles | PixelTiles | ProductTiles | RowTiles | MoveTiles | Uncut
