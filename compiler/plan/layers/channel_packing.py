"""Grouped convolutions whose groups lie side by side in the arrays of an engine: a PE reads the input channels of its
own outputs alone, so that its rows do not multiply those of other groups by zero."""

from collections.abc import Sequence
from typing import NamedTuple

from compiler.plan.layers.layer import ChannelTile, ConvLayer
from hw.contract.params import SocParams


class PeChannels(NamedTuple):
    """Says that the PEs of ``mask`` read a tile's input channels from ``first`` on, counted from the first of the
    tile."""

    first: int
    mask: int


def packed_channels(tiles: Sequence[ChannelTile], outs: int, groups: int, group_in: int, params: SocParams) -> int:
    """Return how many input channels a PE reads if ``tiles`` are packed, of a convolution with ``outs`` outputs in
    ``groups`` of ``group_in`` inputs each; 0 where packing saves no word, or a group begins within a PE and ends in
    another."""
    group_out, rows = outs // groups, params.rows
    if group_out % params.cols and params.cols % group_out:
        return 0
    channels = group_in * max(group_out, params.cols) // group_out
    words, unpacked = -(-channels // rows), max(-(-tile.channels // rows) for tile in tiles)
    # A chunk has all channels of a PE: one element of the kernel must fit half of LV0.
    room = min(params.lv0_wgt_bytes // 2 // (rows * params.cols), params.lv0_act_bytes // 2 // rows)
    return channels if words < unpacked and words <= room else 0


def interleaved(layer: ConvLayer, params: SocParams) -> bool:
    """Return whether the PEs of a packed layer read a word each, one behind the other: one load serves them all."""
    return layer.pe_channels == params.rows and layer.weights.shape[0] // layer.groups <= params.cols


def pe_channels(layer: ConvLayer, tile: ChannelTile, params: SocParams) -> list[PeChannels]:
    """Return what each PE reads of ``tile`` of a packed layer, one entry for those that read the same; PEs without
    outputs read what the last one with some does."""
    group_in, group_out = layer.weights.shape[3], layer.weights.shape[0] // layer.groups
    masks: dict[int, int] = {}
    for pe in range(params.pes):
        out = tile.out + min(pe, (tile.outs - 1) // params.cols) * params.cols
        first = out // group_out * group_in - tile.first
        masks[first] = masks.get(first, 0) | 1 << pe
    return [PeChannels(first, mask) for first, mask in masks.items()]
