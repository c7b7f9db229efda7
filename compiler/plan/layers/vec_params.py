"""VEC parameter blocks: what the vector unit reads from LV1 to requantise."""

import numpy as np
import numpy.typing as npt

from compiler.ir import Requantisation
from compiler.plan.layers.layer import ConvLayer
from hw.contract.isa import VEC_CHANNEL_BYTES, VEC_HEADER
from hw.contract.params import SocParams

PARAMS_SLOTS = 4  #: LV1 buffers of VEC parameters; with two, LD1 would wait for VEC before it loads further tiles


def vec_params(params: SocParams, bias: npt.NDArray[np.int32], scale: npt.NDArray[np.float32], **header: int) -> bytes:
    """Return a VEC parameter block: ``header`` fields of ``hw.contract.isa.VEC_HEADER``, then bias and scale per
    channel."""
    raw = b"".join(int(header.get(name, 0)).to_bytes(size, "little", signed=True) for name, size, _ in VEC_HEADER)
    entries = np.zeros(len(bias), [("bias", "<i4"), ("scale", "<f4")])
    entries["bias"], entries["scale"] = bias, scale
    block = raw + bytes(params.vec_header_bytes - len(raw)) + entries.tobytes()
    return block + bytes(-len(block) % params.lv1_word)


def uniform_params(params: SocParams, channels: int, q: Requantisation, bias: int = 0, **header: int) -> bytes:
    """Return a VEC parameter block by which all ``channels`` are requantised alike: as ``q`` says, with one scale."""
    scale = np.full(channels, np.asarray(q.scale, np.float32).reshape(-1)[0], np.float32)
    block = np.full(channels, bias, np.int32)
    return vec_params(params, block, scale, zp_y=q.zero_point, lo=q.lo, hi=q.hi, **header)


def params_bytes(params: SocParams) -> int:
    """Return the size of a VEC parameter block for one channel tile, a multiple of the LV1 word."""
    size = params.vec_header_bytes + params.out_channels * VEC_CHANNEL_BYTES
    return -(-size // params.lv1_word) * params.lv1_word


def conv_params_bytes(layer: ConvLayer, params: SocParams) -> int:
    """Return the size of what a channel tile of a convolution needs to requantise, a multiple of the LV1 word: a VEC
    parameter block, and behind it the constant that is added to all pixels, if there is one."""
    constant = layer.addition is not None and layer.addition.constant is not None
    return params_bytes(params) + (-(-params.out_channels // params.lv1_word) * params.lv1_word if constant else 0)


def sum_params_bytes(params: SocParams) -> int:
    """Return the size of the VEC parameter block of an addition, a multiple of the LV1 word."""
    size = params.vec_header_bytes + params.vec_lanes * VEC_CHANNEL_BYTES
    return -(-size // params.lv1_word) * params.lv1_word
