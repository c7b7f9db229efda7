"""How engines share a convolution: channel tiles, pixel tiles or rows, whichever takes the slowest of them least."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

from compiler.backend.layers import ConvLayer, EngineShare, first_row, imbalance
from compiler.backend.tiling.conv_tiling import Band, ConvTiling, PixelTile, TilingContext, pixel_tiles
from hw.contract.params import SocParams
from sim.cost import moved

_EVEN = 1.05  #: of equal parts: what an engine may take longer than that before another split is looked for

Bands = tuple[tuple[Band, ...], ...]  #: by engine its pixels


class EngineSplit:
    """Ways to give the ``engines`` of ``context`` their parts of a convolution with a tiling, and how uneven they are:
    the largest part in perfect ones."""

    def __init__(self, layer: ConvLayer, tiling: ConvTiling, context: TilingContext, bands: Bands) -> None:
        self._layer, self._tiling, self._engines = layer, tiling, context.engines
        self.pixels = pixel_tiles(layer, tiling.rows, tiling.cols, context.images)
        dealt = [EngineShare(engine, context.engines).of(self.pixels) for engine in range(context.engines)]
        rows = [pixel_tiles(layer, tiling.rows, tiling.cols, context.images, one) for one in bands]
        self.by_channels = imbalance(len(layer.tiles), context.engines)
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
