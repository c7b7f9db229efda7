"""Operators that are sums of products: convolutions, averages over windows, products of computed matrices."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from compiler.ir.graph import EIGHT_BIT, GoldenRule, Operation, Requantisation, Tensor, TensorValue

Pair = tuple[int, int]
Pads = tuple[int, int, int, int]  #: top, left, bottom, right


@dataclass
class Conv(Operation):
    """Convolution, grouped and depthwise ones too, and fully connected layers (1x1 on (1, 1, M, C)).

    ``acc[n,y,x,o] = bias[o] + sum (X[n, y*sh + i*dh - pad_t, x*sw + j*dw - pad_l, c] - x_zp) * (W[o,i,j,c] - w_zp)``;
    outside of X the difference is 0. Groups split input and output channels evenly, in order.
    """

    weights: npt.NDArray  #: (O, kh, kw, I / groups), int8 or uint8
    weight_zero_point: int
    bias: npt.NDArray[np.int32]  #: (O,)
    requantise: Requantisation
    strides: Pair = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    dilations: Pair = (1, 1)
    groups: int = 1
    int4: bool = False  #: all weights are int4, by their type in the model, and their zero point is 0
    repeated: int = 0  #: pixels of the result that another part of the same operator computes too, if it was split
    rule: ClassVar[GoldenRule] = GoldenRule.INTEGER
    counts: ClassVar[bool] = True  #: whether its MACs are those of the model

    def _problems(self, inputs: Sequence[Tensor], output: Tensor) -> Iterator[str]:
        x = inputs[0]
        channels, kh, kw, depth = self.weights.shape
        if self.weights.dtype.name not in EIGHT_BIT:
            yield f"weights are {self.weights.dtype}"
            return
        info = np.iinfo(self.weights.dtype)
        if not info.min <= self.weight_zero_point <= info.max:
            yield f"weight zero point {self.weight_zero_point} is not {self.weights.dtype}"
        if self.int4 and (self.weight_zero_point or self.weights.dtype != np.int8 or not _int4(self.weights)):
            yield "weights are not int4 with zero point 0"
        if depth * self.groups != x.nhwc[3] or channels % self.groups or output.nhwc[3] != channels:
            yield f"weights {self.weights.shape} in {self.groups} groups do not map {x.nhwc} to {output.nhwc}"
        if self.bias.shape != (channels,) or self.bias.dtype != np.int32:
            yield f"bias is {self.bias.dtype} {self.bias.shape}"
        yield from self.requantise.problems(output, channels)
        yield from _windowed(x, output, (kh, kw), self.strides, self.pads, self.dilations)

    def _compute(self, inputs: Sequence[TensorValue], output: Tensor) -> npt.NDArray:
        return self.requantise.of(self._sums(inputs, output), output.dtype)

    def before_rounding(self, inputs: Sequence[TensorValue], output: Tensor) -> npt.NDArray | None:
        """Return what the sums are worth; onnxruntime adds a float bias in float where it has no integer kernel."""
        if self.requantise.table is not None:
            return None
        return self._sums(inputs, output) * self._worth(output)

    def constants_error(self, output: Tensor) -> npt.NDArray[np.float64]:
        """Return what half an integer of the sum is worth: a bias was rounded to integers."""
        return (0.5 if self.bias.any() else 0.0) * self._worth(output)

    def _worth(self, output: Tensor) -> npt.NDArray[np.float64]:
        """Return the real number that one of the sum is, per channel or for all."""
        return self.requantise.scale.astype(np.float64) * np.float64(np.float32(output.scale))

    def _sums(self, inputs: Sequence[TensorValue], output: Tensor) -> npt.NDArray[np.float64]:
        """Return the integers before they are requantised, as (N, H, W, C)."""
        weights = self.weights.astype(np.float64) - self.weight_zero_point
        x = _padded(inputs[0].centred.astype(np.float64), self.pads, 0)
        n, height, width = output.nhwc[:3]
        channels, kh, kw, depth = weights.shape
        groups, per = self.groups, channels // self.groups
        # One product per kernel position keeps memory small and lets BLAS do the work.
        weights = weights.reshape(groups, per, kh, kw, depth).transpose(2, 3, 0, 4, 1)
        total = np.zeros((groups, n * height * width, per))
        (sh, sw), (dh, dw) = self.strides, self.dilations
        for i in range(kh):
            for j in range(kw):
                rows = slice(i * dh, i * dh + (height - 1) * sh + 1, sh)
                columns = slice(j * dw, j * dw + (width - 1) * sw + 1, sw)
                tap = x[:, rows, columns].reshape(-1, groups, depth)
                if depth == 1:
                    total += tap.transpose(1, 0, 2) * weights[i, j]
                else:
                    total += np.matmul(tap.transpose(1, 0, 2), weights[i, j])
        return total.transpose(1, 0, 2).reshape(n, height, width, channels) + self.bias


@dataclass
class Blend(Conv):
    """Convolution that computes weighted means of pixels, or copies channels: what a model resizes with. Its MACs are
    work of the arrays, but not of the model. ``halves``: of one of its sum, by which operands that were requantised may
    be off."""

    halves: int = 0
    counts: ClassVar[bool] = False

    def constants_error(self, output: Tensor) -> npt.NDArray[np.float64]:
        """Return what those halves are worth."""
        return super().constants_error(output) + self.halves / 2 * self._worth(output)


@dataclass
class Pool(Operation):
    """``max``, ``min``: maximum or minimum of the window, pads never win. ``sum``: sum of (X - x_zp) over the window's
    valid pixels, requantised with ``requantise.scale`` (one value). ``avg``: the same with that scale / count, where
    count is the number of valid pixels, or the window size with ``count_include_pad``. The division is float32:
    ``float32(scale) / float32(count)``. ``bias`` (avg) is added to the sum once per counted pixel, so it is the same as
    subtracting x_zp - bias instead of x_zp. The pixels of a window lie ``dilations`` apart."""

    kind_: str
    kernel: Pair
    strides: Pair
    pads: Pads
    requantise: Requantisation
    count_include_pad: bool = False
    bias: int = 0
    dilations: Pair = (1, 1)

    @property
    def span(self) -> Pair:
        """Return how many rows and columns a window reaches over."""
        return spanned(self.kernel, self.dilations)

    def _problems(self, inputs: Sequence[Tensor], output: Tensor) -> Iterator[str]:
        if self.kind_ not in ("max", "min", "avg", "sum"):
            yield f"kind {self.kind_!r}"
        if output.nhwc[3] != inputs[0].nhwc[3]:
            yield f"{output.nhwc[3]} channels, expected {inputs[0].nhwc[3]}"
        if self.pads[0] >= self.span[0] or self.pads[1] >= self.span[1]:
            yield f"pads {self.pads} hold a whole window {self.kernel}"
        if self.bias and self.kind_ != "avg":
            yield f"a bias on {self.kind_}"
        yield from self.requantise.problems(output, 1)
        yield from _windowed(inputs[0], output, self.kernel, self.strides, self.pads, self.dilations)

    def _compute(self, inputs: Sequence[TensorValue], output: Tensor) -> npt.NDArray:
        x, size = inputs[0].centred, output.nhwc[1:3]
        if self.kind_ == "max":
            total = np.maximum.reduce(self._windows(x, -(2**15), size))
            return self.requantise.of(total, output.dtype)
        if self.kind_ == "min":
            return self.requantise.of(np.minimum.reduce(self._windows(x, 2**15, size)), output.dtype)
        if self.kind_ == "sum":
            return self.requantise.of(np.add.reduce(self._windows(x, 0, size)), output.dtype)
        count = self._counts(x, size)
        total = np.add.reduce(self._windows(x, 0, size)) + self.bias * count
        return self.requantise.of(total, output.dtype, self.requantise.scale / count.astype(np.float32))

    def before_rounding(self, inputs: Sequence[TensorValue], output: Tensor) -> npt.NDArray | None:
        """Return the means, or the sums."""
        if self.kind_ in ("max", "min"):
            return None
        x, size = inputs[0].real, output.nhwc[1:3]
        total = np.add.reduce(self._windows(x, 0, size))
        return total if self.kind_ == "sum" else total / self._counts(x, size)

    def _windows(self, x: npt.NDArray, fill: float, size: Pair) -> list[npt.NDArray]:
        """Return the values under each kernel position for all of ``size`` output pixels."""
        x, (sh, sw) = _padded(x, self.pads, fill), self.strides
        rows, columns = (range(0, span, step) for span, step in zip(self.span, self.dilations, strict=True))
        return [
            x[:, i : i + (size[0] - 1) * sh + 1 : sh, j : j + (size[1] - 1) * sw + 1 : sw]
            for i in rows
            for j in columns
        ]

    def _counts(self, x: npt.NDArray, size: Pair) -> npt.NDArray[np.int64]:
        """Return how many pixels count in the window of each output pixel."""
        counted = np.ones((1, *x.shape[1:3], 1), np.int64)
        return np.add.reduce(self._windows(counted, int(self.count_include_pad), size))


@dataclass
class Product(Operation):
    """Products of two computed matrices, one for each of ``heads`` heads of each image.

    ``acc[h, i, j] = sum over k of (A[h, i, k] - a_zp) * (B[h, k, j] - b_zp)``. An operand that is ``joined`` (A, B,
    result) holds the heads side by side: (N, rows, heads * columns); one that is not holds them one after the other:
    (N * heads, rows, columns). With ``transposed`` B lies as (columns of the result, K) rather than (K, columns).

    A joined A or B holds ``of`` heads, of which those from number ``first`` on take part."""

    heads: int
    joined: tuple[bool, bool, bool]
    transposed: bool
    requantise: Requantisation  #: one scale
    first: int = 0
    of: int = 0  #: 0: as many as take part
    operands: ClassVar[int] = 2
    rule: ClassVar[GoldenRule] = GoldenRule.INTEGER

    @property
    def all_heads(self) -> int:
        """Heads that joined operands hold."""
        return self.of or self.heads

    def _problems(self, inputs: Sequence[Tensor], output: Tensor) -> Iterator[str]:
        if not 0 < self.heads <= self.all_heads - self.first <= self.all_heads:
            yield f"heads {self.first} to {self.first + self.heads} of {self.all_heads}"
            return
        if len(self.joined) != 3 or any(len(tensor.shape) != 3 for tensor in (*inputs, output)):
            yield f"{self.heads} heads, operands {[tensor.shape for tensor in inputs]}, result {output.shape}"
            return
        (images, rows, depth), other, result = (
            (tensor.shape[0] * self.heads, tensor.shape[1], tensor.shape[2] // held) if joined else tensor.shape
            for tensor, joined, held in zip(
                (*inputs, output), self.joined, (self.all_heads, self.all_heads, self.heads), strict=True
            )
        )
        columns = other[1] if self.transposed else other[2]
        wanted = (images, columns, depth) if self.transposed else (images, depth, columns)
        if other != wanted or result != (images, rows, columns):
            yield f"{(images, rows, depth)} by {other}{' transposed' * self.transposed} is not {result}"

    def _compute(self, inputs: Sequence[TensorValue], output: Tensor) -> npt.NDArray:
        a, b = (self._matrices(one, joined) for one, joined in zip(inputs, self.joined, strict=False))
        total = a @ (b.transpose(0, 2, 1) if self.transposed else b)
        if self.joined[2]:
            total = total.reshape(-1, self.heads, *total.shape[1:]).transpose(0, 2, 1, 3)
        return self.requantise.of(total, output.dtype)

    def _matrices(self, operand: TensorValue, joined: bool) -> npt.NDArray[np.float64]:
        """Return an operand minus its zero point as (N * heads, rows, columns)."""
        centred = operand.centred
        images, _, rows, columns = centred.shape
        if joined:
            split = centred.reshape(images, rows, self.all_heads, columns // self.all_heads)
            split = split[:, :, self.first : self.first + self.heads].transpose(0, 2, 1, 3)
            centred = split.reshape(images * self.heads, 1, rows, columns // self.all_heads)
        return centred[:, 0].astype(np.float64)


def _int4(weights: npt.NDArray) -> bool:
    return not weights.size or (int(weights.min()) >= -8 and int(weights.max()) <= 7)


def spanned(kernel: Pair, dilations: Pair) -> Pair:
    """Return how many rows and columns ``kernel`` reaches over, whose pixels lie ``dilations`` apart."""
    rows, columns = ((size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True))
    return rows, columns


def maximum_steps(kernel: Pair, stride: int, span: int, cols: int) -> float:
    """Return the elements read for a maximum over ``kernel``, one of ``cols`` side by side, ``stride`` apart and
    reaching over ``span`` columns: all of a window, or maxima of columns, which windows share, and then those."""
    rows, columns = kernel
    return min(rows * columns, rows * ((cols - 1) * stride + span) / cols + columns)


def _padded(x: npt.NDArray, pads: Pads, fill: float) -> npt.NDArray:
    top, left, bottom, right = pads
    return np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=fill)


def _windowed(x: Tensor, output: Tensor, kernel: Pair, strides: Pair, pads: Pads, dilations: Pair) -> Iterator[str]:
    n, h, w, _ = x.nhwc
    if min(strides) < 1 or min(dilations) < 1 or min(kernel) < 1 or min(pads) < 0:
        yield f"kernel {kernel}, strides {strides}, dilations {dilations} or pads {pads}"
        return
    sizes = [
        (size + pads[axis] + pads[axis + 2] - (kernel[axis] - 1) * dilations[axis] - 1) // strides[axis] + 1
        for axis, size in enumerate((h, w))
    ]
    if output.nhwc[:3] != (n, *sizes):
        yield f"output {output.nhwc}, expected {(n, *sizes)} and channels"
