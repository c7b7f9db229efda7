"""What each engine does of a convolution: channel tiles, pixel tiles or rows, whichever takes the slowest least."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from compiler.plan.layers import ChannelTile, ConvLayer, EngineShare, first_row, imbalance_of_tiles, pixel_parts
from compiler.plan.memory.operand import StagingArea, TensorOperand
from compiler.plan.memory.tensor_view import PixelBox
from compiler.plan.tiling.conv_tiling import (
    Band,
    ConvTiling,
    KernelChunk,
    PixelTile,
    TileGeometry,
    TilingContext,
    geometry,
    pixel_tiles,
)
from compiler.plan.tiling.tile_parts import TileParts, tile_parts
from hw.contract.params import SocParams
from sim.cost import moved


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
    #: What was answered, as all tiles but those at edges ask the same.
    _chunks: dict[int, list[KernelChunk]] = field(init=False, default_factory=dict, compare=False, repr=False)
    _geometries: dict[tuple[int, int, KernelChunk], TileGeometry] = field(
        init=False, default_factory=dict, compare=False, repr=False
    )
    _parts: dict[tuple[ChannelTile, int, int], TileParts] = field(
        init=False, default_factory=dict, compare=False, repr=False
    )

    @property
    def most_channels(self) -> int:
        """Return how many input channels the channel tile with the most has."""
        return max(tile.channels for tile in self.layer.tiles)

    @property
    def int4(self) -> bool:
        """Return whether weights can stay packed, two in a byte: LD0 unpacks them to two banks at once."""
        return self.layer.int4 and self.params.lv0_banks > 1

    def chunks(self, channels: int) -> list[KernelChunk]:
        """Return the parts of the kernel for a channel tile with ``channels`` input channels."""
        if channels not in self._chunks:
            self._chunks[channels] = self.tiling.chunks(self.layer, channels)
        return self._chunks[channels]

    def geometry(self, pixels: PixelTile, chunk: KernelChunk) -> TileGeometry:
        """Return how a chunk works on a pixel tile."""
        return self._geometry(pixels.rows, pixels.cols, chunk)

    def parts(self, tile: ChannelTile, pixels: PixelTile) -> TileParts:
        """Return the parts of a pixel tile that are computed side by side for a channel tile."""
        key = tile, pixels.rows, pixels.cols
        if key not in self._parts:
            self._parts[key] = tile_parts(pixels.rows, pixels.cols, pixel_parts(self.layer, tile, self.params))
        return self._parts[key]

    def part_geometry(self, parts: TileParts, chunk: KernelChunk) -> TileGeometry:
        """Return how a chunk works on one of ``parts``."""
        return self._geometry(parts.rows, parts.cols, chunk)

    def _geometry(self, rows: int, cols: int, chunk: KernelChunk) -> TileGeometry:
        key = rows, cols, chunk
        if key not in self._geometries:
            self._geometries[key] = geometry(self.layer, chunk, rows, cols, self.tiling.fold, self.params)
        return self._geometries[key]

    def input_box(self, pixels: PixelTile, chunk: KernelChunk, first_channel: int) -> PixelBox:
        """Return the input pixels that ``chunk`` needs for a pixel tile."""
        layer, g = self.layer, self.geometry(pixels, chunk)
        (sh, sw), (top, left), (dh, dw) = layer.strides, layer.pads, layer.dilations
        return PixelBox(
            pixels.n, pixels.y * sh + chunk.row * dh - top, g.in_rows, pixels.x * sw + chunk.col * dw - left, g.in_cols,
            first_channel + chunk.channel, chunk.channels, g.y_step, g.x_step,
        )  # fmt: skip

    def tile_box(self, pixels: PixelTile, first_channel: int, channels: int) -> PixelBox:
        """Return all the input pixels of a pixel tile over the whole kernel."""
        (sh, sw), (top, left), (dh, dw) = self.layer.strides, self.layer.pads, self.layer.dilations
        kh, kw = self.layer.kernel
        rows, cols = (pixels.rows - 1) * sh + (kh - 1) * dh + 1, (pixels.cols - 1) * sw + (kw - 1) * dw + 1
        return PixelBox(pixels.n, pixels.y * sh - top, rows, pixels.x * sw - left, cols, first_channel, channels)

    def band_box(self, pixels: PixelTile, first_channel: int, channels: int) -> PixelBox:
        """Return the same in whole rows of the input."""
        return replace(self.tile_box(pixels, first_channel, channels), x=0, cols=self.x.view.shape[2])

    def words(self, size: int) -> int:
        """``size`` bytes in whole words of LV1 and LV2, as bytes."""
        return -(-size // self.params.lv1_word) * self.params.lv1_word


_EVEN = 1.05  #: of equal parts: what an engine may take longer than that before another split is looked for

Bands = tuple[tuple[Band, ...], ...]  #: by engine its pixels


class EngineSplit:
    """Ways to give the ``engines`` of ``context`` their parts of a convolution with a tiling, and how uneven they are:
    the largest part in perfect ones."""

    def __init__(
        self, layer: ConvLayer, tiling: ConvTiling, context: TilingContext, bands: Bands, params: SocParams
    ) -> None:  # fmt: skip
        self._layer, self._tiling, self._engines = layer, tiling, context.engines
        self.pixels = pixel_tiles(layer, tiling.rows, tiling.cols, context.images)
        dealt = [EngineShare(engine, context.engines).of(self.pixels) for engine in range(context.engines)]
        rows = [pixel_tiles(layer, tiling.rows, tiling.cols, context.images, one) for one in bands]
        self.by_channels = imbalance_of_tiles(layer, params, context.engines)
        self.by_pixels, self.by_rows = _uneven(dealt), _uneven(rows)

    def channels(self, loads_input: bool) -> bool:
        """Return whether to split channels where tiles are dealt out: where that balances as well, as then no engine
        loads the weights of another; but pixels if engines load the input and it is larger than those
        (``loads_input``)."""
        if loads_input and self.by_pixels <= max(_EVEN, self.by_channels):
            return False
        return self.by_channels <= max(_EVEN, self.by_pixels)

    def rows(self, loads_input: bool, params: SocParams, own_loads: bool) -> bool:
        """Return whether rows are better than tiles: by more than it takes to load weights for each engine, if it is
        channels that would be split. ``own_loads``: weights come with the body, as in a first layer, so nothing hides
        that engines which had nothing to do wait for theirs."""
        channels = self.channels(loads_input)
        dealt = self.by_channels if channels else self.by_pixels
        if dealt <= _EVEN:
            return False
        gain = (dealt - self.by_rows) * sum(tile.pixels for tile in self.pixels) / self._engines
        again = 0.0
        if channels and not self._layer.depthwise:  # in pixels, too: each takes a cycle for so many bytes of weights
            again = moved(params.rows * params.out_channels * (self._engines - 1), params)
        idle = channels and len(self._layer.tiles) < self._engines
        waits = params.dram_latency / self._blocks(params) if own_loads and idle else 0.0
        return gain > again + waits

    def _blocks(self, params: SocParams) -> float:
        """Return how many blocks of weights a channel tile has: cycles of MAC for a pixel."""
        chunks = len(self._tiling.chunks(self._layer, self._layer.tiles[0].channels))
        return chunks * self._tiling.weight_size / (params.rows * params.out_channels)


def _uneven(parts: Sequence[Sequence[PixelTile]]) -> float:
    sizes = [sum(tile.pixels for tile in part) for part in parts]
    return max(sizes) * len(parts) / sum(sizes)


def row_bands(images: int, height: int, width: int, engines: int, flat: bool) -> Bands:
    """By engine its rows of every image of ``height`` x ``width`` pixels; ``flat``: all pixels of all images are one
    row."""
    bounds = [first_row(height, engine, engines) for engine in range(engines + 1)]
    if not flat:
        return tuple((Band(low, high, 0, width),) for low, high in itertools.pairwise(bounds))
    starts = [image * height * width for image in range(images)]
    return tuple(
        tuple(Band(0, 1, start + low * width, start + high * width) for start in starts)
        for low, high in itertools.pairwise(bounds)
    )


def of_band(layer: ConvLayer, bands: Sequence[Band]) -> ConvLayer:
    """``layer`` with the pixels that ``bands`` hold of it, to be cut into tiles."""
    top, bottom, width = bands[0].top, bands[0].bottom, sum(band.right - band.left for band in bands)
    areas = [
        replace(area, y=max(area.y, top), rows=rows, cols=min(area.cols, width))
        for area in layer.areas
        if (rows := min(area.y + area.rows, bottom) - max(area.y, top)) > 0
    ]
    return replace(layer, areas=areas)
