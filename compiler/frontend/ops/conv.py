"""Convolutions: Conv between DequantizeLinear and QuantizeLinear, and ConvInteger."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx

from compiler.frontend.draft import Draft, Pending, Value, attributes, operator
from compiler.frontend.ops import quantise
from compiler.frontend.problems import Unsupported
from compiler.frontend.requantise import requantise
from compiler.frontend.values import Const, Quant, QuantConst, Quantisation, Real, Shape, TensorLayout
from compiler.ir import Conv, spanned

Pads = tuple[int, int, int, int]
_INT32 = np.iinfo(np.int32)

_SAME_UNIT = 0.0101  #: up to which share onnxruntime takes the scale of a bias for that of the sum

Bias = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]
NO_BIAS: Bias = (np.zeros(1, np.int64), np.zeros(1))


@dataclass(frozen=True)
class Window:
    """A sliding window over an image: sizes are (height, width), pads top, left, bottom, right."""

    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: Pads
    dilations: tuple[int, int]

    @property
    def span(self) -> tuple[int, int]:
        """Return how many rows and columns it reaches over."""
        return spanned(self.kernel, self.dilations)

    def output(self, size: tuple[int, int], ceil: bool = False) -> tuple[int, int]:
        """Height and width of the result."""
        sizes = []
        for axis in range(2):
            room = size[axis] + self.pads[axis] + self.pads[axis + 2] - self.span[axis]
            steps = -(-room // self.strides[axis]) if ceil else room // self.strides[axis]
            if ceil and steps * self.strides[axis] >= size[axis] + self.pads[axis]:
                steps -= 1  # a window may not begin in the padding at the end
            sizes.append(steps + 1)
        if min(sizes) < 1:
            raise Unsupported(f"its window {self.kernel} is larger than its input {size}")
        return sizes[0], sizes[1]


def window(node: onnx.NodeProto, kernel: Shape, size: tuple[int, int]) -> Window:
    """Return the window that a node's attributes describe, for inputs of ``size``; one-dimensional ones get height
    1."""
    given = attributes(node)
    rank = len(kernel)
    strides = tuple(given.get("strides", (1,) * rank))
    dilations = tuple(given.get("dilations", (1,) * rank))
    pads = tuple(given.get("pads", (0,) * 2 * rank))
    if rank == 1:
        kernel, strides, dilations, pads = (1, *kernel), (1, *strides), (1, *dilations), (0, pads[0], 0, pads[1])
    auto = given.get("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        pads = _same(size, kernel, strides, dilations, auto == "SAME_LOWER")
    elif auto == "VALID":
        pads = (0, 0, 0, 0)
    if len(kernel) != 2 or len(pads) != 4:
        raise Unsupported(f"{len(kernel)}-dimensional windows; the accelerator has one and two dimensions")
    if min(pads) < 0:
        raise Unsupported(f"negative pads {pads}")
    return Window(kernel, strides, pads, dilations)


def _same(size: Shape, kernel: Shape, strides: Shape, dilations: Shape, lower: bool) -> Pads:
    before, after = [], []
    for axis in range(2):
        span = (kernel[axis] - 1) * dilations[axis] + 1
        total = max(0, (math.ceil(size[axis] / strides[axis]) - 1) * strides[axis] + span - size[axis])
        small, large = total // 2, total - total // 2
        before.append(large if lower else small)
        after.append(small if lower else large)
    return (before[0], before[1], after[0], after[1])


@dataclass(frozen=True, kw_only=True)
class Accumulated(Pending):
    """An int32 convolution or product that is worth ``scale`` (per output channel, or one) times as much."""

    x: Quant
    matrix: bool  #: x is (..., K) rather than an image
    weights: npt.NDArray  #: (O, kh, kw, I / groups)
    weight_zero_point: int
    scale: npt.NDArray[np.float32]
    bias: npt.NDArray[np.int64]
    real_bias: npt.NDArray[np.float64]  #: in real numbers, on top of ``bias``
    window: Window
    groups: int = 1
    int4: bool = False  #: the weights are int4, as in :class:`compiler.frontend.values.QuantConst`

    @property
    def channels(self) -> int:
        """Return how many output channels there are."""
        return self.weights.shape[0]

    @property
    def integer_bias(self) -> npt.NDArray[np.int32]:
        """Return the bias of each channel as an integer of the sums, as near as there is one. Raises
        :class:`Unsupported` if it is not a number."""
        if np.isnan(self.real_bias).any():
            raise Unsupported(f"the bias of {self.node!r} is not a number")
        real = np.clip(self.real_bias / self.scale.astype(np.float64), _INT32.min, _INT32.max)
        bias = self.bias + np.rint(real).astype(np.int64)
        return np.broadcast_to(np.clip(bias, _INT32.min, _INT32.max), self.channels).astype(np.int32)

    def emit(self, draft: Draft, target: Quantisation, name: str) -> Quant:
        """One ``ir.Conv``."""
        shape = self.base_shape
        pads, x, weights = self.window.pads, self.x, self.weights
        if self.matrix:
            source, weights = _rows(draft, x, weights)
            layout = TensorLayout.plain(shape)
        else:
            if x.padding and x.padding.value == draft.quantisation(x.tensor).zero_point % 256:
                top, left, bottom, right = x.padding.pads
                pads = (top + pads[0], left + pads[1], bottom + pads[2], right + pads[3])
                x = x.inner
            source = draft.image(x)
            layout = TensorLayout.image(shape)
        made = draft.new_tensor(name, shape, layout, target)
        if self.matrix:
            draft.graph.tensors[made.tensor].shape = (*draft.graph.tensors[source].shape[:-1], shape[-1])
        draft.add(
            Conv(
                self.node, [source], made.tensor,
                weights=np.ascontiguousarray(weights), weight_zero_point=self.weight_zero_point,
                bias=self.integer_bias,
                requantise=requantise(self.scale, target, self.low, self.high),
                strides=self.window.strides, pads=pads, dilations=self.window.dilations, groups=self.groups,
                int4=self.int4,
            )
        )  # fmt: skip
        return made


def _rows(draft: Draft, x: Quant, weights: npt.NDArray) -> tuple[str, npt.NDArray]:
    """``x`` as a matrix (M, K) in memory, and the weights with their K in that order: a flattened image is read as it
    lies, without moving data."""
    columns = x.shape[-1]
    rows = math.prod(x.shape[:-1])
    x = draft.dense(x)
    order = np.arange(rows * columns).reshape(x.layout.view).transpose(x.layout.perm).reshape(rows, columns)
    first = order[0]
    if len(x.shape) < 4 and x.layout.same_order(TensorLayout.plain(x.shape)):
        return draft.relayout(x, TensorLayout.plain(x.shape)), weights
    if (order == first + columns * np.arange(rows)[:, None]).all():
        x = Quant(x.tensor, (rows, columns), TensorLayout.plain((rows, columns)), x.dtype)
        weights = weights[..., first]
    return draft.relayout(x, TensorLayout.plain((rows, columns))), weights


def single_zero_point(weights: QuantConst) -> int:
    """Return the zero point that all channels of the weights share."""
    if len(set(weights.zero_point.tolist())) > 1:
        raise Unsupported("its weights have several zero points; quantise them symmetrically")
    if weights.data.dtype.name not in ("int8", "uint8"):
        raise Unsupported(f"its weights are {weights.data.dtype.name}; the accelerator has int8 and uint8")
    return int(weights.zero_point[0])


def channel_scale(weights: QuantConst, axis: int) -> npt.NDArray[np.float32]:
    """Return the scale of the weights per index of ``axis``, or one for all."""
    if weights.axis not in (None, axis):
        raise Unsupported(f"its weights are quantised along axis {weights.axis}; quantise along axis {axis}")
    return weights.scale


def weights_of(draft: Draft, name: str) -> QuantConst:
    """Return the quantised constant ``name``."""
    value = draft.value(name)
    if isinstance(value, QuantConst):
        return value
    if isinstance(value, Const):
        raise Unsupported(f"its weights {name!r} are {value.array.dtype.name} without DequantizeLinear; quantise them")
    raise Unsupported(f"its weights {name!r} are computed at run time; they must be constants")


def bias_of(
    draft: Draft, node: onnx.NodeProto, index: int, channels: int, unit: npt.NDArray | None = None
) -> Bias:  # fmt: skip
    """Bias as (integers in accumulator units, real numbers); one of them is zero. onnxruntime takes the integers of a
    quantised bias as they are, whatever its scale says; or if that is near what one of the sum is worth, where such a
    ``unit`` is given."""
    given = draft.constant(node, index, "bias")
    if given is None:
        return NO_BIAS
    value = draft.value(node.input[index])
    near = unit is None or not isinstance(value, QuantConst) or np.allclose(value.scale, unit, rtol=_SAME_UNIT, atol=0)
    if isinstance(value, QuantConst) and value.data.dtype == np.int32 and not value.zero_point.any() and near:
        given = value.data
    flat = np.broadcast_to(given.reshape(-1), channels)
    return (flat.astype(np.int64), NO_BIAS[1]) if given.dtype == np.int32 else (NO_BIAS[0], flat.astype(np.float64))


def image_size(x: Real, otherwise: str) -> tuple[int, int]:
    """Return height and width of an image (N, C, H, W) or (N, C, L); Unsupported with that reason if it is none."""
    if len(x.shape) not in (3, 4):
        raise Unsupported(otherwise)
    return (x.shape[2], x.shape[3]) if len(x.shape) == 4 else (1, x.shape[2])


@operator("Conv")
def conv(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Conv of a dequantised image with dequantised constant weights."""
    x = draft.real(node.input[0])
    weights = weights_of(draft, node.input[1])
    unit = np.float32(x.quantisation.scale) * channel_scale(weights, 0)
    return [convolution(node, x, weights, bias_of(draft, node, 2, weights.shape[0], unit))]


