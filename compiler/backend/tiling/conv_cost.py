"""An estimate of the cycles that a convolution takes with a given tiling."""

import numpy as np

from compiler.backend.layers.engine_share import imbalance
from compiler.backend.layers.layer import ConvLayer
from compiler.backend.memory.pixel_pitch import words_per_run
from compiler.backend.tiling.channel_loads import staged_together, tile_load_cycles
from compiler.backend.tiling.conv_geometry import TileGeometry
from compiler.backend.tiling.conv_tiling import ConvTiling, TilingContext
from hw.contract.isa import INSN_BYTES
from hw.contract.params import SocParams
from hw.contract.timing import UNIT_START

_SHORT_RUN = 14  #: cycles of a run of ``out_channels`` bytes to DRAM


def estimate(
    layer: ConvLayer, context: TilingContext, params: SocParams, tiling: ConvTiling, g: TileGeometry, chunks: int
) -> int:
    """Return the cycles of the busiest unit if one engine did it all, plus a little of all the others for what does not
    overlap, and the time until the first tile is there, while all engines load theirs from DRAM. ``g`` and ``chunks``:
    geometry of the largest part of the kernel, and number of parts."""
    word, channel_tiles, pixels_outer = params.lv1_word, len(layer.tiles), tiling.pixels_outer
    rows, cols = tiling.rows, tiling.cols
    tiles = sum(-(-area.rows // rows) * -(-area.cols // cols) for area in layer.areas) * context.images
    pixels = sum(area.rows * area.cols for area in layer.areas) * context.images
    steps = channel_tiles * tiles * chunks
    weight_bytes = g.block_count * params.rows * params.out_channels
    share = pixels / (tiles * rows * cols)  # of a full tile, on average
    batch = max(1, min(channel_tiles, context.window // max(1, weight_bytes * chunks)))
    passes = -(-channel_tiles // batch)
    shared = pixels_outer and not layer.depthwise  # depthwise channel tiles have no input in common
    act_loads = {
        1: tiles * chunks * passes if shared and tiling.act_slots >= chunks else steps,
        0: tiles * chunks * passes if shared and chunks <= 2 else steps,
    }
    weight_loads = {
        1: channel_tiles * chunks if not pixels_outer and tiling.weight_slots >= chunks else steps,
        0: channel_tiles * chunks if not pixels_outer and chunks <= 2 else steps,
    }
    act_words = share * g.lv0_bytes / word
    if layer.depthwise:
        act_words = share * g.in_rows * g.in_cols
    elif tiling.fold:
        act_words = share * g.in_rows * cols * -(-g.pixel_words * params.rows // word)
    runs = share * g.in_rows * g.in_cols
    ld1_words = max(share * g.lv1_bytes / word, 0 if tiling.fold else runs * -(-g.pixel_bytes // word))
    if layer.depthwise:
        channels = max(tile.channels for tile in layer.tiles)
        ld1_words = runs * words_per_run(context.pitch, min(channels, word), word)
    mac = steps * UNIT_START + channel_tiles * pixels * chunks * g.block_count
    mac = max(mac, steps * g.block_count * params.rows)
    ld0 = act_loads[0] * (UNIT_START + act_words) + weight_loads[0] * (UNIT_START + weight_bytes / word)
    ld1 = act_loads[1] * (UNIT_START + ld1_words) + weight_loads[1] * (UNIT_START / tiling.group + weight_bytes / word)
    if layer.addition and layer.addition.constant is None:
        ld1 += channel_tiles * (tiles * UNIT_START + pixels)
    vec = channel_tiles * (tiles * UNIT_START + pixels * params.vec_groups) * (2 if layer.addition else 1)
    dram = weight_bytes * chunks * channel_tiles / params.dram_bytes_per_cycle
    if context.in_dram and layer.depthwise:
        dram += _depthwise_loads(layer, context, params, tiling, g, share * tiles * chunks) * context.engines
    elif context.in_dram:
        repeats = passes if pixels_outer else channel_tiles
        dram += (
            repeats
            * tiles
            * chunks
            * (UNIT_START + params.dram_latency / 4 + share * g.lv1_bytes / params.dram_bytes_per_cycle)
        )
    instructions = (
        steps + sum(act_loads.values()) + weight_loads[0] + weight_loads[1] / tiling.group + 2 * channel_tiles * tiles
    )
    fetch = instructions * INSN_BYTES / params.dram_bytes_per_cycle
    # Results of a single channel tile go to DRAM in short runs, each a burst of its own.
    stores = channel_tiles * pixels * _SHORT_RUN if context.out_dram and not pixels_outer else 0
    balance = _balance(layer, context, rows, cols) if layer.depthwise else 1.0
    units = [balance * unit for unit in (mac, ld0, ld1, vec)] + [dram, fetch, stores]
    start = 0.0
    if context.in_dram:
        start = (
            rows * cols * g.lv1_bytes * chunks / (g.in_rows * g.in_cols) / params.dram_bytes_per_cycle * context.engines
        )
        if pixels_outer:  # all weights come during the first pixel tile, and input beside them
            first = rows * cols * chunks * g.block_count * channel_tiles / context.engines
            start += max(0.0, 2 * weight_bytes * chunks * channel_tiles / params.dram_bytes_per_cycle - first)
    return int(max(units) + 0.05 * sum(units) + start * context.engines)


def _depthwise_loads(
    layer: ConvLayer, context: TilingContext, params: SocParams, tiling: ConvTiling, g: TileGeometry, tiles: float
) -> float:
    """Return the cycles of DRAM for the input of a depthwise layer, which are ``tiles`` whole pixel tiles: of all
    channels by one load if channel tiles are the inner loop and there is room, else of each in short runs."""
    depth, channels = sum(tile.channels for tile in layer.tiles), max(tile.channels for tile in layer.tiles)
    together = tiling.pixels_outer and staged_together(g.in_rows * g.in_cols, depth, context.staging)
    loads = 1 if together else len(layer.tiles)
    start = loads * (UNIT_START + params.dram_latency / 4)
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
