"""The search for the tiling of a convolution: the cheapest, by an estimate of each unit's cycles, that fits.

The smallest candidate is one pixel, one kernel element and ``rows`` channels, so the search fails only on hardware
whose memories hold no tile at all.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from compiler.ir import CompileError
from compiler.plan.layers.layer import ConvLayer
from compiler.plan.layers.narrow_tiles import imbalance_of_tiles
from compiler.plan.layers.vec_params import PARAMS_SLOTS, conv_params_bytes, sum_params_bytes
from compiler.plan.tiling.conv_tiling import (
    ConvTiling,
    KernelChunk,
    TileGeometry,
    TilingContext,
    geometry,
    last_column_alone,
)
from compiler.plan.work import staged_together, tiled_conv
from hw.contract.isa import INSN_BYTES, TABLE_BYTES
from hw.contract.params import SocParams
from sim.cost import SHORT_RUN, UNIT_START, load_cycles, moved, overlapped, tile_load_cycles, work_cycles


def best_tiling(layer: ConvLayer, context: TilingContext, params: SocParams) -> ConvTiling:
    """Return the cheapest tiling, the first of equals. Raises :class:`CompileError` if the memories hold not even the
    smallest tile."""
    best: tuple[int, ConvTiling] | None = None
    for cycles, tiling in _tilings(layer, context, params):
        if best is None or cycles < best[0]:
            best = cycles, tiling
    if best is None:
        raise CompileError(
            f"operator {layer.name!r}: not even one output pixel fits LV1 ({context.lv1(params)} bytes) and LV0 "
            f"({params.lv0_act_bytes} bytes of activations): choose a preset with larger memories"
        )
    return best[1]


@dataclass(frozen=True)
class _Cut:
    """A tile of ``rows`` x ``cols`` pixels, and the part of the kernel that a chunk covers at most."""

    rows: int
    cols: int
    chunk_rows: int
    chunk_cols: int
    fold: bool
    depth: int = 0  #: input channels

    def geometry(self, layer: ConvLayer, params: SocParams) -> TileGeometry:
        """Return how the largest chunk works on the tile."""
        chunk = KernelChunk(0, self.chunk_rows, 0, self.chunk_cols, 0, self.depth)
        return geometry(layer, chunk, self.rows, self.cols, self.fold, params)


def _tilings(layer: ConvLayer, context: TilingContext, params: SocParams) -> Iterator[tuple[int, ConvTiling]]:
    """Tilings that fit, with their estimated cycles."""
    channels = max(tile.channels for tile in layer.tiles)
    height = max(area.rows for area in layer.areas)
    width = max(area.cols for area in layer.areas)
    kh, kw = layer.kernel
    r = params.rows
    folds = [False]
    if _foldable(layer) and -(-kw * channels // r) < kw * -(-channels // r):
        folds.append(True)
    splits = [(rows, kw) for rows in sorted({kh, -(-kh // 2), -(-kh // 3), 1}, reverse=True)]
    splits += [(1, cols) for cols in sorted({-(-kw // 2), -(-kw // 4), 1}, reverse=True) if cols < kw]
    if ahead := last_column_alone(layer, params):
        splits.insert(0, (kh, ahead))
    for rows, cols in _tile_shapes(height, width, params.lv0_acc_rows // 2):
        fits = False
        for fold in folds:
            for chunk_rows, chunk_cols in splits:
                if fold and chunk_cols != kw:
                    continue
                cut = _deepest(layer, channels, _Cut(rows, cols, chunk_rows, chunk_cols, fold), params)
                if cut is None:
                    continue
                for outer in (True, False):
                    found = _tiling(layer, context, params, channels, cut, outer)
                    if found:
                        fits = True
                        yield found
                if cut.depth >= channels and chunk_cols != ahead:
                    break  # smaller parts of the kernel only add instructions
        if fits and rows * cols <= params.rows:
            return


def sized_tiling(
    layer: ConvLayer, context: TilingContext, params: SocParams, given: ConvTiling
) -> ConvTiling | None:  # fmt: skip
    """Return the tiling with the pixels, chunks and loops of ``given``, in which everything else follows; None if the
    memories cannot hold it, or no search would make such chunks."""
    channels, kw = max(tile.channels for tile in layer.tiles), layer.kernel[1]
    depth = channels if layer.by_channels else given.chunk_channels
    cut = _Cut(given.rows, given.cols, given.chunk_rows, given.chunk_cols, given.fold, depth)
    whole = layer.by_channels or given.fold
    possible = (  # a chunk may be larger than the kernel: that of a longer length, which then is one chunk
        given.rows * given.cols <= params.lv0_acc_rows // 2
        and depth <= channels and (depth == channels or (not whole and depth % params.rows == 0))
        and (not given.fold or (_foldable(layer) and given.chunk_cols == kw)) and _fits(layer, cut, params)
    )  # fmt: skip
    found = _tiling(layer, context, params, channels, cut, given.pixels_outer) if possible else None
    return found and found[1]


def _foldable(layer: ConvLayer) -> bool:
    """Return whether neighbouring columns of the kernel can be taken as channels."""
    return not layer.depthwise and layer.groups == 1 and layer.dilations[1] == 1 and layer.kernel[1] > 1


def _fits(layer: ConvLayer, cut: _Cut, params: SocParams) -> bool:
    """Return whether the largest chunk of ``cut`` fits the LV0 halves."""
    g, blocks = cut.geometry(layer, params), params.lv0_wgt_bytes // 2 // (params.rows * params.cols)
    return g.lv0_bytes <= params.lv0_act_bytes // 2 and g.block_count <= blocks and max(g.blocks) < 1 << 12


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


def _deepest(layer: ConvLayer, channels: int, cut: _Cut, params: SocParams) -> _Cut | None:
    """``cut`` with most input channels per chunk that fit the LV0 halves, balanced; None if not even one word does."""
    word = params.rows
    whole = layer.by_channels or cut.fold

    def fits(depth: int) -> bool:
        return _fits(layer, replace(cut, depth=depth), params)

    if not fits(channels if whole else word):
        return None
    if whole:
        return replace(cut, depth=channels)
    low, high = 1, -(-channels // word)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle * word) else (low, middle - 1)
    words = -(-channels // word)
    parts = -(-words // low)
    return replace(cut, depth=min(channels, -(-words // parts) * word))


def _tiling(
    layer: ConvLayer, context: TilingContext, params: SocParams, channels: int, cut: _Cut, pixels_outer: bool
) -> tuple[int, ConvTiling] | None:
    """Return a tiling with its estimate, or None if LV1 is too small for it."""
    word, rows, cols = params.lv1_word, cut.rows, cut.cols
    kh, kw = layer.kernel
    g = cut.geometry(layer, params)
    chunks = -(-kh // cut.chunk_rows) * -(-kw // cut.chunk_cols) * -(-channels // cut.depth)
    act_size = -(-g.lv1_bytes // word) * word
    weight_size = g.block_count * params.rows * params.out_channels
    groups = -(-min(params.out_channels, layer.weights.shape[0]) // params.vec_lanes)
    out_size = -(-rows * cols * groups * params.vec_lanes // word) * word
    params_size = conv_params_bytes(layer, params)
    table = TABLE_BYTES if layer.table is not None else 0
    free = context.lv1(params) - 2 * out_size - PARAMS_SLOTS * params_size - -(-table // word) * word
    if layer.addition:
        free -= (2 * out_size if layer.addition.constant is None else 0) + sum_params_bytes(params)
    group = 1 if pixels_outer else _group(layer, params, chunks, weight_size, act_size, free)
    constants = weight_size if group == 1 else group * (weight_size + params_size)
    act_slots, weight_slots = _slots(free, act_size, constants, chunks, pixels_outer, params)
    if act_slots < 2 or weight_slots < 2:
        return None
    tiling = ConvTiling(
        rows, cols, cut.chunk_rows, cut.chunk_cols, 1 if layer.by_channels else cut.depth, cut.fold, pixels_outer,
        act_size, weight_size, out_size, params_size, act_slots, weight_slots, group,
    )  # fmt: skip
    return estimate(layer, context, params, tiling, g, chunks), tiling


def _group(
    layer: ConvLayer, params: SocParams, chunks: int, weight_size: int, act_size: int, free: int
) -> int:  # fmt: skip
    """Channel tiles of a depthwise or packed layer whose constants go together: all, as long as three buffers for them
    leave LV1 room for four of activations."""
    if not layer.by_channels or chunks > 1 or len(layer.areas) > 1:
        return 1
    if layer.uniform:  # alone, weights need come from DRAM only once
        return 1
    spare = (free - 4 * act_size) // (3 * (weight_size + conv_params_bytes(layer, params)))
    return max(1, min(spare, len(layer.tiles)))


def _slots(
    free: int, act: int, weight: int, chunks: int, pixels_outer: bool, params: SocParams
) -> tuple[int, int]:  # fmt: skip
    """Return how many buffers there are for activations and weights: two of each, and as many as useful of what the
    inner loop uses again, of which a semaphore can count the buffers."""
    spare = free - 2 * act - 2 * weight
    if spare < 0:
        return 0, 0
    act_slots = weight_slots = 2
    if pixels_outer:
        extra = min(chunks, spare // act, params.semaphore_max - 2)
        act_slots += extra
        weight_slots += min(2, (spare - extra * act) // weight)
    else:
        extra = min(chunks, spare // weight, params.semaphore_max - 2)
        weight_slots += extra
        act_slots += min(2, (spare - extra * weight) // act)
    return act_slots, weight_slots


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
    all_weights = work.weight_bytes * (weights0 if layer.uniform else chunks * channel_tiles)
    dram = moved(all_weights, params)
    if context.in_dram and layer.by_channels:
        loads = _own_loads(layer, context, params, tiling, g, work.share * work.tiles * chunks)
        dram += loads * context.engines
    elif context.in_dram:
        load, depth = moved(work.share * g.lv1_bytes, params, 1), max(tile.channels for tile in layer.tiles)
        if tiling.chunk_channels < depth:  # short runs, maybe read again and again, and engines share DRAM
            runs = work.share * load_cycles(g.in_rows * g.in_cols, tiling.chunk_channels, params)
            dram += acts1 * max(load, moved(0, params, 1) + runs) * context.engines
        else:
            dram += (work.passes if pixels_outer else channel_tiles) * work.tiles * chunks * load
    instructions = work.steps + acts0 + acts1 + weights0 + weights1 / tiling.group + 2 * channel_tiles * work.tiles
    fetch = moved(instructions * INSN_BYTES, params)
    # Results of a single channel tile go to DRAM in short runs, each a burst of its own.
    stores = channel_tiles * work.pixels * SHORT_RUN if context.out_dram and not pixels_outer else 0
    balance = _balance(layer, context, params, rows, cols) if layer.by_channels else 1.0
    units = [balance * unit for unit in (mac, ld0, ld1, vec)] + [dram, fetch, stores]
    start = 0.0
    if context.in_dram:
        start = moved(rows * cols * g.lv1_bytes * chunks / (g.in_rows * g.in_cols), params) * context.engines
        if pixels_outer:  # all weights come during the first pixel tile, and input beside them
            first = rows * cols * chunks * g.block_count * channel_tiles / context.engines
            start += max(0.0, moved(2 * all_weights, params) - first)
    return int(overlapped(units) + start * context.engines)


def _own_loads(
    layer: ConvLayer, context: TilingContext, params: SocParams, tiling: ConvTiling, g: TileGeometry, tiles: float
) -> float:
    """Return the cycles of DRAM for the input of a depthwise or packed layer, which are ``tiles`` whole pixel tiles: of
    all channels by one load if channel tiles are the inner loop and there is room, else of each in short runs."""
    depth, channels = layer.groups * layer.weights.shape[3], max(tile.channels for tile in layer.tiles)
    together = tiling.pixels_outer and staged_together(g.in_rows * g.in_cols, depth, context.staging)
    start = moved(0, params, 1 if together else len(layer.tiles))
    return tiles * (start + tile_load_cycles(g.in_rows, g.in_cols, channels, depth, together, params))


def _balance(layer: ConvLayer, context: TilingContext, params: SocParams, rows: int, cols: int) -> float:
    """Return how much longer the engine with the most work takes than with equal parts: of the channel tiles, or of the
    pixel tiles in order, whichever is better."""
    sizes = [
        np.outer(_lengths(area.rows, rows), _lengths(area.cols, cols)).ravel() for area in layer.areas
    ]  # fmt: skip
    done = np.concatenate(([0], np.cumsum(np.tile(np.concatenate(sizes), context.images))))
    bounds = [(len(done) - 1) * i // context.engines for i in range(context.engines + 1)]
    by_pixels = float(np.diff(done[bounds]).max() * context.engines / done[-1])
    return min(by_pixels, imbalance_of_tiles(layer, params, context.engines))


def _lengths(length: int, step: int) -> list[int]:
    return [min(step, length - at) for at in range(0, length, step)]
