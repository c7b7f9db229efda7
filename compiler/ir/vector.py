"""Operators of the vector unit: element by element, by table, and over rows."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from compiler.ir.graph import GoldenRule, Operation, Requantisation, Tensor, TensorValue, clamp_problems
from hw.contract.row_function import EXPONENTS, row_factor

_MULTIPLIER = 1 << 22  #: of the vector unit, which multiplies by the length of a row, too
_MOST_SUMS = 1 << 32

#: By kind of Eltwise what it computes of both operands minus their zero points and their multipliers.
BINARY: dict[str, Callable[[npt.NDArray, npt.NDArray, float, float], npt.NDArray]] = {
    "add": lambda a, b, ma, mb: a * ma + b * mb,
    "mul": lambda a, b, ma, mb: a * b,
    "min": lambda a, b, ma, mb: np.minimum(a, b),
    "max": lambda a, b, ma, mb: np.maximum(a, b),
}


@dataclass
class Eltwise(Operation):
    """``add``: s = (A - a_zp)*ma + (B - b_zp)*mb + bias; ``mul``: s = (A - a_zp)*(B - b_zp) + bias. ma, mb are integers
    below 2^22 in magnitude chosen so that ``requantise.scale`` (one value) makes the exact real result. The bias
    (int32, the vector unit's) carries an output zero point that is added *before* rounding, as onnxruntime's kernels
    do; ``requantise.zero_point`` is then 0. ``min``, ``max``: s is the smaller or the larger of A - a_zp and B - b_zp,
    which are quantised alike. B has A's shape, or (N, 1, 1, C) or (1, ..., 1): broadcast over pixels, or over
    everything."""

    kind_: str
    requantise: Requantisation
    ma: int = 1
    mb: int = 1
    bias: int = 0
    operands: ClassVar[int] = 2

    def _problems(self, inputs: Sequence[Tensor], output: Tensor) -> Iterator[str]:
        a, b = inputs
        if self.kind_ not in BINARY:
            yield f"kind {self.kind_!r}"
        if a.nhwc != output.nhwc:
            yield f"output {output.shape}, expected {a.shape}"
        n, _, _, c = a.nhwc
        if b.nhwc not in (a.nhwc, (n, 1, 1, c), (1, 1, 1, c)) and math.prod(b.shape) != 1:
            yield f"second operand {b.shape} is not {a.shape} nor broadcast over pixels"
        if b.nhwc == (1, 1, 1, c) and n > 1 and c > 1:
            yield f"second operand {b.shape} does not have the batch of {a.shape}"
        if max(abs(self.ma), abs(self.mb)) >= _MULTIPLIER:
            yield f"multipliers {self.ma}, {self.mb} reach 2^22"
        if not -(2**31) <= self.bias < 2**31:
            yield f"bias {self.bias} is not int32"
        if self.kind_ in ("min", "max") and (a.dtype, a.scale, a.zero_point) != (b.dtype, b.scale, b.zero_point):
            yield f"operands {a.name!r} and {b.name!r} are not quantised alike"
        yield from self.requantise.problems(output, 1)

    def _compute(self, inputs: Sequence[TensorValue], output: Tensor) -> npt.NDArray:
        total = BINARY[self.kind_](inputs[0].centred, inputs[1].centred, self.ma, self.mb)
        return self.requantise.of(total + self.bias, output.dtype)

    def before_rounding(self, inputs: Sequence[TensorValue], output: Tensor) -> npt.NDArray | None:
        """Return the real results."""
        return BINARY[self.kind_](inputs[0].real, inputs[1].real, 1, math.copysign(1, self.mb))


@dataclass
class Table(Operation):
    """Any unary function or requantisation of 8-bit values: ``y = table[x & 0xff]`` on raw bytes."""

    table: npt.NDArray[np.uint8]

    def _problems(self, inputs: Sequence[Tensor], output: Tensor) -> Iterator[str]:
        if self.table.shape != (256,) or self.table.dtype != np.uint8:
            yield f"table is {self.table.dtype} {self.table.shape}, not 256 bytes"
        if inputs[0].shape != output.shape:
            yield f"output {output.shape}, expected {inputs[0].shape}"

    def _compute(self, inputs: Sequence[TensorValue], output: Tensor) -> npt.NDArray:
        return self.table[np.ascontiguousarray(inputs[0].value).view(np.uint8)].view(output.dtype)


@dataclass
class Slope(Operation):
    """``y = clip(rint(float32(x - x_zp) * s) + zp, lo, hi)``, where s is ``above`` from x_zp on and ``below[c]`` under
    it, for each channel c: a PRelu."""

    above: np.float32
    below: npt.NDArray[np.float32]
    zero_point: int
    lo: int
    hi: int

    def _problems(self, inputs: Sequence[Tensor], output: Tensor) -> Iterator[str]:
        if inputs[0].nhwc != output.nhwc:
            yield f"output {output.shape}, expected {inputs[0].shape}"
        if self.below.dtype != np.float32 or self.below.shape != output.nhwc[3:]:
            yield f"slopes are {self.below.dtype} {self.below.shape}, not float32 ({output.nhwc[3]},)"
        if not np.isfinite([self.above, *self.below]).all():
            yield "a slope is not finite"
        yield from clamp_problems(self.lo, self.hi, output)

    def _compute(self, inputs: Sequence[TensorValue], output: Tensor) -> npt.NDArray:
        x = inputs[0].centred
        product = x.astype(np.float32) * np.where(x < 0, self.below, self.above)
        return np.clip(np.rint(product) + np.float32(self.zero_point), self.lo, self.hi).astype(output.dtype)

    def before_rounding(self, inputs: Sequence[TensorValue], output: Tensor) -> npt.NDArray | None:
        """Return the real results."""
        slopes, x = self.below.astype(np.float64) / np.float64(self.above), inputs[0].real
        return np.where(x < 0, x * slopes, x)


@dataclass
class Softmax(Operation):
    """Softmax over the last axis. With ``d = max - x`` and ``sums``, ``values`` (int32 tables of 256):
    ``y = clip(rint(float32(values[d]) * f) + zero_point, lo, hi)`` with
    ``f = row_factor(sum of sums[d], False, exponent)`` (see :mod:`hw.contract.row_function`). With a second input, a
    number n, rows have n + 1 elements, and results behind those are the zero point."""

    sums: npt.NDArray[np.int32]
    values: npt.NDArray[np.int32]
    exponent: int
    zero_point: int
    lo: int
    hi: int
    operands: ClassVar[int] = 0
    rule: ClassVar[GoldenRule] = GoldenRule.WRITTEN

    def _problems(self, inputs: Sequence[Tensor], output: Tensor) -> Iterator[str]:
        if not 1 <= len(inputs) <= 2:
            yield f"{len(inputs)} inputs"
            return
        yield from _same_rows(inputs[0], output)
        for table in (self.sums, self.values):
            if table.shape != (256,) or table.dtype != np.int32 or (table < 0).any():
                yield f"a table is {table.dtype} {table.shape}, not 256 int32 from 0 on"
        if int(self.sums.max()) * output.shape[-1] >= _MOST_SUMS:
            yield "sums of exponentials exceed 32 bits"
        if self.exponent not in EXPONENTS:
            yield f"exponent {self.exponent}"
        yield from clamp_problems(self.lo, self.hi, output)

    def _compute(self, inputs: Sequence[TensorValue], output: Tensor) -> npt.NDArray:
        x = inputs[0].centred
        filled = int(inputs[1].value.reshape(-1)[0]) + 1 if len(inputs) > 1 else x.shape[-1]
        result = np.full(x.shape, self.zero_point, output.dtype)
        result[..., :filled] = self._rows(x[..., :filled]).astype(output.dtype)
        return result

    def _rows(self, x: npt.NDArray) -> npt.NDArray:
        """Return the results for rows of ``x``, which is centred."""
        place = x.max(axis=-1, keepdims=True) - x
        factor = row_factor(self.sums.astype(np.int64)[place].sum(axis=-1, keepdims=True), False, self.exponent)
        result = np.rint(self.values[place].astype(np.float32) * factor) + np.float32(self.zero_point)
        return np.clip(result, self.lo, self.hi)


@dataclass
class LayerNorm(Operation):
    """Layer normalisation over the last axis of C elements. With ``S`` and ``Q`` the sums of ``x - x_zp`` and of its
    square: ``f = row_factor(C * Q - S * S + epsilon, True, exponent)``, ``t = rint(float32(C * (x - x_zp) - S) * f)``
    clamped to 24 bits, ``y = clip(rint(float32(t + bias) * scale) + zero_point, lo, hi)`` with bias and scale per
    channel; scales may be negative."""

    epsilon: int
    exponent: int
    bias: npt.NDArray[np.int32]
    requantise: Requantisation
    rule: ClassVar[GoldenRule] = GoldenRule.WRITTEN

    def _problems(self, inputs: Sequence[Tensor], output: Tensor) -> Iterator[str]:
        yield from _norm_problems(self, inputs[0], output, _MULTIPLIER)

    def _compute(self, inputs: Sequence[TensorValue], output: Tensor) -> npt.NDArray:
        x = inputs[0].centred
        total, squares = x.sum(axis=-1, keepdims=True), (x * x).sum(axis=-1, keepdims=True)
        factor = row_factor(x.shape[-1] * squares - total * total + self.epsilon, True, self.exponent)
        normal = np.rint((x.shape[-1] * x - total).astype(np.float32) * factor)
        normal = np.clip(normal, -(1 << 23), (1 << 23) - 1).astype(np.int64)
        return self.requantise.of(normal + self.bias, output.dtype)


@dataclass
class RmsNorm(Operation):
    """Root mean square normalisation over the last axis of C elements. With ``Q`` the sum of the squares of
    ``x - x_zp``: ``f = row_factor(4 * C * Q + epsilon, True, exponent)``, ``t = rint(float32(2 * C * (x - x_zp)) * f)``
    clamped to 24 bits, and ``y`` as of :class:`LayerNorm`."""

    epsilon: int
    exponent: int
    bias: npt.NDArray[np.int32]
    requantise: Requantisation
    rule: ClassVar[GoldenRule] = GoldenRule.WRITTEN

    def _problems(self, inputs: Sequence[Tensor], output: Tensor) -> Iterator[str]:
        yield from _norm_problems(self, inputs[0], output, _MULTIPLIER // 2)

    def _compute(self, inputs: Sequence[TensorValue], output: Tensor) -> npt.NDArray:
        x = inputs[0].centred
        squares, length = (x * x).sum(axis=-1, keepdims=True), x.shape[-1]
        factor = row_factor(4 * length * squares + self.epsilon, True, self.exponent)
        normal = np.rint((2 * length * x).astype(np.float32) * factor)
        normal = np.clip(normal, -(1 << 23), (1 << 23) - 1).astype(np.int64)
        return self.requantise.of(normal + self.bias, output.dtype)


def _norm_problems(op: LayerNorm | RmsNorm, x: Tensor, output: Tensor, most: int) -> Iterator[str]:
    """Yield what is wrong with a normalisation of rows; ``most``: the first length that is too much."""
    yield from _same_rows(x, output)
    channels = output.shape[-1]
    if op.bias.shape != (channels,) or op.bias.dtype != np.int32 or op.requantise.scale.shape != (channels,):
        yield f"bias is {op.bias.dtype} {op.bias.shape}, scale {op.requantise.scale.shape}, not ({channels},)"
    if not 0 <= op.epsilon < _MOST_SUMS or op.exponent not in EXPONENTS or channels >= most:
        yield f"epsilon {op.epsilon}, exponent {op.exponent} or {channels} channels"
    if not np.isfinite(op.requantise.scale).all():
        yield "a scale is not finite"


def _same_rows(x: Tensor, output: Tensor) -> Iterator[str]:
    if math.prod(x.shape) != math.prod(output.shape) or x.shape[-1] != output.shape[-1]:
        yield f"output {output.shape}, expected {x.shape}"
