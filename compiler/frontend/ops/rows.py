"""Functions of rows: softmax, layer normalisation and root mean square normalisation over the last axis."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx

from compiler.frontend.draft import Draft, Pending, Value, attributes, operator
from compiler.frontend.ops import host, quantise
from compiler.frontend.problems import Unsupported
from compiler.frontend.values import Quant, Quantisation, Real, TensorLayout
from compiler.ir import LayerNorm, Requantisation, RmsNorm, Softmax
from hw.contract.row_function import EXPONENTS

_SUM_BITS = 32  #: of a sum of exponentials
_VALUE_BITS = 31  #: of an exponential that is to be divided by it
_NORMAL_BITS = 18  #: of a normalised value behind the point: 5 bits before it hold rows of 1024 and more
_BIAS = 1 << 30  #: largest bias of a channel
_LONGEST_ROW = 4080  #: elements: a window of 255 vectors of 16 lanes; the kernels know the machine and look again


@dataclass(frozen=True, kw_only=True)
class RowSoftmax(Pending):
    """Softmax of ``x`` over its last axis."""

    x: Real

    def emit(self, draft: Draft, target: Quantisation, name: str) -> Quant:
        """Return one ``ir.Softmax``."""
        tensor, made = _rows(draft, self.x, target, name)
        low, high = target.clamp(self.low, self.high)
        sums, values, exponent = _exponentials(self.x.quantisation, target, self.x.shape[-1])
        if exponent not in EXPONENTS:
            raise Unsupported(f"its result in steps of {target.scale:g}; probabilities need steps near 1/256")
        draft.add(
            Softmax(
                self.node, [tensor], made.tensor, sums=sums, values=values, exponent=exponent,
                zero_point=target.zero_point, lo=low, hi=high,
            )
        )  # fmt: skip
        return made


def _exponentials(
    source: Quantisation, target: Quantisation, length: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], int]:
    """Exponentials of 0 to -255 steps of ``source`` in two fixed-point formats: as large as sums of ``length`` allow,
    and as large as an int32 holds them in steps of ``target``; and the power of two between the formats."""
    real = np.exp(-np.arange(256) * float(source.scale))
    steps = 1 / float(target.scale)
    sum_bits = min(_SUM_BITS - 1 - math.ceil(math.log2(length)), _VALUE_BITS - 1)
    value_bits = _VALUE_BITS - 1 - math.ceil(math.log2(steps))
    sums = np.rint(real * 2.0**sum_bits).astype(np.int32)
    values = np.rint(real * steps * 2.0**value_bits).astype(np.int32)
    return sums, values, sum_bits - value_bits


@dataclass(frozen=True, kw_only=True)
class Normalised(Pending):
    """Layer normalisation of ``x`` over its last axis, or, where it is not ``centred``, root mean square
    normalisation."""

    x: Real
    gamma: npt.NDArray[np.float64]
    beta: npt.NDArray[np.float64]
    epsilon: float
    centred: bool = True

    def emit(self, draft: Draft, target: Quantisation, name: str) -> Quant:
        """Return one ``ir.LayerNorm`` or ``ir.RmsNorm``."""
        tensor, made = _rows(draft, self.x, target, name)
        if not (np.isfinite(self.gamma).all() and np.isfinite(self.beta).all()):
            raise Unsupported("its scale or bias has an element that is not a finite number")
        if not 0 <= self.epsilon < np.inf:
            raise Unsupported(f"epsilon {self.epsilon:g}; it must be a finite number from 0 on")
        count, step = self.x.shape[-1], float(self.x.quantisation.scale)
        epsilon = round(self.epsilon * ((count if self.centred else 2 * count) / step) ** 2)
        if epsilon >= 1 << 32:
            raise Unsupported(f"epsilon {self.epsilon:g} for values in steps of {step:g}; it must be below those")
        gain, shift = self.gamma / float(target.scale), self.beta / float(target.scale)
        # A channel that is all bias: its gain is such that the bias fits. That gain is too small to be seen where the
        # bias is a whole number of steps, which it may be where the channel's own gain cannot change what it rounds to.
        reach = np.abs(gain) * math.sqrt(count)
        shift = np.where(np.rint(shift - reach) == np.rint(shift + reach), np.rint(shift), shift)
        least = np.abs(shift) / _BIAS
        scale = np.where(np.abs(gain) * 2.0**-_NORMAL_BITS < least, np.copysign(least, gain), gain * 2.0**-_NORMAL_BITS)
        with np.errstate(over="ignore"):
            scale = scale.astype(np.float32)
        if not np.isfinite(scale).all():
            raise Unsupported(f"a scale of {np.abs(gain).max():g} steps of its result; that is no float32")
        bias = np.rint(np.divide(shift, scale, out=np.zeros_like(shift), where=scale != 0))
        low, high = target.clamp(self.low, self.high)
        kind = LayerNorm if self.centred else RmsNorm
        draft.add(
            kind(
                self.node, [tensor], made.tensor, epsilon=epsilon, exponent=_NORMAL_BITS,
                bias=np.clip(bias, -_BIAS, _BIAS).astype(np.int32),
                requantise=Requantisation(scale, target.zero_point, low, high),
            )
        )  # fmt: skip
        return made


def _rows(draft: Draft, x: Real, target: Quantisation, name: str) -> tuple[str, Quant]:
    """Return the tensor with the rows of ``x``, and one for the result."""
    layout = x.quant.layout
    if layout.view != x.shape or layout.perm[-1] != len(x.shape) - 1:
        layout = TensorLayout.plain(x.shape)
    source = draft.relayout(x.quant, layout)
    made = draft.new_tensor(name, x.shape, layout, target)
    shape = layout.physical
    if len(shape) > 3:
        shape = (math.prod(shape[:-2]), *shape[-2:])
        source = draft.reshaped(source, shape)
        draft.graph.tensors[made.tensor].shape = shape
    return source, made


@operator("Softmax")
def softmax(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """On the accelerator in the midst of a network, over the last axis; at its end on the CPU, which loses nothing
    there."""
    value = draft.value(node.input[0])
    if not isinstance(value, Real) or not _read_again(draft, node.output[0]):
        return host.softmax(draft, node)
    return [softmax_of(node, value)]


def softmax_of(node: onnx.NodeProto, x: Real) -> Pending:
    """Return the pending softmax of ``x``, on the CPU if the accelerator cannot compute it."""
    axis = attributes(node).get("axis", -1) % len(x.shape)
    if axis != len(x.shape) - 1 or not 1 < x.shape[-1] <= _LONGEST_ROW:
        return host.softmax_of(x, node)
    return RowSoftmax(shape=x.shape, node=node.name, roots=(x.quant.tensor,), x=x)


def _read_again(draft: Draft, name: str) -> bool:
    """Return whether the 8-bit form of a result is read by more than the model's output."""
    stored = [reader.output[0] for reader in draft.source.consumers.get(name, [])]
    real = [reader.output[0] for end in stored for reader in draft.source.consumers.get(end, [])]
    return any(draft.source.consumers.get(end) for end in real)


