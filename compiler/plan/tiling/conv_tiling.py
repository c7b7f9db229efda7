"""How a convolution is cut: tiles of pixels, parts of the kernel, the input that they need and how LV0 holds it."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import NamedTuple

from compiler.plan.layers.layer import ChannelTile, ConvLayer
from hw.contract.params import SocParams


@dataclass(frozen=True)
class KernelChunk:
    """Is a part of the kernel: rows, columns and input channels (relative to the first of the channel tile) that one
    MAC instruction covers."""

    row: int
    rows: int
    col: int
    cols: int
    channel: int
    channels: int


@dataclass(frozen=True)
class PixelTile:
    """Output pixels of one accumulator bank, in ``area`` of the layer."""

    area: int
    n: int
    y: int
    rows: int
    x: int
    cols: int

    @property
    def pixels(self) -> int:
        """Return how many pixels the tile has."""
        return self.rows * self.cols


@dataclass(frozen=True)
class TileGeometry:
    """Says how ``chunk`` works on ``rows`` x ``cols`` output pixels. Words are LV0 activation words.

    With ``fold``, kernel columns are folded into channels: a word holds neighbouring columns of one kernel row.
    """

    in_rows: int
    in_cols: int
    y_step: int
    x_step: int
    pixel_bytes: int  #: LV1 bytes of one input pixel
    pixel_words: int  #: LV0 words of one input pixel (fold: of one output pixel)
    row_words: int  #: LV0 words of an input row (of a column, if they lie one after the other)
    blocks: tuple[int, int, int]
    block_words: tuple[int, int, int]  #: strides of the block loops
    pixel_steps: tuple[int, int]  #: strides of the pixel loops
    lv0_bytes: int  #: bytes of one PE's activation memory
    lv1_bytes: int

    @property
    def block_count(self) -> int:
        """Return how many weight blocks there are."""
        a, b, c = self.blocks
        return a * b * c


def is_turned(layer: ConvLayer, chunk: KernelChunk) -> bool:
    """Return whether LV0 holds what ``chunk`` reads column after column: a block of a depthwise convolution covers
    neighbouring words, and those of a single column are rows then."""
    return layer.depthwise and chunk.cols == 1 and chunk.rows > 1 and layer.dilations[0] == 1


def last_column_alone(layer: ConvLayer, params: SocParams) -> int:
    """Return the kernel columns that a depthwise convolution takes ahead of the last one, if that alone would need
    blocks of its own for every row: it is turned instead. 0: there are none."""
    (kh, kw), taps = layer.kernel, params.depthwise_taps
    alone = layer.depthwise and kw > 1 and kw % taps == 1 and kh > 1 and layer.dilations[0] == 1
    return kw - 1 if alone else 0


def depthwise_blocks(layer: ConvLayer, params: SocParams) -> int:
    """Return the weight blocks of a channel tile of a depthwise convolution, where LV0 holds it whole."""
    (kh, kw), taps, ahead = layer.kernel, params.depthwise_taps, last_column_alone(layer, params)
    if ahead or is_turned(layer, KernelChunk(0, kh, 0, kw, 0, 1)):
        return kh * (ahead // taps) + -(-kh // taps)
    return kh * -(-kw // taps)


def geometry(layer: ConvLayer, chunk: KernelChunk, rows: int, cols: int, fold: bool, params: SocParams) -> TileGeometry:
    """Return the geometry of a tile of ``rows`` x ``cols`` output pixels."""
    (sh, sw), (dh, dw), r = layer.strides, layer.dilations, params.rows
    # A single kernel row (column) touches every stride-th input row (column): only those are loaded.
    y_step, row_step = (sh, 1) if chunk.rows == 1 else (1, sh)
    in_rows = rows if chunk.rows == 1 else (rows - 1) * sh + (chunk.rows - 1) * dh + 1
    single = chunk.cols == 1 and not fold
    x_step, col_step = (sw, 1) if single else (1, sw)
    in_cols = cols if single else (cols - 1) * sw + (chunk.cols - 1) * dw + 1
    tap_rows = dh if chunk.rows > 1 else 0
    if layer.depthwise:
        taps = params.depthwise_taps
        if is_turned(layer, chunk):
            along = -(-chunk.rows // taps)
            return TileGeometry(
                in_rows, in_cols, y_step, x_step, params.lv1_word, 1, in_rows, (1, 1, along), (0, 0, taps),
                (row_step, col_step * in_rows), (in_rows * in_cols + along * taps) * r,
                in_rows * in_cols * params.lv1_word,
            )  # fmt: skip
        across = -(-chunk.cols // taps)
        # The last block of a row reads up to a whole block of words, so the tile gets that much slack.
        words = in_rows * in_cols + across * taps
        return TileGeometry(
            in_rows, in_cols, y_step, x_step, params.lv1_word, 1, in_cols, (1, chunk.rows, across),
            (0, tap_rows * in_cols, taps), (row_step * in_cols, col_step), words * r,
            in_rows * in_cols * params.lv1_word,
        )  # fmt: skip
    if fold:
        words = -(-chunk.cols * chunk.channels // r)
        row_words = cols * words
        return TileGeometry(
            in_rows, in_cols, y_step, 1, chunk.channels, words, row_words, (chunk.rows, 1, words),
            (tap_rows * row_words, 0, 1), (row_step * row_words, words), in_rows * row_words * r,
            in_rows * in_cols * chunk.channels,
        )  # fmt: skip
    # Packed groups: LV1 has all channels of the tile, LV0 of a PE those that it reads.
    words = -(-(layer.pe_channels or chunk.channels) // r)
    pixel_bytes = -(-chunk.channels // params.lv1_word) * params.lv1_word if layer.pe_channels else words * r
    row_words = in_cols * words
    return TileGeometry(
        in_rows, in_cols, y_step, x_step, pixel_bytes, words, row_words, (chunk.rows, chunk.cols, words),
        (tap_rows * row_words, dw * words, 1), (row_step * row_words, col_step * words), in_rows * row_words * r,
        in_rows * in_cols * pixel_bytes,
    )  # fmt: skip


class Band(NamedTuple):
    """Pixels of an image: rows from ``top`` to before ``bottom``, columns from ``left`` to before ``right``."""

    top: int
    bottom: int
    left: int
    right: int


def pixel_tiles(
    layer: ConvLayer, rows: int, cols: int, images: int, bands: Sequence[Band] = (Band(0, 1 << 30, 0, 1 << 30),)
) -> list[PixelTile]:  # fmt: skip
    """Return all tiles of the output in order, of at most ``rows`` x ``cols`` pixels; ``bands``: of these parts of the
    images alone."""
    tiles = []
    for n in range(images):
        for number, area in enumerate(layer.areas):
            for band in bands:
                bottom, right = min(area.y + area.rows, band.bottom), min(area.x + area.cols, band.right)
                for y in range(max(area.y, band.top), bottom, rows):
                    for x in range(max(area.x, band.left), right, cols):
                        tiles.append(PixelTile(number, n, y, min(rows, bottom - y), x, min(cols, right - x)))
    return tiles


@dataclass(frozen=True)
class ConvTiling:
    """How a convolution is cut. Sizes are bytes; ``*_slots`` are buffers of the LV1 rings. Those that are 0 in a plan
    follow from the other fields (:func:`compiler.plan.tiling.conv_search.sized_tiling`)."""

    rows: int
    cols: int
    chunk_rows: int
    chunk_cols: int
    chunk_channels: int
    fold: bool
    pixels_outer: bool  #: pixel tiles in the outer loop, channel tiles in the inner one; else the reverse
    act_size: int = 0
    weight_size: int = 0
    out_size: int = 0
    params_size: int = 0
    act_slots: int = 0
    weight_slots: int = 0
    group: int = 1  #: channel tiles whose weights and parameters come to LV1 by one load

    @property
    def weights_lv1(self) -> int:
        """Return the bytes of LV1 for weights, with groups for parameters too."""
        tile = self.weight_size + (self.params_size if self.group > 1 else 0)
        return self.weight_slots * self.group * tile

    def chunks(self, layer: ConvLayer, channels: int) -> list[KernelChunk]:
        """Return the parts of the kernel for a channel tile with ``channels`` input channels."""
        kh, kw = layer.kernel
        depth = 1 if layer.by_channels else channels
        parts = []
        for c in range(0, depth, self.chunk_channels):
            for i in range(0, kh, self.chunk_rows):
                for j in range(0, kw, self.chunk_cols):
                    parts.append(
                        KernelChunk(
                            i, min(self.chunk_rows, kh - i), j, min(self.chunk_cols, kw - j),
                            c, channels if layer.by_channels else min(self.chunk_channels, depth - c),
                        )
                    )  # fmt: skip
        return parts


def unlike(layer: ConvLayer, chunks: Sequence[KernelChunk]) -> list[KernelChunk]:
    """Return ``chunks`` without those whose weights are equal to those of another."""
    return list(dict.fromkeys(replace(one, row=0, col=0) for one in chunks)) if layer.uniform else list(chunks)


@dataclass(frozen=True)
class TilingContext:
    """What the tiler needs to know about the data around a layer."""

    images: int
    in_dram: bool
    out_dram: bool
    window: int  #: bytes of weights one job may hold
    engines: int = 1  #: that share DRAM, and the tiles
    pitch: int = 0  #: bytes from an input pixel to the next, or 0 if unknown
    lv1_bytes: int = 0  #: of LV1 for buffers, or 0 for all
    staging: int = 0  #: bytes of LV2 through which an engine's data pass from and to DRAM

    def lv1(self, params: SocParams) -> int:
        """Return the bytes of LV1 for buffers."""
        return self.lv1_bytes or params.lv1_bytes


Ends = tuple[int, int]
Step = tuple[ChannelTile, PixelTile]

ENDS: tuple[Ends, ...] = tuple(
    (first, last) for first in (1, 2, 3) for last in (1, 2, 3)
)  #: parts of the first and of the last tile, to choose from
WHOLE: Ends = (1, 1)  #: tiles at the ends that are not cut
HALVES: tuple[Ends, ...] = (WHOLE, (2, 2))  #: to choose from in layers that load weights again for each part
ALONE: tuple[Ends, ...] = tuple((parts, 1) for parts in (1, 2, 3, 4, 6, 8))  #: of a tile that is first and last


def split_ends(steps: list[Step], ends: Ends) -> list[Step]:
    """``steps`` with the pixels of the first and of the last cut into as many parts as ``ends`` says.

    While the first tile travels to the MAC array, and the last from there to LV2, nothing else happens: the smaller
    they are, the shorter that takes. In between, large tiles cost the fewest instructions."""
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


@dataclass(frozen=True)
class MacSlice:
    """Consecutive weight blocks: ``first`` of them, their loops ``blocks`` (outermost first), and the activation word
    at which they begin, relative to the chunk's."""

    first: int
    blocks: tuple[int, ...]
    act: int


def mac_slices(blocks: tuple[int, ...], steps: tuple[int, ...], most: int) -> Iterator[MacSlice]:
    """Yield the weight blocks of loops ``blocks`` with activation strides ``steps``, in order, in parts of nearly equal
    length and of at most ``most`` blocks, or of one: each is a MAC instruction, of which none may run for long. A pause
    waits for all that a unit has taken (**Cancellation points**)."""
    if prod(blocks) <= max(1, most):
        yield MacSlice(0, blocks, 0)
        return
    outer = next(i for i, count in enumerate(blocks) if count > 1)
    inner, count, step = blocks[outer + 1 :], blocks[outer], steps[outer]
    each = prod(inner)
    if each > most:
        for i in range(count):
            for part in mac_slices(inner, steps[outer + 1 :], most):
                yield MacSlice(i * each + part.first, (1,) * (outer + 1) + part.blocks, i * step + part.act)
        return
    pieces = -(-count // (most // each))
    for i in range(pieces):
        low, high = count * i // pieces, count * (i + 1) // pieces
        yield MacSlice(low * each, (*blocks[:outer], high - low, *inner), low * step)
