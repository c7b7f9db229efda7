"""Loads of activations from LV1 to LV0, where each PE gets what it multiplies."""

from collections.abc import Iterator

from compiler.emission.kernels.conv_work import ConvWork
from compiler.emission.program import CopyLoop, contiguous, copy_fields
from compiler.emission.program.copies import Fields
from compiler.plan.layers import ChannelTile, interleaved, pe_channels
from compiler.plan.tiling.conv_tiling import KernelChunk, PixelTile, TileGeometry, is_turned
from hw.contract.isa import Lv0Space, Lv0View


def lv0_loads(
    work: ConvWork, tile: ChannelTile, pixels: PixelTile, chunk: KernelChunk, source: int, target: int
) -> Iterator[Fields]:  # fmt: skip
    """Yield the fields of the loads of what ``chunk`` needs of a pixel tile, from LV1 address ``source`` to byte
    ``target`` of each PE's LV0."""
    p, layer, g = work.params, work.layer, work.geometry(pixels, chunk)
    if is_turned(layer, chunk):
        loops = [CopyLoop(g.in_rows, g.in_cols * p.lv1_word, p.lv1_word)]
        loops.append(CopyLoop(g.in_cols, p.lv1_word, g.in_rows * p.lv1_word))
        yield from _to([copy_fields(source, target * p.pes, loops, p.lv1_word)], view=Lv0View.INTERLEAVED)
    elif layer.depthwise or interleaved(layer, p):
        yield from _to(contiguous(source, target * p.pes, g.lv1_bytes), view=Lv0View.INTERLEAVED)
    elif layer.pe_channels:
        yield from _packed(work, tile, g, source, target)
    else:
        yield from _parts(work, tile, pixels, chunk, source, target)


def _to(copies: list[Fields], **where: int) -> list[Fields]:
    return [fields | {"space": Lv0Space.ACT, **where} for fields in copies]


def _packed(work: ConvWork, tile: ChannelTile, g: TileGeometry, source: int, target: int) -> Iterator[Fields]:
    """One load for the PEs that read the same channels of every pixel."""
    pixel = g.pixel_words * work.params.rows
    loops = [CopyLoop(g.in_rows * g.in_cols, g.pixel_bytes, pixel)]
    for part in pe_channels(work.layer, tile, work.params):
        read = 0, min(work.layer.pe_channels, tile.channels - part.first)
        fields = copy_fields(source + part.first, target, loops, pixel, read, work.x.zero_byte)
        yield from _to([fields], pe_mask=part.mask)


def _parts(
    work: ConvWork, tile: ChannelTile, pixels: PixelTile, chunk: KernelChunk, source: int, target: int
) -> Iterator[Fields]:  # fmt: skip
    """One load for the PEs that compute the same part of the tile's pixels: for all, or a set of them."""
    p, parts, g = work.params, work.parts(tile, pixels), work.geometry(pixels, chunk)
    fold, own = work.tiling.fold, work.part_geometry(parts, chunk)
    row_step = g.pixel_steps[0] // g.row_words
    col_step = work.layer.strides[1] if fold else g.pixel_steps[1] // g.pixel_words
    loads, each = (1, p.pes) if parts.alike else (parts.count, p.pes // parts.count)
    for part in range(loads):
        row, col = part * parts.y_step * row_step, part * parts.x_step * col_step
        first, mask = source + (row * g.in_cols + col) * g.pixel_bytes, ((1 << each) - 1) << part * each
        if fold:
            # Neighbouring columns of a row are adjacent bytes in LV1: one run per output pixel takes them all.
            run, step = chunk.cols * chunk.channels, work.layer.strides[1] * chunk.channels
            loops = [
                CopyLoop(own.in_rows, g.in_cols * chunk.channels, own.row_words * p.rows),
                CopyLoop(parts.cols, step, own.pixel_words * p.rows),
            ]
            copies = [copy_fields(first, target, loops, own.pixel_words * p.rows, (0, run), work.x.zero_byte)]
        elif own.in_cols == g.in_cols or own.in_rows == 1:
            copies = contiguous(first, target, own.lv1_bytes)
        else:
            pixel = g.pixel_bytes
            loops = [
                CopyLoop(own.in_rows, g.in_cols * pixel, own.in_cols * pixel), CopyLoop(own.in_cols, pixel, pixel),
            ]  # fmt: skip
            copies = [copy_fields(first, target, loops, pixel)]
        yield from _to(copies, pe_mask=mask)
