"""Weights in the order in which LV0 takes them."""

import numpy as np
import numpy.typing as npt

from compiler.backend.layers.layer import ChannelTile, ConvLayer
from compiler.backend.tiling.conv_geometry import KernelChunk
from hw.contract.params import SocParams


def tile_weights(layer: ConvLayer, tile: ChannelTile) -> npt.NDArray:
    """Return the weights of a channel tile: (outs, kh, kw, input channels); what other groups read is the zero
    point."""
    own = layer.weights[tile.out : tile.out + tile.outs]
    if layer.depthwise or layer.groups == 1:
        return own
    outs, kh, kw, depth = layer.weights.shape
    full = np.full((tile.outs, kh, kw, tile.channels), layer.weight_zero_point, layer.weights.dtype)
    for i in range(tile.outs):
        first = (tile.out + i) // (outs // layer.groups) * depth - tile.first
        full[i, :, :, first : first + depth] = own[i]
    return full


def weight_blocks(layer: ConvLayer, weights: npt.NDArray, chunk: KernelChunk, fold: bool, params: SocParams) -> bytes:
    """``weights`` (of :func:`tile_weights`) of ``chunk`` as the interleaved view of LV0 takes them: for each block,
    ``rows`` lines of one byte per output channel."""
    rows, zero = params.rows, layer.weight_zero_point
    part = weights[:, chunk.row : chunk.row + chunk.rows, chunk.col : chunk.col + chunk.cols]
    if layer.depthwise:
        # A block covers up to `taps` columns; the other rows of the array see zero weights.
        taps = params.depthwise_taps
        part = _pad(part[..., 0], 2, taps, zero)
        outs, kh, kw = part.shape
        lines = part.reshape(outs, kh * kw // taps, taps)
        lines = _pad(lines, 2, rows, zero)
    else:
        part = part[..., chunk.channel : chunk.channel + chunk.channels]
        if fold:
            part = part.reshape(*part.shape[:2], -1)
        lines = _pad(part, part.ndim - 1, rows, zero)
    lines = _pad(lines.reshape(lines.shape[0], -1), 0, params.out_channels, zero)
    return np.ascontiguousarray(lines.T).tobytes()


def _pad(data: npt.NDArray, axis: int, multiple: int, value: int) -> npt.NDArray:
    """``data`` with ``axis`` extended to a multiple of ``multiple``."""
    extra = [(0, 0)] * data.ndim
    extra[axis] = (0, -data.shape[axis] % multiple)
    return np.pad(data, extra, constant_values=value) if extra[axis][1] else data