def convolution(node: onnx.NodeProto, x: Real, weights: QuantConst, bias: Bias = NO_BIAS) -> Accumulated:
    """Return a pending convolution of NCHW (or NCL) ``x`` with OIHW ``weights``."""
    size = image_size(x, f"{len(x.shape) - 2}-dimensional convolution; the accelerator has one and two dimensions")
    zero_point = single_zero_point(weights)
    scale = channel_scale(weights, 0)
    data = weights.data if len(x.shape) == 4 else weights.data[:, :, None, :]
    groups = attributes(node).get("group", 1)
    slide = window(node, weights.data.shape[2:], size)
    if x.shape[1] != data.shape[1] * groups or data.shape[0] % groups:
        raise Unsupported(f"{x.shape[1]} input channels do not fit weights {weights.shape} in {groups} groups")
    height, width = slide.output(size)
    shape: Shape = (x.shape[0], data.shape[0], height, width)
    if len(x.shape) == 3:
        shape = (*shape[:2], width)
    return Accumulated(
        shape=shape, node=node.name, roots=(x.quant.tensor,), x=x.quant, matrix=False,
        weights=data.transpose(0, 2, 3, 1), weight_zero_point=zero_point,
        scale=(np.float32(x.quantisation.scale) * scale).astype(np.float32),
        bias=bias[0], real_bias=bias[1], window=slide, groups=groups,
    )  # fmt: skip


