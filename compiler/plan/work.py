"""Tells what a layer asks of the units of all engines, before anything of it is compiled: as shapes, and as bytes that
move.

:func:`layer_work` knows no tiling: searches for orders, regions and splits go by it. :func:`tiled_conv` counts what a
convolution does with a tiling, which the search for tilings goes by.
"""

import math
from typing import NamedTuple

from compiler import ir
from compiler.plan.layers.channel_packing import interleaved, pe_channels
from compiler.plan.layers.layer import (
    ConvLayer,
    EltwiseLayer,
    HostLayer,
    Layer,
    NormLayer,
    ProductLayer,
    SoftmaxLayer,
    WindowLayer,
)
from compiler.plan.layers.narrow_tiles import pixel_parts
from compiler.plan.layers.origin import is_in_place
from compiler.plan.memory.pixel_pitch import words_per_run
from compiler.plan.tiling.conv_tiling import (
    ConvTiling,
    TileGeometry,
    TilingContext,
    depthwise_blocks,
    last_column_alone,
)
from compiler.plan.tiling.tile_parts import tile_parts
from hw.contract.isa import WIDE_BYTES
from hw.contract.params import SocParams
from sim.cost import MacShape, VecShape

_SOFTMAX_PASSES = 3.4  #: cycles of a vector: maximum, sum and quotient, with what two tables take


class LayerWork(NamedTuple):
    """Holds the shapes of ``mac`` and ``vec``, bytes ``loaded`` into LV1 and ``stored`` from there, and bytes of
    ``weights``. With ``copies``, the layer does nothing but copy."""

    mac: tuple[MacShape, ...] = ()
    vec: tuple[VecShape, ...] = ()
    loaded: int = 0
    stored: int = 0
    weights: int = 0
    copies: bool = False


def layer_work(graph: ir.Graph, layer: Layer, params: SocParams) -> LayerWork | None:
    """Return the work of ``layer`` if its tensors lie in LV2, or None if no engine has any."""
    if isinstance(layer, HostLayer) or is_in_place(graph, layer.op):
        return None
    loaded, stored = (sum(graph.tensors[name].size for name in names) for names in (layer.inputs, layer.outputs))
    vectors, moved = stored / params.vec_lanes, (loaded, stored)
    if isinstance(layer, ConvLayer):
        mac = _convolved(graph, layer, params)
        weights = sum(shape.blocks for shape in mac) * params.rows * params.out_channels
        moved = loaded + _by_groups(graph, layer, params), stored
        if layer.uniform:  # a half of LV0 holds the largest part of the kernel, and one more is smaller
            weights = min(weights, params.lv0_wgt_bytes * params.pes)
        added = (VecShape(vectors, operands=2),) if layer.addition else ()
        return LayerWork(mac, (VecShape(vectors, operands=0), *added), *moved, weights)
    if isinstance(layer, ProductLayer):
        return LayerWork((_multiplied(graph, layer, params),), (VecShape(vectors, operands=0),), *moved)
    if isinstance(layer, WindowLayer):
        return LayerWork((), (VecShape(vectors, layer.steps(graph.tensors[layer.output].nhwc[2])),), *moved)
    if isinstance(layer, EltwiseLayer):
        return LayerWork((), (VecShape(vectors, operands=min(2, len(layer.inputs))),), *moved)
    if isinstance(layer, SoftmaxLayer):
        return LayerWork((), (VecShape(vectors, _SOFTMAX_PASSES),), *moved)
    if isinstance(layer, NormLayer):
        return LayerWork((), (VecShape(vectors, 1 + 2 * WIDE_BYTES),), *moved)
    return LayerWork((), (), *moved, copies=True)


def _by_groups(graph: ir.Graph, layer: ConvLayer, params: SocParams) -> int:
    """Return the bytes that the words have beside those of the input, out of which tiles load the channels of their
    groups; 0 if each loads all channels."""
    pixels, word = math.prod(graph.tensors[layer.inputs[0]].nhwc[:3]), params.lv1_word
    if layer.by_channels or not reads_groups(layer):
        return 0
    depth = layer.groups * layer.weights.shape[3]
    words = sum(words_per_run(depth, tile.channels, word) for tile in layer.tiles)
    return max(0, int(pixels * (words * word - depth)))


def reads_groups(layer: ConvLayer) -> bool:
    """Return whether each tile of channels of a convolution reads some of the input channels alone."""
    return max(tile.channels for tile in layer.tiles) < layer.groups * layer.weights.shape[3]