@operator("LayerNormalization")
def layer_normalization(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Over the last axis, with constant scale and bias."""
    x, epsilon = _rows_of(draft, node)
    gamma, beta = draft.constant(node, 1, "scale"), draft.constant(node, 2, "bias")
    return [normalised(node, x, gamma, beta, epsilon)]


@operator("RMSNormalization")
def rms_normalization(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Over the last axis, with constant scale."""
    x, epsilon = _rows_of(draft, node)
    return [normalised(node, x, draft.constant(node, 1, "scale"), None, epsilon, centred=False)]


def _rows_of(draft: Draft, node: onnx.NodeProto) -> tuple[Real, float]:
    """Return what a normalisation ``node`` reads, and its epsilon. Raises :class:`Unsupported` if it is not over the
    last axis, or gives more than its result."""
    x, given = draft.real(node.input[0]), attributes(node)
    if given.get("axis", -1) % len(x.shape) != len(x.shape) - 1:
        raise Unsupported(f"axis {given['axis']} of a tensor of rank {len(x.shape)}; it must be the last")
    if len(list(filter(None, node.output))) > 1:
        raise Unsupported("it also gives mean or deviation; only the normalised result can be computed")
    return x, float(given.get("epsilon", 1e-5))


def normalised(
    node: onnx.NodeProto, x: Real, gamma: npt.NDArray | None, beta: npt.NDArray | None, epsilon: float, *,
    centred: bool = True,
) -> Normalised:  # fmt: skip
    """Return the pending normalisation of ``x``; scale and bias have one value, or one per element of a row."""
    if not 1 < x.shape[-1] <= _LONGEST_ROW:
        raise Unsupported(f"rows of {x.shape[-1]} elements; they may have 2 to {_LONGEST_ROW}")
    scale, bias = (
        np.broadcast_to(np.asarray(default if given is None else given, np.float64).reshape(-1), x.shape[-1:])
        for given, default in ((gamma, 1.0), (beta, 0.0))
    )
    return Normalised(
        shape=x.shape, node=node.name, roots=(x.quant.tensor,), x=x, gamma=scale, beta=bias,
        epsilon=epsilon, centred=centred,
    )  # fmt: skip


@operator("QLinearSoftmax", domain="com.microsoft")
def qlinear_softmax(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """X, x_scale, x_zp, y_scale, y_zp; on the CPU if nothing but the end of the network reads it."""
    x, readers = quantise.real_input(draft, node, 0), draft.source.consumers.get(node.output[0], [])
    midst = any(draft.source.consumers.get(name) for reader in readers for name in reader.output)
    result = softmax_of(node, x) if midst else host.softmax_of(x, node)
    return quantise.stored(draft, node, result, 3, x.quant.dtype)
