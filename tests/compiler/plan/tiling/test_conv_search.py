"""Tilings of convolutions: every kernel element once, everything within its memory, close to the MAC bound."""

from collections import Counter

import pytest
from hypothesis import given, settings, strategies as st

from compiler.pipeline import build
from compiler.plan.layers.layer import ConvLayer
from compiler.plan.layers.lower import lower
from compiler.plan.layers.vec_params import PARAMS_SLOTS
from compiler.plan.options import Options
from compiler.plan.tiling.conv_search import best_tiling
from compiler.plan.tiling.conv_tiling import TilingContext, geometry, pixel_tiles
from hw.contract.isa import Segment
from hw.contract.params import PRESETS, SocParams, preset
from tests.support.graphs import GraphBuilder

KERNELS = st.tuples(st.integers(1, 9), st.integers(1, 9))


def _layer(params: SocParams, shape: tuple[int, int, int, int], outs: int, **options) -> ConvLayer:
    build = GraphBuilder(0)
    build.conv(build.input(shape), outs, **options)
    (layer,) = lower(build.graph, params)
    assert isinstance(layer, ConvLayer)
    return layer


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(sorted(PRESETS)), KERNELS, st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.integers(0, 30), st.integers(0, 30)), st.integers(1, 70), st.integers(1, 70), st.booleans(),
    st.booleans(),
)  # fmt: skip
def test_a_tiling_covers_everything_and_fits(name, kernel, strides, extra, depth, outs, depthwise, in_dram):
    params = preset(name)
    shape = (1, kernel[0] + extra[0], kernel[1] + extra[1], depth)
    groups = depth if depthwise else 1
    layer = _layer(params, shape, depth if depthwise else outs, kernel=kernel, strides=strides, groups=groups)
    tiling = best_tiling(layer, TilingContext(1, in_dram, False, params.lv2_bytes // 8), params)

    tiles = pixel_tiles(layer, tiling.rows, tiling.cols, 1)
    pixels = Counter((y, x) for t in tiles for y in range(t.y, t.y + t.rows) for x in range(t.x, t.x + t.cols))
    area = layer.areas[0]
    assert set(pixels.values()) == {1} and len(pixels) == area.rows * area.cols
    assert max(tile.pixels for tile in tiles) <= params.lv0_acc_rows // 2

    channels = layer.tiles[0].channels
    elements: Counter[tuple[int, int, int]] = Counter()
    for chunk in tiling.chunks(layer, channels):
        for i in range(chunk.row, chunk.row + chunk.rows):
            for j in range(chunk.col, chunk.col + chunk.cols):
                elements.update((i, j, c) for c in range(chunk.channel, chunk.channel + chunk.channels))
        g = geometry(layer, chunk, tiling.rows, tiling.cols, tiling.fold, params)
        assert g.lv0_bytes <= params.lv0_act_bytes // 2 and g.lv1_bytes <= tiling.act_size
        assert g.block_count * params.rows * params.cols <= params.lv0_wgt_bytes // 2
    kh, kw = layer.kernel
    assert set(elements.values()) == {1} and len(elements) == kh * kw * channels

    rings = tiling.act_slots * tiling.act_size + tiling.weights_lv1
    assert rings + 2 * tiling.out_size + PARAMS_SLOTS * tiling.params_size <= params.lv1_bytes


def test_the_first_layer_folds_columns_into_channels():
    layer = _layer(preset("base"), (1, 224, 224, 3), 64, kernel=(7, 7), strides=(2, 2), pads=(3, 3, 3, 3))
    tiling = best_tiling(layer, TilingContext(1, True, False, 1 << 18), preset("base"))
    assert tiling.fold


@pytest.mark.parametrize(
    ("shape", "outs", "kernel", "bound"),
    [
        ((1, 56, 56, 64), 64, (3, 3), 0.95),
        ((1, 28, 28, 128), 512, (1, 1), 0.95),
        ((1, 14, 14, 256), 256, (3, 3), 0.95),
        ((1, 7, 7, 512), 512, (3, 3), 0.93),
    ],
)
def test_estimate_of_inner_layers_is_near_the_mac_bound(shape, outs, kernel, bound):
    """Input and output in LV2, as between layers of a network."""
    params = preset("base")
    builder = GraphBuilder(0)
    pad = kernel[0] // 2
    x = builder.table(builder.input(shape))
    y = builder.conv(x, outs, kernel, pads=(pad, pad, pad, pad))
    builder.output(builder.pool("max", y, (2, 2), (1, 1)))
    image, plan = build(builder.graph, params, Options(regions=False))
    homes = {name: buffer.segment for buffer in plan.memory.buffers for name in buffer.tensors}
    assert homes[x] == homes[y] == Segment.LV2
    layer = image.meta.layers[1]
    assert layer.macs / (params.macs / params.engines) > bound * layer.estimated_compute


def test_deep_rows_in_dram_are_not_read_for_each_tile_of_channels():
    """LV1 holds all parts of a pixel tile, so that the weights that are on chip meet all of it."""
    params = preset("base")
    layer = _layer(params, (1, 1, 1500, 1536), 384, kernel=(1, 1))
    tiling = best_tiling(layer, TilingContext(1, True, True, 147456, 2, 1536, params.lv1_bytes, 454272), params)
    parts = len(list(tiling.chunks(layer, 1536)))
    assert tiling.pixels_outer and parts <= tiling.act_slots