@operator("ConvInteger")
def conv_integer(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Return integer convolution; Cast, Mul and Add with constants behind it give scale and bias."""
    x = integer_input(draft, node)
    weights = integer_weights(draft, node)
    return [convolution(node, x, weights)]


def integer_input(draft: Draft, node: onnx.NodeProto) -> Real:
    """Return the 8-bit left operand of an integer operator, with scale 1."""
    value = draft.value(node.input[0])
    if not isinstance(value, Quant):
        raise Unsupported(f"its input {node.input[0]!r} is not a quantised tensor with constant scale")
    zero = draft.constant(node, 2, "zero point")
    stored = draft.quantisation(value.tensor)
    zero_point = 0 if zero is None else int(zero.reshape(-1)[0])
    if zero_point != stored.zero_point:
        value = draft.alias(value, Quantisation(stored.scale, zero_point, value.dtype))
    return Real(value, Quantisation(np.float32(1), zero_point, value.dtype), node.input[0])


def integer_weights(draft: Draft, node: onnx.NodeProto) -> QuantConst:
    """Return the constant 8-bit right operand of an integer operator, with scale 1."""
    data = draft.constant(node, 1, "weights")
    zero = draft.constant(node, 3, "weight zero point")
    assert data is not None
    zero = np.zeros(1, data.dtype) if zero is None else zero.reshape(-1)
    return QuantConst(data, np.ones(1, np.float32), zero, None)


@operator("QLinearConv")
def qlinear_conv(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """x, x_scale, x_zp, w, w_scale, w_zp, y_scale, y_zp, B."""
    x, weights = quantise.real_input(draft, node, 0), quantise.constant_input(draft, node, 3, 0)
    bias = bias_of(draft, node, 8, weights.shape[0])
    return quantise.stored(draft, node, convolution(node, x, weights, bias), 6, x.quant.dtype)
