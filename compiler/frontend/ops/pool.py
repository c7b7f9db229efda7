"""Pooling: MaxPool, AveragePool, GlobalAveragePool and GlobalMaxPool."""

import dataclasses
from dataclasses import dataclass

import onnx

from compiler.frontend.draft import Draft, Pending, Value, attributes, operator
from compiler.frontend.ops import conv, move, quantise
from compiler.frontend.problems import Unsupported
from compiler.frontend.requantise import pool_bias, requantise
from compiler.frontend.values import NHWC, Quant, Quantisation, Real, TensorLayout
from compiler.ir import Pool


@dataclass(frozen=True, kw_only=True)
class Pooled(Pending):
    """A maximum or average over windows of image ``x``. ``bias_first``: the golden kernel adds the zero point before it
    rounds."""

    kind: str
    x: Real
    window: conv.Window
    count_include_pad: bool = False
    bias_first: bool = False

    def emit(self, draft: Draft, target: Quantisation, name: str) -> Quant:
        """One ``ir.Pool``."""
        source = draft.image(self.x.quant)
        how = requantise(self.x.quantisation.scale, target, self.low, self.high)
        bias = pool_bias(self.x.quantisation, target) if self.bias_first else 0
        if bias:
            how.zero_point = 0
        shape = self.base_shape
        made = draft.new_tensor(name, shape, TensorLayout.image(shape), target)
        draft.add(
            Pool(
                self.node, [source], made.tensor, kind_=self.kind, kernel=self.window.kernel,
                strides=self.window.strides, pads=self.window.pads, requantise=how,
                count_include_pad=self.count_include_pad, bias=bias, dilations=self.window.dilations,
            )
        )  # fmt: skip
        return made


@operator("MaxPool", "AveragePool")
def pool(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Return a pool between DequantizeLinear and QuantizeLinear, or a maximum of 8-bit values."""
    value = draft.value(node.input[0])
    if isinstance(value, Quant) and node.op_type == "MaxPool":
        params = draft.quantisation(value.tensor)
        return [pooled(node, Real(value, params, node.input[0])).emit(draft, params, node.output[0])]
    return [pooled(node, draft.real(node.input[0]))]


def pooled(node: onnx.NodeProto, x: Real) -> Pooled:
    """Return the pending result of a MaxPool or AveragePool node on ``x``."""
    size = conv.image_size(x, f"{len(x.shape) - 2}-dimensional pooling; the accelerator has one and two dimensions")
    given = attributes(node)
    slide = conv.window(node, tuple(given["kernel_shape"]), size)
    if slide.dilations != (1, 1) and given.get("auto_pad", "NOTSET").startswith("SAME"):
        raise Unsupported(
            f"auto_pad {given['auto_pad']} with dilations, which onnxruntime pads otherwise; state its pads"
        )
    if len([name for name in node.output if name]) > 1:
        raise Unsupported("the indices of the maxima; the accelerator computes the maxima only")
    kind = "max" if "Max" in node.op_type else "avg"
    include = bool(given.get("count_include_pad", 0))
    height, width = slide.output(size, bool(given.get("ceil_mode", 0)))
    beyond = [
        max(
            0,
            (output - 1) * slide.strides[axis]
            + slide.span[axis]
            - size[axis]
            - slide.pads[axis]
            - slide.pads[axis + 2],
        )
        for axis, output in enumerate((height, width))
    ]  # ``ceil_mode`` may need more than ONNX states
    if include and any(beyond):
        raise Unsupported(
            "ceil_mode together with count_include_pad, and windows that reach beyond the pads: kernels of onnxruntime "
            "differ in what counts there; state pads to the end of the last window"
        )
    top, left, bottom, right = slide.pads
    slide = dataclasses.replace(slide, pads=(top, left, bottom + beyond[0], right + beyond[1]))
    shape = (*x.shape[:2], height, width) if len(x.shape) == 4 else (*x.shape[:2], width)
    return Pooled(
        shape=shape, node=node.name, roots=(x.quant.tensor,), kind=kind, x=x, window=slide,
        count_include_pad=include and any(slide.pads), bias_first=kind == "avg",
    )  # fmt: skip


@operator("GlobalAveragePool", "GlobalMaxPool")
def global_pool(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Return a pool over the whole image."""
    kind = "max" if node.op_type == "GlobalMaxPool" else "avg"
    return [over_image(node, draft.real(node.input[0]), kind)]


def over_image(node: onnx.NodeProto, x: Real, kind: str = "avg") -> Pooled:
    """Return the pending pool over all of NCHW (or NCL) ``x``."""
    size = conv.image_size(x, f"a global pool of a tensor of rank {len(x.shape)}")
    shape = (*x.shape[:2], *(1,) * (len(x.shape) - 2))
    return Pooled(
        shape=shape, node=node.name, roots=(x.quant.tensor,), kind=kind, x=x,
        window=conv.Window(size, size, (0, 0, 0, 0), (1, 1)),
    )  # fmt: skip


@operator("QLinearAveragePool", "QLinearGlobalAveragePool", domain="com.microsoft")
def qlinear_pool(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """X, x_scale, x_zp, y_scale, y_zp; NCHW, or NHWC with ``channels_last``."""
    x = quantise.real_input(draft, node, 0)
    last = bool(attributes(node).get("channels_last", 0))
    if last:
        x = Real(move.reshape_all(draft, x.quant, (("transpose", (0, 3, 1, 2)),)), x.quantisation, x.name)
    result = over_image(node, x) if "Global" in node.op_type else pooled(node, x)
    if last:
        shape = tuple(result.shape[axis] for axis in NHWC)
        result = dataclasses.replace(result, shape=shape, reshapes=(("transpose", NHWC),))
    return quantise.stored(draft, node, result, 3, x.quant.dtype)
