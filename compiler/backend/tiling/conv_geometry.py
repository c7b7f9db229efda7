"""Geometry of convolution tiles: parts of the kernel, the input they need, and how LV0 holds it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from compiler.backend.layers.layer import ConvLayer
from compiler.backend.memory.tensor_view import PixelBox
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
    row_words: int
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
    words = -(-chunk.channels // r)
    row_words = in_cols * words
    return TileGeometry(
        in_rows, in_cols, y_step, x_step, words * r, words, row_words, (chunk.rows, chunk.cols, words),
        (tap_rows * row_words, dw * words, 1), (row_step * row_words, col_step * words), in_rows * row_words * r,
        in_rows * row_words * r,
    )  # fmt: skip


def input_box(layer: ConvLayer, chunk: KernelChunk, g: TileGeometry, tile: PixelTile, first_channel: int) -> PixelBox:
    """Return the input pixels that ``chunk`` needs for ``tile``."""
    (sh, sw), (top, left), (dh, dw) = layer.strides, layer.pads, layer.dilations
    return PixelBox(
        tile.n, tile.y * sh + chunk.row * dh - top, g.in_rows, tile.x * sw + chunk.col * dw - left, g.in_cols,
        first_channel + chunk.channel, chunk.channels, g.y_step, g.x_step,
    )  # fmt: skip


def tile_box(layer: ConvLayer, tile: PixelTile, first_channel: int, channels: int) -> PixelBox:
    """Return all the input pixels of ``tile`` over the whole kernel."""
    whole = KernelChunk(0, layer.kernel[0], 0, layer.kernel[1], 0, channels)
    (sh, sw), (dh, dw) = layer.strides, layer.dilations
    rows = (tile.rows - 1) * sh + (whole.rows - 1) * dh + 1
    cols = (tile.cols - 1) * sw + (whole.cols - 1) * dw + 1
    top, left = layer.pads
    return PixelBox(tile.n, tile.y * sh - top, rows, tile.x * sw - left, cols, first_channel, channels)


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
