"""The bytes of a convolution that depend on its weights: said without them, and made of them, in the order in which LV0
takes them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from compiler.ir import Tensor
from compiler.plan.layers import ChannelTile, ConvLayer, conv_params_bytes, pixel_parts, uniform_params, vec_params
from compiler.plan.tiling.conv_tiling import KernelChunk, is_turned
from hw.contract.params import SocParams


def tile_weights(layer: ConvLayer, tile: ChannelTile) -> npt.NDArray:
    """Return the weights of a channel tile: (outs, kh, kw, input channels, in packed layers of the PE); what other
    groups read is the zero point."""
    own = layer.weights[tile.out : tile.out + tile.outs]
    if layer.depthwise or layer.groups == 1:
        return own
    outs, kh, kw, depth = layer.weights.shape
    full = np.full((tile.outs, kh, kw, layer.pe_channels or tile.channels), layer.weight_zero_point, own.dtype)
    for i in range(tile.outs):
        first = (tile.out + i) // (outs // layer.groups) * depth - tile.first
        if layer.pe_channels:
            first %= layer.pe_channels
        full[i, :, :, first : first + depth] = own[i]
    return full


def weight_blocks(
    layer: ConvLayer, weights: npt.NDArray, chunk: KernelChunk, fold: bool, params: SocParams, copies: int = 1
) -> bytes:  # fmt: skip
    """``weights`` (of :func:`tile_weights`) of ``chunk`` as the interleaved view of LV0 takes them: for each block,
    ``rows`` lines of one byte per output channel; those of a narrow tile in ``copies``."""
    rows, zero = params.rows, layer.weight_zero_point
    part = weights[:, chunk.row : chunk.row + chunk.rows, chunk.col : chunk.col + chunk.cols]
    if layer.depthwise:
        # A block covers up to `taps` columns, or rows of one; the other rows of the array see zero weights.
        taps = params.depthwise_taps
        part = part[..., 0].swapaxes(1, 2) if is_turned(layer, chunk) else part[..., 0]
        part = _pad(part, 2, taps, zero)
        outs, kh, kw = part.shape
        lines = part.reshape(outs, kh * kw // taps, taps)
        lines = _pad(lines, 2, rows, zero)
    else:
        if not layer.pe_channels:
            part = part[..., chunk.channel : chunk.channel + chunk.channels]
        if fold:
            part = part.reshape(*part.shape[:2], -1)
        lines = _pad(part, part.ndim - 1, rows, zero)
    columns = lines.reshape(lines.shape[0], -1)
    if copies > 1:  # each set of PEs has its own
        columns = np.tile(_pad(columns, 0, params.vec_lanes, zero), (copies, 1))
    columns = _pad(columns, 0, params.out_channels, zero)
    return np.ascontiguousarray(columns.T).tobytes()


def _pad(data: npt.NDArray, axis: int, multiple: int, value: int) -> npt.NDArray:
    """``data`` with ``axis`` extended to a multiple of ``multiple``."""
    extra = -data.shape[axis] % multiple
    if not extra:
        return data
    shape = (*data.shape[:axis], extra, *data.shape[axis + 1 :])
    return np.concatenate([data, np.full(shape, value, data.dtype)], axis)  # np.pad takes ten times as long


@dataclass(frozen=True)
class ConvData:
    """Blocks of weights (``weights``: channel tile and part of the kernel of each), then blocks of VEC parameters
    (``params``: channel tile and area, with what is added if that is constant; ``sum``: that of the addition), of the
    convolution that makes tensor ``output``. ``fold``: see :func:`weight_blocks`; ``int4``: weights are packed,
    two in a byte. Layers that differ in nothing but such data are made of equal parts."""

    output: str
    fold: bool = False
    weights: tuple[tuple[ChannelTile, KernelChunk], ...] = ()
    params: tuple[tuple[ChannelTile, int], ...] = ()
    sum: bool = False
    int4: bool = False


def conv_data(part: ConvData, layer: ConvLayer, params: SocParams, tensors: Mapping[str, Tensor]) -> bytes:
    """Return the bytes of ``part``, which is one of ``layer``; ``tensors`` are those it touches."""
    if part.sum:
        assert layer.addition is not None
        own, other = tensors[layer.addition.own], tensors[layer.addition.other]
        return sum_block(layer, own.zero_point, other.zero_point, params)
    return blocks(part, layer, params)


def blocks(part: ConvData, layer: ConvLayer, params: SocParams) -> bytes:
    """Return the bytes of ``part``, which is one of ``layer`` and no sum."""
    found = [
        weight_blocks(
            layer, tile_weights(layer, tile), chunk, part.fold, params, pixel_parts(layer, tile, params)
        )
        for tile, chunk in part.weights
    ]  # fmt: skip
    if part.int4:
        found = [packed_int4(one, params) for one in found]
    return b"".join([*found, *(_vec_params(layer, tile, area, params) for tile, area in part.params)])


def packed_int4(data: bytes, params: SocParams) -> bytes:
    """Return int4 in bytes as LD0 unpacks them: two words of LV1 become the low and the high halves of the bytes of
    one."""
    low, high = np.frombuffer(data, np.uint8).reshape(-1, 2, params.lv1_word).swapaxes(0, 1)
    return (low & 15 | high << 4).tobytes()


def _vec_params(layer: ConvLayer, tile: ChannelTile, area: int, params: SocParams) -> bytes:
    q, where = layer.requantise, layer.areas[area]
    outs, copies = slice(tile.out, tile.out + tile.outs), pixel_parts(layer, tile, params)
    most = params.out_channels // copies
    bias, scale = (np.tile(_pad(one[outs], 0, most, 0), copies) for one in (where.bias, where.scale))
    block = vec_params(params, bias, scale, zp_y=q.zero_point, lo=q.lo, hi=q.hi)
    if layer.addition is not None and layer.addition.constant is not None:
        block += layer.addition.constant[tile.out : tile.out + tile.outs].tobytes()
    return block + bytes(conv_params_bytes(layer, params) - len(block))


def sum_block(layer: ConvLayer, own_zero_point: int, other_zero_point: int, params: SocParams) -> bytes:
    """VEC parameters of the addition of ``layer``, whose operands have these zero points."""
    addition, lanes = layer.addition, params.vec_lanes
    assert addition is not None
    return uniform_params(
        params, lanes, addition.op.requantise, addition.op.bias, zp_a=own_zero_point, zp_b=other_zero_point,
        ma=addition.m_own, mb=addition.m_other,
    )  # fmt: skip
