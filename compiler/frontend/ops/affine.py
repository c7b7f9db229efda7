"""A factor and an offset for each channel: BatchNormalization, and products and sums with constants in float.

Behind a convolution or product they are part of it. Elsewhere they are a depthwise convolution with one weight for each
channel. That is chosen so that the offset is nearly a whole number of products: then nothing is lost by adding it as an
integer.
"""

import dataclasses
import math

import numpy as np
import numpy.typing as npt
import onnx

from compiler.frontend.draft import Draft, Pending, Value, attributes, operator
from compiler.frontend.ops import conv, move
from compiler.frontend.problems import Unsupported
from compiler.frontend.values import Real, Shape

Channels = npt.NDArray[np.float64]  #: one value for each

_WEIGHTS = np.arange(128, 256)
_ALONE = 1 << 20  #: what an offset without a factor is as an integer


def affine(draft: Draft, node: onnx.NodeProto, x: Real, factor: Channels, offset: Channels) -> Pending:
    """Return the pending ``x * factor + offset``, by the channels that are axis 1 of ``x``. Raises
    :class:`Unsupported` for values that are not finite."""
    _check_finite(factor, offset)
    shape = x.shape
    lines = shape if len(shape) in (3, 4) else (*shape[:2], math.prod(shape[2:]))
    x = dataclasses.replace(x, quant=move.reshape_all(draft, x.quant, (("reshape", lines),)))
    found = _convolution(node, x, factor, offset)
    return found if lines == shape else dataclasses.replace(found, shape=shape, reshapes=(("reshape", shape),))


def per_channel(shape: Shape, constant: npt.NDArray) -> Channels | None:
    """Return a constant with one value for each channel (axis 1) of a tensor of ``shape``; None if it has others."""
    full = (1,) * (len(shape) - constant.ndim) + constant.shape
    if len(shape) < 3 or full != (1, shape[1], *(1,) * (len(shape) - 2)) or constant.dtype.kind != "f":
        return None
    return constant.reshape(-1).astype(np.float64)


def _convolution(node: onnx.NodeProto, x: Real, factor: Channels, offset: Channels) -> conv.Accumulated:
    """Return the pending depthwise convolution of an image or sequence ``x``."""
    channels = x.shape[1]
    worth = np.float64(x.quantisation.scale) * factor
    alone = factor == 0
    whole = offset * _WEIGHTS[:, None] / np.where(alone, 1, worth)
    best = _WEIGHTS[np.abs(whole - np.rint(whole)).argmin(axis=0)]
    weights = np.where(alone, 0, best).astype(np.uint8)
    scale = np.where(alone, np.where(offset == 0, 1, offset) / _ALONE, worth / best)
    return conv.Accumulated(
        shape=x.shape, node=node.name, roots=(x.quant.tensor,), x=x.quant, matrix=False,
        weights=weights.reshape(channels, 1, 1, 1), weight_zero_point=0, scale=scale.astype(np.float32),
        bias=conv.NO_BIAS[0], real_bias=offset, window=conv.Window((1, 1), (1, 1), (0, 0, 0, 0), (1, 1)),
        groups=channels,
    )  # fmt: skip


def continued(pending: conv.Accumulated, factor: Channels, offset: Channels) -> conv.Accumulated:
    """Return ``pending * factor + offset`` by its channels. Raises :class:`Unsupported` behind a clamp or reshape, and
    for values that are not finite."""
    _check_finite(factor, offset)
    if (pending.low, pending.high) != (-np.inf, np.inf) or pending.reshapes:
        raise Unsupported(f"it follows {pending.node!r} in float, behind a clamp or reshape; quantise between them")
    if not factor.all():
        raise Unsupported("it multiplies a channel by zero; quantise in front of it")
    scale = (pending.scale * factor).astype(np.float32)
    return dataclasses.replace(pending, scale=scale, real_bias=pending.real_bias * factor + offset)


def _check_finite(factor: Channels, offset: Channels) -> None:
    wrong = int(np.count_nonzero(~(np.isfinite(factor) & np.isfinite(offset))))
    if wrong:
        raise Unsupported(f"constants of {wrong} channels whose factor or offset is not a finite number")


@operator("BatchNormalization")
def batch_normalisation(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Return a tensor less a mean, by a deviation, times a scale, plus a bias, all of them constants per channel."""
    if attributes(node).get("training_mode", 0) or len([name for name in node.output if name]) > 1:
        raise Unsupported("a batch normalisation that learns; export the model for inference")
    value = draft.value(node.input[0])
    gamma, beta, mean, variance = (
        np.asarray(draft.constant(node, index, what), np.float64).reshape(-1)
        for index, what in enumerate(("scale", "bias", "mean", "variance"), start=1)
    )
    with np.errstate(divide="ignore", invalid="ignore"):  # what is not finite is refused
        factor = gamma / np.sqrt(variance + np.float64(attributes(node).get("epsilon", 1e-5)))
        offset = beta - mean * factor
    if isinstance(value, conv.Accumulated) and (not value.matrix or len(value.shape) == 2):
        return [continued(value, factor, offset)]
    x = draft.real(node.input[0])
    if len(x.shape) < 2 or factor.shape != (x.shape[1],):
        raise Unsupported(f"{factor.size} channels for a tensor of shape {x.shape}")
    return [affine(draft, node, x, factor, offset)]
