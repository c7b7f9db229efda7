"""What the back end executes: operators of the graph in the few forms that the units know; how engines share them."""

from compiler.plan.layers import pools, slopes
from compiler.plan.layers.channel_packing import PeChannels, interleaved, pe_channels
from compiler.plan.layers.layer import (
    ChannelTile,
    ConvLayer,
    EltwiseLayer,
    HostLayer,
    Layer,
    LoadLayer,
    MoveLayer,
    NormLayer,
    PadLayer,
    ProductLayer,
    RefillLayer,
    SoftmaxLayer,
    StoreLayer,
    StridedCopy,
    WindowLayer,
)  # fmt: skip
from compiler.plan.layers.narrow_tiles import imbalance_of_tiles, pixel_parts
from compiler.plan.layers.region_share import EngineShare, MatrixRows, Share, first_row, imbalance, own_rows
from compiler.plan.layers.vec_params import (
    PARAMS_SLOTS,
    conv_params_bytes,
    params_bytes,
    sum_params_bytes,
    uniform_params,
    vec_params,
)  # fmt: skip

__all__ = [
    "PARAMS_SLOTS", "ChannelTile", "ConvLayer", "EltwiseLayer", "EngineShare", "HostLayer", "Layer", "LoadLayer",
    "MatrixRows", "MoveLayer", "NormLayer", "PadLayer", "PeChannels", "ProductLayer", "RefillLayer", "Share",
    "SoftmaxLayer", "StoreLayer", "StridedCopy", "WindowLayer", "conv_params_bytes", "first_row", "imbalance",
    "imbalance_of_tiles", "interleaved", "own_rows", "params_bytes", "pe_channels", "pixel_parts", "pools", "slopes",
    "sum_params_bytes", "uniform_params", "vec_params",
]  # fmt: skip
