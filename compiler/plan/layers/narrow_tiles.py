"""Channel tiles with few outputs: the columns of the arrays that they leave free compute other pixels.

The PEs of an engine are in as many sets as vectors cover its outputs. If a tile's outputs are no more than the lanes of
a vector, each set computes a part of the pixels, with weights and parameters of its own copy.
"""

from collections.abc import Sequence

from compiler.plan.layers.layer import ChannelTile, ConvLayer
from compiler.plan.layers.region_share import EngineShare
from hw.contract.params import SocParams


def pixel_parts(layer: ConvLayer, tile: ChannelTile, params: SocParams) -> int:
    """Return in how many parts the pixels of ``tile`` are computed side by side. One where vectors are as wide as all
    outputs of an engine, or where channel tiles read channels of their own."""
    return params.vec_groups if tile.outs <= params.vec_lanes and not layer.by_channels else 1


def imbalance_of_tiles(layer: ConvLayer, params: SocParams, engines: int) -> float:
    """Return how much longer the engine with the most to multiply takes than a perfect part, if ``engines`` share the
    channel tiles of ``layer``."""
    times = [1 / pixel_parts(layer, tile, params) for tile in layer.tiles]
    return max(_parts(times, engines)) * engines / sum(times)


def _parts(times: Sequence[float], engines: int) -> list[float]:
    return [sum(EngineShare(engine, engines).of(times)) for engine in range(engines)]
