"""An estimate of the cycles that a convolution takes with a given tiling."""

import numpy as np

from compiler.backend.layers.engine_share import imbalance
from compiler.backend.layers.layer import ConvLayer
from compiler.backend.tiling.conv_geometry import TileGeometry
from compiler.backend.tiling.conv_tiling import ConvTiling, TilingContext
from compiler.plan.work import staged_together, tiled_conv
from hw.contract.isa import INSN_BYTES
from hw.contract.params import SocParams
from sim.cost import SHORT_RUN, UNIT_START, moved, overlapped, tile_load_cycles, work_cycles


def estimate(
    layer: ConvLayer, context: TilingContext, params: SocParams, tiling: ConvTiling, g: TileGeometry, chunks: int
) -> int:
    """Return the cycles of the busiest unit if one engine did it all, plus a little of all the others for what does not
    overlap, and the time until the first tile is there, while all engines load theirs from DRAM. ``g`` and ``chunks``:
    geometry of the largest part of the kernel, and number of parts."""
    word, channel_tiles, pixels_outer = params.lv1_word, len(layer.tiles), tiling.pixels_outer
    rows, cols, work = tiling.rows, tiling.cols, tiled_conv(layer, context, params, tiling, g, chunks)
    (acts0, acts1), (weights0, weights1), weight_words = work.act_loads, work.weight_loads, work.weight_bytes / word
    mac = max(work.steps * UNIT_START + work_cycles(work.mac), work.steps * g.block_count * params.rows)
    ld0 = acts0 * (UNIT_START + work.act_words[0]) + weights0 * (UNIT_START + weight_words)
    ld1 = acts1 * (UNIT_START + work.act_words[1]) + weights1 * (UNIT_START / tiling.group + weight_words)
    if layer.addition and layer.addition.constant is None:
        ld1 += channel_tiles * (work.tiles * UNIT_START + work.pixels)
    vec = (channel_tiles * work.tiles * UNIT_START + work_cycles(work.vec)) * (2 if layer.addition else 1)
    all_weights = work.weight_bytes * chunks * channel_tiles
    dram = moved(all_weights, params)
    if context.in_dram and layer.depthwise:
        loads = _depthwise_loads(layer, context, params, tiling, g, work.share * work.tiles * chunks)
        dram += loads * context.engines
    elif context.in_dram:
        load = moved(work.share * g.lv1_bytes, params, 1)
        dram += (work.passes if pixels_outer else channel_tiles) * work.tiles * chunks * load
    instructions = work.steps + acts0 + acts1 + weights0 + weights1 / tiling.group + 2 * channel_tiles * work.tiles
    fetch = moved(instructions * INSN_BYTES, params)
    # Results of a single channel tile go to DRAM in short runs, each a burst of its own.
    stores = channel_tiles * work.pixels * SHORT_RUN if context.out_dram and not pixels_outer else 0
    balance = _balance(layer, context, rows, cols) if layer.depthwise else 1.0
    units = [balance * unit for unit in (mac, ld0, ld1, vec)] + [dram, fetch, stores]
    start = 0.0
    if context.in_dram:
        start = moved(rows * cols * g.lv1_bytes * chunks / (g.in_rows * g.in_cols), params) * context.engines
        if pixels_outer:  # all weights come during the first pixel tile, and input beside them
            first = rows * cols * chunks * g.block_count * channel_tiles / context.engines
            start += max(0.0, moved(2 * all_weights, params) - first)
    return int(overlapped(units) + start * context.engines)


def _depthwise_loads(
    layer: ConvLayer, context: TilingContext, params: SocParams, tiling: ConvTiling, g: TileGeometry, tiles: float
) -> float:
    """Return the cycles of DRAM for the input of a depthwise layer, which are ``tiles`` whole pixel tiles: of all
    channels by one load if channel tiles are the inner loop and there is room, else of each in short runs."""
    depth, channels = sum(tile.channels for tile in layer.tiles), max(tile.channels for tile in layer.tiles)
    together = tiling.pixels_outer and staged_together(g.in_rows * g.in_cols, depth, context.staging)
    start = moved(0, params, 1 if together else len(layer.tiles))
    return tiles * (start + tile_load_cycles(g.in_rows, g.in_cols, channels, depth, together, params))


def _balance(layer: ConvLayer, context: TilingContext, rows: int, cols: int) -> float:
    """Return how much longer the engine with the most work takes than with equal parts: of the channel tiles, or of the
    pixel tiles in order, whichever is better."""
    sizes = [
        np.outer(_lengths(area.rows, rows), _lengths(area.cols, cols)).ravel() for area in layer.areas
    ]  # fmt: skip
    done = np.concatenate(([0], np.cumsum(np.tile(np.concatenate(sizes), context.images))))
    bounds = [(len(done) - 1) * i // context.engines for i in range(context.engines + 1)]
    by_pixels = float(np.diff(done[bounds]).max() * context.engines / done[-1])
    return min(by_pixels, imbalance(len(layer.tiles), context.engines))


def _lengths(length: int, step: int) -> list[int]:
    return [min(step, length - at) for at in range(0, length, step)]