def _multiplied(graph: ir.Graph, layer: ProductLayer, params: SocParams) -> MacShape:
    _, _, rows, columns = graph.tensors[layer.output].nhwc
    columns //= layer.heads if layer.joined[2] else 1
    depth = layer.macs(graph) // graph.tensors[layer.output].size
    tiles = -(-columns // params.out_channels) * graph.tensors[layer.output].size // (rows * columns)
    return MacShape(tiles * -(-depth // params.rows), rows)


def _convolved(graph: ir.Graph, layer: ConvLayer, params: SocParams) -> tuple[MacShape, ...]:
    """Return one shape for each tile of channels."""
    (kh, kw), pixels, found = layer.kernel, math.prod(graph.tensors[layer.output].nhwc[:3]), []
    for tile in layer.tiles:
        if layer.depthwise:
            blocks = depthwise_blocks(layer, params)
        elif layer.pe_channels:
            blocks = kh * kw * -(-layer.pe_channels // params.rows)
        elif tile.channels < params.rows:  # the columns of the kernel are folded into channels
            blocks = -(-kh * kw * tile.channels // params.rows)
        else:
            blocks = kh * kw * -(-tile.channels // params.rows)
        found.append(MacShape(blocks, -(-pixels // pixel_parts(layer, tile, params))))
    return tuple(found)


class TiledConv(NamedTuple):
    """Says what a convolution does with a tiling, all engines together. It has so many ``tiles`` of pixels, which are a
    ``share`` of a full one on average, and takes so many ``steps``, a MAC instruction each. Weights come in so many
    ``passes``, of ``weight_bytes`` for each step. Loads into LV0 and LV1 of activations and of weights are counted in
    pairs, and so are the ``act_words`` of each load of activations."""

    tiles: int
    pixels: int
    share: float
    steps: int
    passes: int
    mac: MacShape
    vec: VecShape
    weight_bytes: int
    act_loads: tuple[int, int]
    weight_loads: tuple[int, int]
    act_words: tuple[float, float]


def tiled_conv(
    layer: ConvLayer, context: TilingContext, params: SocParams, tiling: ConvTiling, g: TileGeometry, chunks: int
) -> TiledConv:  # fmt: skip
    """Return the work of ``layer``, whose kernel is cut into ``chunks`` parts, the largest with the geometry ``g``."""
    channel_tiles, rows, cols = len(layer.tiles), tiling.rows, tiling.cols
    tiles = sum(-(-area.rows // rows) * -(-area.cols // cols) for area in layer.areas) * context.images
    pixels = sum(area.rows * area.cols for area in layer.areas) * context.images
    steps, share = channel_tiles * tiles * chunks, pixels / (tiles * rows * cols)
    weight_bytes = g.block_count * params.rows * params.out_channels
    passes = -(-channel_tiles // max(1, min(channel_tiles, context.window // max(1, weight_bytes * chunks))))
    # What the inner loop uses again is loaded once; channel tiles with channels of their own have no input in common.
    again, shared = tiles * chunks * passes, tiling.pixels_outer and not layer.by_channels
    # To LV0, narrow tiles load them in parts, beside those that others load whole.
    kinds = len({pixel_parts(layer, tile, params) for tile in layer.tiles})
    act_loads = (
        kinds * again if shared and chunks <= 2 else steps,
        again if shared and chunks <= tiling.act_slots else steps,
    )
    once, held = channel_tiles * chunks, not tiling.pixels_outer
    weight_loads = once if held and chunks <= 2 else steps, once if held and chunks <= tiling.weight_slots else steps
    if layer.uniform:
        alike = 1 if chunks == 1 else 2  # the last part of the kernel may be smaller
        passes, weight_loads = 1, (alike, alike)
    ahead = last_column_alone(layer, params)
    turned = ahead and (tiling.chunk_rows, tiling.chunk_cols) == (layer.kernel[0], ahead)
    blocks = depthwise_blocks(layer, params) if turned else chunks * g.block_count
    return TiledConv(
        tiles, pixels, share, steps, passes, _multiplied_parts(layer, params, tiling, blocks, pixels),
        VecShape(channel_tiles * pixels * params.vec_groups, operands=0), weight_bytes,
        act_loads, weight_loads,
        _act_words(layer, context, params, tiling, g, share),
    )  # fmt: skip


def _multiplied_parts(
    layer: ConvLayer, params: SocParams, tiling: ConvTiling, blocks: int, pixels: int
) -> MacShape:  # fmt: skip
    """Return the shape of all channel tiles together: ``blocks`` each, over ``pixels`` or parts of them."""
    parts = [tile_parts(tiling.rows, tiling.cols, pixel_parts(layer, tile, params)) for tile in layer.tiles]
    return MacShape(blocks, -(-pixels * sum(part.pixels for part in parts) // (tiling.rows * tiling.cols)))


def _act_words(
    layer: ConvLayer, context: TilingContext, params: SocParams, tiling: ConvTiling, g: TileGeometry, share: float
) -> tuple[float, float]:
    """Return the words of a load of activations into LV0, and into LV1."""
    word, runs = params.lv1_word, share * g.in_rows * g.in_cols
    if layer.by_channels:
        channels = max(tile.channels for tile in layer.tiles)
        return runs * _pe_runs(layer, params), runs * words_per_run(context.pitch, channels, word)
    if tiling.fold:
        words = share * g.in_rows * tiling.cols * -(-g.pixel_words * params.rows // word)
        return words, share * g.lv1_bytes / word
    each, channels = float(-(-g.pixel_bytes // word)), max(tile.channels for tile in layer.tiles)
    if channels < context.pitch and g.pixel_bytes >= channels:  # other channels lie between those of two pixels
        each = max(each, words_per_run(context.pitch, channels, word))
    return share * g.lv0_bytes / word, max(share * g.lv1_bytes / word, runs * each)


def _pe_runs(layer: ConvLayer, params: SocParams) -> int:
    """Return the words that go to LV0 for a pixel of a tile with channels of its own."""
    if layer.depthwise or interleaved(layer, params):
        return 1
    parts = max(len(pe_channels(layer, tile, params)) for tile in layer.tiles)
    return parts * -(-layer.pe_channels // params.lv1_word)


def staged_together(pixels: int, depth: int, staging: int) -> bool:
    """Return whether ``pixels`` of a tensor of ``depth`` channels, what a tile reads, pass through LV2 by one load: two
    buffers of them leave half of the ``staging`` bytes to others."""
    return 4 * pixels * depth <= staging


def peak_cycles(graph: ir.Graph, layer: Layer, params: SocParams) -> float:
    """Return the cycles of ``layer`` on one engine by the peak of its arithmetic or of LV2, whichever takes longer."""
    moved = sum(graph.tensors[name].size for name in (*layer.inputs, *layer.outputs))
    return max(layer.macs(graph) * params.engines / params.macs, moved / params.lv1_word)
