"""Tile shapes and loop order of convolutions: the cheapest by an estimate of each unit's cycles that fits.

The smallest candidate is one pixel, one kernel element and ``rows`` channels, so the search fails only on hardware
whose memories hold no tile at all.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from compiler.backend.layers.layer import ConvLayer
from compiler.backend.memory.pixel_pitch import words_per_run
from compiler.backend.tiling.conv_geometry import KernelChunk, PixelTile, TileGeometry, geometry
from compiler.backend.tiling.engine_share import imbalance
from compiler.ir import CompileError
from hw.contract.isa import INSN_BYTES, TABLE_BYTES, VEC_CHANNEL_BYTES
from hw.contract.params import SocParams
from hw.contract.timing import UNIT_START

PARAMS_SLOTS = 4  #: LV1 buffers of VEC parameters; with two, LD1 would wait for VEC before it loads further tiles
_LV0_SLOTS = 4  #: buffers of an LV0 memory, at most
_SHORT_RUN = 14  #: cycles of a run of ``out_channels`` bytes to DRAM


@dataclass(frozen=True)
class ConvPlan:
    """How a convolution is cut. Sizes are bytes; ``*_slots`` are buffers of the LV1 rings."""

    rows: int
    cols: int
    chunk_rows: int
    chunk_cols: int
    chunk_channels: int
    fold: bool
    pixels_outer: bool  #: pixel tiles in the outer loop, channel tiles in the inner one; else the reverse
    act_size: int
    weight_size: int
    out_size: int
    params_size: int
    act_slots: int
    weight_slots: int
    cycles: int  #: estimated, all channel tiles
    group: int = 1  #: channel tiles whose weights and parameters come to LV1 by one load

    @property
    def weights_lv1(self) -> int:
        """Bytes of LV1 for weights, with groups for parameters too."""
        tile = self.weight_size + (self.params_size if self.group > 1 else 0)
        return self.weight_slots * self.group * tile

    def chunks(self, layer: ConvLayer, channels: int) -> list[KernelChunk]:
        """Parts of the kernel for a channel tile with ``channels`` input channels."""
        kh, kw = layer.kernel
        depth = 1 if layer.depthwise else channels
        parts = []
        for c in range(0, depth, self.chunk_channels):
            for i in range(0, kh, self.chunk_rows):
                for j in range(0, kw, self.chunk_cols):
                    parts.append(
                        KernelChunk(
                            i, min(self.chunk_rows, kh - i), j, min(self.chunk_cols, kw - j),
                            c, channels if layer.depthwise else min(self.chunk_channels, depth - c),
                        )
                    )  # fmt: skip
        return parts


@dataclass(frozen=True)
class TilingContext:
    """What the tiler needs to know about the data around a layer."""

    images: int
    in_dram: bool
    out_dram: bool
    window: int  #: bytes of weights one job may hold
    engines: int = 1  #: that share DRAM, and the tiles
    pitch: int = 0  #: bytes from an input pixel to the next, or 0 if unknown


def pixel_tiles(layer: ConvLayer, plan_rows: int, plan_cols: int, images: int) -> list[PixelTile]:
    """All tiles of the output in order."""
    tiles = []
    for n in range(images):
        for number, region in enumerate(layer.regions):
            for y in range(region.y, region.y + region.rows, plan_rows):
                for x in range(region.x, region.x + region.cols, plan_cols):
                    rows = min(plan_rows, region.y + region.rows - y)
                    cols = min(plan_cols, region.x + region.cols - x)
                    tiles.append(PixelTile(number, n, y, rows, x, cols))
    return tiles


def lv0_slots(words: int, total: int) -> int:
    """Buffers of ``words`` in an LV0 memory of ``total`` words: with more than two, LD0 need not wait for MAC to end
    before it loads the next but one."""
    return max(2, min(_LV0_SLOTS, total // words))


def params_bytes(params: SocParams) -> int:
    """Size of a VEC parameter block for one channel tile, a multiple of the LV1 word."""
    size = params.vec_header_bytes + params.out_channels * VEC_CHANNEL_BYTES
    return -(-size // params.lv1_word) * params.lv1_word


def sum_params_bytes(params: SocParams) -> int:
    """Size of the VEC parameter block of an addition, a multiple of the LV1 word."""
    size = params.vec_header_bytes + params.vec_lanes * VEC_CHANNEL_BYTES
    return -(-size // params.lv1_word) * params.lv1_word


def plan_conv(layer: ConvLayer, load: TilingContext, params: SocParams) -> ConvPlan:
    """The cheapest plan; raises :class:`CompileError` if the memories hold not even the smallest tile."""
    best: ConvPlan | None = None
    for plan in _candidates(layer, load, params):
        if best is None or plan.cycles < best.cycles:
            best = plan
    if best is None:
        raise CompileError(
            f"operator {layer.name!r}: not even one output pixel fits LV1 ({params.lv1_bytes} bytes) and LV0 "
            f"({params.lv0_act_bytes} bytes of activations): choose a preset with larger memories"
        )
    return best


def _candidates(layer: ConvLayer, load: TilingContext, params: SocParams) -> Iterator[ConvPlan]:
    channels = max(tile.channels for tile in layer.tiles)
    height = max(region.rows for region in layer.regions)
    width = max(region.cols for region in layer.regions)
    kh, kw = layer.kernel
    foldable = not layer.depthwise and layer.groups == 1 and layer.dilations[1] == 1 and kw > 1
    r = params.rows
    folds = [False]
    if foldable and -(-kw * channels // r) < kw * -(-channels // r):
        folds.append(True)
    splits = [(rows, kw) for rows in sorted({kh, -(-kh // 2), -(-kh // 3), 1}, reverse=True)]
    splits += [(1, cols) for cols in sorted({-(-kw // 2), -(-kw // 4), 1}, reverse=True) if cols < kw]
    for rows, cols in _tile_shapes(height, width, params.lv0_acc_rows // 2):
        fits = False
        for fold in folds:
            for chunk_rows, chunk_cols in splits:
                if fold and chunk_cols != kw:
                    continue
                depth = _chunk_channels(layer, channels, rows, cols, chunk_rows, chunk_cols, fold, params)
                if depth == 0:
                    continue
                for outer in (True, False):
                    plan = _price(layer, load, params, channels, rows, cols, chunk_rows, chunk_cols, depth, fold, outer)
                    if plan:
                        fits = True
                        yield plan
                if depth >= channels:
                    break  # smaller parts of the kernel only add instructions
        if fits and rows * cols <= params.rows:
            return


def _tile_shapes(height: int, width: int, bank: int) -> Iterator[tuple[int, int]]:
    """(rows, cols) of at most ``bank`` pixels, larger ones first, balanced so that the last tile is not a sliver."""
    shapes = set()
    for parts in (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 28, 32, 64, 128, width):
        cols = -(-width // min(parts, width))
        if cols > bank:
            cols = bank
        most = min(height, bank // cols)
        for limit in (most, -(-most // 2), -(-most // 4), 1):
            shapes.add((-(-height // -(-height // limit)), cols))
    return iter(sorted(shapes, key=lambda shape: (-shape[0] * shape[1], shape)))


def _chunk_channels(
    layer: ConvLayer,
    channels: int,
    rows: int,
    cols: int,
    chunk_rows: int,
    chunk_cols: int,
    fold: bool,
    params: SocParams,
) -> int:
    """Most input channels per chunk that fit the LV0 halves, balanced; 0 if not even one word does."""
    act, blocks = params.lv0_act_bytes // 2, params.lv0_wgt_bytes // 2 // (params.rows * params.cols)
    word = params.rows
    steps = channels if (layer.depthwise or fold) else word

    def fits(depth: int) -> bool:
        g = geometry(layer, KernelChunk(0, chunk_rows, 0, chunk_cols, 0, depth), rows, cols, fold, params)
        return g.lv0_bytes <= act and g.block_count <= blocks and max(g.blocks) < 1 << 12

    if not fits(steps):
        return 0
    if layer.depthwise or fold:
        return channels
    low, high = 1, -(-channels // word)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle * word) else (low, middle - 1)
    words = -(-channels // word)
    parts = -(-words // low)
    return min(channels, -(-words // parts) * word)


def _price(
    layer: ConvLayer, load: TilingContext, params: SocParams, channels: int, rows: int, cols: int, chunk_rows: int,
    chunk_cols: int, depth: int, fold: bool, pixels_outer: bool,
) -> ConvPlan | None:  # fmt: skip
    """A plan with its estimate, or None if LV1 is too small for it."""
    word = params.lv1_word
    kh, kw = layer.kernel
    chunk = KernelChunk(0, chunk_rows, 0, chunk_cols, 0, depth)
    g = geometry(layer, chunk, rows, cols, fold, params)
    chunks = -(-kh // chunk_rows) * -(-kw // chunk_cols) * (1 if layer.depthwise else -(-channels // depth))
    act_size = -(-g.lv1_bytes // word) * word
    weight_size = g.block_count * params.rows * params.out_channels
    groups = -(-min(params.out_channels, layer.weights.shape[0]) // params.vec_lanes)
    out_size = -(-rows * cols * groups * params.vec_lanes // word) * word
    params_size = params_bytes(params)
    table = TABLE_BYTES if layer.requantise.table is not None else 0
    free = params.lv1_bytes - 2 * out_size - PARAMS_SLOTS * params_size - -(-table // word) * word
    if layer.addition:
        free -= 2 * out_size + sum_params_bytes(params)
    group = 1 if pixels_outer else _group(layer, params, chunks, weight_size, act_size, free)
    constants = weight_size if group == 1 else group * (weight_size + params_size)
    act_slots, weight_slots = _slots(free, act_size, constants, chunks, pixels_outer)
    if act_slots < 2 or weight_slots < 2:
        return None
    tiles = sum(-(-region.rows // rows) * -(-region.cols // cols) for region in layer.regions) * load.images
    cycles = _estimate(
        layer, load, params, g, rows, cols, chunks, tiles, pixels_outer, act_slots, weight_slots, fold, group
    )
    return ConvPlan(
        rows, cols, chunk_rows, chunk_cols, 1 if layer.depthwise else depth, fold, pixels_outer, act_size, weight_size,
        out_size, params_size, act_slots, weight_slots, cycles, group,
    )  # fmt: skip


def _balance(layer: ConvLayer, load: TilingContext, rows: int, cols: int) -> float:
    """How much longer the engine with the most work takes than with equal parts: of the channel tiles, or of the pixel
    tiles in order, whichever is better."""
    sizes = [
        np.outer(_cuts(region.rows, rows), _cuts(region.cols, cols)).ravel() for region in layer.regions
    ]  # fmt: skip
    done = np.concatenate(([0], np.cumsum(np.tile(np.concatenate(sizes), load.images))))
    bounds = [(len(done) - 1) * i // load.engines for i in range(load.engines + 1)]
    by_pixels = float(np.diff(done[bounds]).max() * load.engines / done[-1])
    return min(by_pixels, imbalance(len(layer.tiles), load.engines))


def _cuts(length: int, step: int) -> list[int]:
    return [min(step, length - at) for at in range(0, length, step)]


def _group(
    layer: ConvLayer, params: SocParams, chunks: int, weight_size: int, act_size: int, free: int
) -> int:  # fmt: skip
    """Channel tiles of a depthwise layer whose constants go together: all, as long as three buffers for them leave LV1
    room for four of activations."""
    if not layer.depthwise or chunks > 1 or len(layer.regions) > 1:
        return 1
    if (layer.weights == layer.weights[:1]).all():  # as in an average pool: alone, they need come from DRAM only once
        return 1
    spare = (free - 4 * act_size) // (3 * (weight_size + params_bytes(params)))
    return max(1, min(spare, len(layer.tiles)))


def _slots(free: int, act: int, weight: int, chunks: int, pixels_outer: bool) -> tuple[int, int]:
    """Buffers for activations and weights: two of each, and as many as useful of what the inner loop uses again."""
    spare = free - 2 * act - 2 * weight
    if spare < 0:
        return 0, 0
    act_slots = weight_slots = 2
    if pixels_outer:
        extra = min(chunks, spare // act)
        act_slots += extra
        weight_slots += min(2, (spare - extra * act) // weight)
    else:
        extra = min(chunks, spare // weight)
        weight_slots += extra
        act_slots += min(2, (spare - extra * weight) // act)
    return act_slots, weight_slots


def _estimate(
    layer: ConvLayer, load: TilingContext, params: SocParams, g: TileGeometry, rows: int, cols: int, chunks: int,
    tiles: int,    pixels_outer: bool, act_slots: int, weight_slots: int, fold: bool, group: int,
) -> int:  # fmt: skip
    """Cycles of the busiest unit if one engine did it all, plus a little of all the others for what does not overlap,
    and the time until the first tile is there, while all engines load theirs from DRAM."""
    word, channel_tiles = params.lv1_word, len(layer.tiles)
    pixels = sum(region.rows * region.cols for region in layer.regions) * load.images
    steps = channel_tiles * tiles * chunks
    weight_bytes = g.block_count * params.rows * params.out_channels
    share = pixels / (tiles * rows * cols)  # of a full tile, on average
    batch = max(1, min(channel_tiles, load.window // max(1, weight_bytes * chunks)))
    passes = -(-channel_tiles // batch)
    shared = pixels_outer and not layer.depthwise  # depthwise channel tiles have no input in common
    act_loads = {
        1: tiles * chunks * passes if shared and act_slots >= chunks else steps,
        0: tiles * chunks * passes if shared and chunks <= 2 else steps,
    }
    weight_loads = {
        1: channel_tiles * chunks if not pixels_outer and weight_slots >= chunks else steps,
        0: channel_tiles * chunks if not pixels_outer and chunks <= 2 else steps,
    }
    act_words = share * g.lv0_bytes / word
    if layer.depthwise:
        act_words = share * g.in_rows * g.in_cols
    elif fold:
        act_words = share * g.in_rows * cols * -(-g.pixel_words * params.rows // word)
    runs = share * g.in_rows * g.in_cols
    ld1_words = max(share * g.lv1_bytes / word, 0 if fold else runs * -(-g.pixel_bytes // word))
    if layer.depthwise:
        channels = max(tile.channels for tile in layer.tiles)
        ld1_words = runs * words_per_run(load.pitch, min(channels, word), word)
    mac = steps * UNIT_START + channel_tiles * pixels * chunks * g.block_count
    mac = max(mac, steps * g.block_count * params.rows)
    ld0 = act_loads[0] * (UNIT_START + act_words) + weight_loads[0] * (UNIT_START + weight_bytes / word)
    ld1 = act_loads[1] * (UNIT_START + ld1_words) + weight_loads[1] * (UNIT_START / group + weight_bytes / word)
    if layer.addition:
        ld1 += channel_tiles * (tiles * UNIT_START + pixels)
    vec = channel_tiles * (tiles * UNIT_START + pixels * params.vec_groups) * (2 if layer.addition else 1)
    dram = weight_bytes * chunks * channel_tiles / params.dram_bytes_per_cycle
    if load.in_dram:
        repeats = passes if pixels_outer else channel_tiles
        dram += (
            repeats
            * tiles
            * chunks
            * (UNIT_START + params.dram_latency / 4 + share * g.lv1_bytes / params.dram_bytes_per_cycle)
        )
    instructions = (
        steps + sum(act_loads.values()) + weight_loads[0] + weight_loads[1] / group + 2 * channel_tiles * tiles
    )
    fetch = instructions * INSN_BYTES / params.dram_bytes_per_cycle
    # Results of a single channel tile go to DRAM in short runs, each a burst of its own.
    stores = channel_tiles * pixels * _SHORT_RUN if load.out_dram and not pixels_outer else 0
    balance = _balance(layer, load, rows, cols) if layer.depthwise else 1.0
    units = [balance * unit for unit in (mac, ld0, ld1, vec)] + [dram, fetch, stores]
    start = 0.0
    if load.in_dram:
        start = (
            rows * cols * g.lv1_bytes * chunks / (g.in_rows * g.in_cols) / params.dram_bytes_per_cycle * load.engines
        )
        if pixels_outer:  # all weights come during the first pixel tile, and input beside them
            first = rows * cols * chunks * g.block_count * channel_tiles / load.engines
            start += max(0.0, 2 * weight_bytes * chunks * channel_tiles / params.dram_bytes_per_cycle - first)
    return int(max(units) + 0.05 * sum(units) + start * load.engines)
