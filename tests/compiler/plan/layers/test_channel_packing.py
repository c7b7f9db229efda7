"""Packed groups: every PE reads the channels of its own outputs, and fewer words than if all read what one needs."""

import pytest
from hypothesis import given, settings, strategies as st

from compiler.plan.layers.channel_packing import interleaved, packed_channels, pe_channels
from compiler.plan.layers.layer import ConvLayer
from compiler.plan.layers.lower import channel_tiles, lower
from hw.contract.params import PRESETS, SocParams, preset
from tests.support.graphs import GraphBuilder


def grouped(params: SocParams, groups: int, group_in: int, group_out: int) -> ConvLayer:
    make = GraphBuilder(0)
    make.conv(make.input((1, 3, 3, groups * group_in)), groups * group_out, groups=groups)
    (layer,) = lower(make.graph, params)
    assert isinstance(layer, ConvLayer)
    return layer


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(sorted(PRESETS)), st.integers(2, 20), st.integers(1, 40), st.integers(1, 40))
def test_a_pe_reads_all_that_its_outputs_need(name, groups, group_in, group_out):
    params = preset(name)
    layer = grouped(params, groups, group_in, group_out)
    if not layer.pe_channels:
        return
    for tile in layer.tiles:
        reads = pe_channels(layer, tile, params)
        assert sum(part.mask for part in reads) == (1 << params.pes) - 1, "each PE is loaded once"
        for out in range(tile.out, tile.out + tile.outs):
            (part,) = (one for one in reads if one.mask >> (out - tile.out) // params.cols & 1)
            first = tile.first + part.first
            needed = out // group_out * group_in
            assert first <= needed and needed + group_in <= first + layer.pe_channels
            assert needed + group_in <= tile.first + tile.channels
            if interleaved(layer, params):
                assert part.first == (out - tile.out) // params.cols * params.rows


@pytest.mark.parametrize(
    ("name", "groups", "group_in", "group_out", "packed"),
    [
        ("base", 16, 2, 2, 8), ("base", 16, 4, 4, 8), ("base", 13, 8, 8, 8), ("base", 8, 16, 16, 16),
        ("base", 4, 24, 24, 24), ("base", 32, 1, 2, 4), ("base", 4, 32, 32, 0), ("base", 8, 12, 12, 0),
        ("tiny", 8, 2, 2, 4), ("tiny", 8, 4, 4, 4), ("tiny", 4, 8, 8, 0), ("cluster64", 8, 32, 32, 32),
        ("base", 3, 8, 32, 0), ("base", 3, 8, 40, 8), ("base", 40, 1, 1, 0),
    ],
)  # fmt: skip
def test_which_layers_are_packed(name, groups, group_in, group_out, packed):
    """Nothing is packed where a tile has but one group, where one begins within a PE, or where no word is saved."""
    layer = grouped(preset(name), groups, group_in, group_out)
    assert layer.pe_channels == packed
    assert layer.by_channels == (packed > 0 or layer.depthwise)


def test_what_exceeds_lv0_is_not_packed():
    """A chunk has all channels of a PE, and a half of LV0 has room for 32 blocks of weights."""
    params = preset("base")
    for group, packed in ((8 * 31, 8 * 31), (8 * 33, 0)):
        tiles = channel_tiles(4 * group, 4, group, params, False)
        assert packed_channels(tiles, 4 * group, 4, group, params) == packed
