"""The bytes of a convolution that depend on its weights: said without them, and made of them."""

from dataclasses import dataclass

import numpy as np

from compiler.backend.kernels.weight_blocks import tile_weights, weight_blocks
from compiler.backend.layers.layer import ChannelTile, ConvLayer
from compiler.backend.layers.vec_params import vec_params
from compiler.backend.tiling.conv_geometry import KernelChunk
from hw.contract.params import SocParams


@dataclass(frozen=True)
class ConvData:
    """Blocks of weights (``weights``: channel tile and part of the kernel of each), then blocks of VEC parameters
    (``params``: channel tile and area), of the convolution that makes tensor ``output``. ``fold``: see
    :func:`weight_blocks`. Layers that differ in nothing but weights are made of equal parts."""

    output: str
    fold: bool
    weights: tuple[tuple[ChannelTile, KernelChunk], ...] = ()
    params: tuple[tuple[ChannelTile, int], ...] = ()


def conv_data(part: ConvData, layer: ConvLayer, params: SocParams) -> bytes:
    """The bytes of ``part``, which is one of ``layer``."""
    blocks = [
        weight_blocks(layer, tile_weights(layer, tile), chunk, part.fold, params) for tile, chunk in part.weights
    ]
    return b"".join([*blocks, *(_vec_params(layer, tile, area, params) for tile, area in part.params)])


def _vec_params(layer: ConvLayer, tile: ChannelTile, area: int, params: SocParams) -> bytes:
    q, where = layer.requantise, layer.areas[area]
    bias, scale = (a[tile.out : tile.out + tile.outs] for a in (where.bias, where.scale))
    extra = (0, params.out_channels - tile.outs)
    return vec_params(params, np.pad(bias, extra), np.pad(scale, extra), zp_y=q.zero_point, lo=q.lo, hi=q.hi)
