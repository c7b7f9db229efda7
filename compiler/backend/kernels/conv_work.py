"""What one engine does of a convolution."""

from dataclasses import dataclass, replace

from compiler.backend.layers import ConvLayer
from compiler.backend.memory.operand import StagingArea, TensorOperand
from compiler.backend.memory.tensor_view import PixelBox
from compiler.backend.tiling.conv_tiling import (
    ConvTiling,
    KernelChunk,
    PixelTile,
    TileGeometry,
    geometry,
    input_box,
    tile_box,
)
from hw.contract.params import SocParams


@dataclass(frozen=True)
class Addend:
    """The second operand of the addition of a convolution, and what the bytes of the first, its own result, mean.
    ``constant``: the second lies behind the parameters of each channel tile."""

    other: TensorOperand
    own_signed: bool
    own_zero_point: int
    broadcast: bool = False  #: the second operand is one pixel, the same for all
    table: bool = False  #: the sum passes through the layer's table
    constant: bool = False

    @property
    def staged(self) -> bool:
        """Return whether the second operand passes through LV2 from DRAM."""
        return not self.constant and not self.other.view.on_chip


@dataclass(frozen=True)
class ConvWork:
    """The part of a convolution that one engine computes: its pixel tiles, how they are cut, where operands lie.

    With ``streamed``, weights come from DRAM chunk by chunk instead of lying in the weight window. ``longest``: cycles
    that a MAC instruction should not exceed (0: any). ``lv1_base``: where its buffers in LV1 begin.
    """

    params: SocParams
    layer: ConvLayer
    tiling: ConvTiling
    x: TensorOperand
    y: TensorOperand
    addend: Addend | None
    staging: StagingArea
    streamed: bool
    pixel_tiles: tuple[PixelTile, ...]
    longest: int = 0
    lv1_base: int = 0

    @property
    def most_channels(self) -> int:
        """Return how many input channels the channel tile with the most has."""
        return max(tile.channels for tile in self.layer.tiles)

    def chunks(self, channels: int) -> list[KernelChunk]:
        """Return the parts of the kernel for a channel tile with ``channels`` input channels."""
        return self.tiling.chunks(self.layer, channels)

    def geometry(self, pixels: PixelTile, chunk: KernelChunk) -> TileGeometry:
        """Return how a chunk works on a pixel tile."""
        return geometry(self.layer, chunk, pixels.rows, pixels.cols, self.tiling.fold, self.params)

    def input_box(self, pixels: PixelTile, chunk: KernelChunk, first_channel: int) -> PixelBox:
        """Return the input pixels that ``chunk`` needs for a pixel tile."""
        return input_box(self.layer, chunk, self.geometry(pixels, chunk), pixels, first_channel)

    def tile_box(self, pixels: PixelTile, first_channel: int, channels: int) -> PixelBox:
        """Return all the input pixels of a pixel tile over the whole kernel."""
        return tile_box(self.layer, pixels, first_channel, channels)

    def band_box(self, pixels: PixelTile, first_channel: int, channels: int) -> PixelBox:
        """Return the same in whole rows of the input."""
        return replace(self.tile_box(pixels, first_channel, channels), x=0, cols=self.x.view.shape[2])

    def words(self, size: int) -> int:
        """``size`` bytes in whole words of LV1 and LV2, as bytes."""
        return -(-size // self.params.lv1_word) * self.params.lv1_word
