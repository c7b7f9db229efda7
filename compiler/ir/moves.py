"""Operators that move bytes as they are, and those that run on the CPU."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from compiler.ir.graph import GoldenRule, Operation, Tensor, TensorValue


@dataclass
class Concat(Operation):
    """Join along physical ``axis``; all inputs already have the output's quantisation."""

    axis: int
    operands: ClassVar[int] = 0
    rule: ClassVar[GoldenRule] = GoldenRule.EXACT

    def _problems(self, inputs: Sequence[Tensor], output: Tensor) -> Iterator[str]:
        if not 0 <= self.axis < len(output.shape):
            yield f"axis {self.axis}"
            return
        wanted = list(inputs[0].shape)
        wanted[self.axis] = sum(tensor.shape[self.axis] for tensor in inputs)
        if tuple(wanted) != output.shape:
            yield f"output {output.shape}, expected {tuple(wanted)}"
        for tensor in inputs:
            if (tensor.dtype, tensor.scale, tensor.zero_point) != (output.dtype, output.scale, output.zero_point):
                yield f"input {tensor.name!r} is not quantised like the output"

    def _compute(self, inputs: Sequence[TensorValue], output: Tensor) -> npt.NDArray:
        return np.concatenate([one.shaped for one in inputs], self.axis)


@dataclass
class Slice(Operation):
    """As many indices of physical ``axis`` as the result has, ``step`` apart, from ``first`` on."""

    axis: int
    first: int
    step: int = 1
    rule: ClassVar[GoldenRule] = GoldenRule.EXACT

    def _problems(self, inputs: Sequence[Tensor], output: Tensor) -> Iterator[str]:
        shape = inputs[0].shape
        if not 0 <= self.axis < len(shape) or len(output.shape) != len(shape):
            yield f"axis {self.axis} of {shape}"
            return
        end = self.first + (output.shape[self.axis] - 1) * self.step + 1
        wanted = (*shape[: self.axis], output.shape[self.axis], *shape[self.axis + 1 :])
        if self.step < 1 or not 0 <= self.first < end <= shape[self.axis] or output.shape != wanted:
            yield f"{self.first} to {end} by {self.step} of {shape} along axis {self.axis} is not {output.shape}"

    def _compute(self, inputs: Sequence[TensorValue], output: Tensor) -> npt.NDArray:
        taken = self.first + self.step * np.arange(output.shape[self.axis])
        return np.take(inputs[0].shaped, taken, axis=self.axis)


@dataclass
class Permute(Operation):
    """``numpy.transpose(x, perm)`` on physical axes, dense result."""

    perm: tuple[int, ...]
    rule: ClassVar[GoldenRule] = GoldenRule.EXACT

    def _problems(self, inputs: Sequence[Tensor], output: Tensor) -> Iterator[str]:
        shape = inputs[0].shape
        if sorted(self.perm) != list(range(len(shape))):
            yield f"{self.perm} does not permute {shape}"
        elif tuple(shape[axis] for axis in self.perm) != output.shape:
            yield f"output {output.shape}, expected {tuple(shape[axis] for axis in self.perm)}"

    def _compute(self, inputs: Sequence[TensorValue], output: Tensor) -> npt.NDArray:
        return inputs[0].value.transpose(self.perm)


@dataclass
class Shuffle(Operation):
    """Deals ``groups`` columns of (N, H, W * groups, C) out to one pixel of (N, H, W, C * groups): channel
    ``c * groups + g`` of the result is channel ``c`` of the pixel's column ``g``."""

    groups: int
    rule: ClassVar[GoldenRule] = GoldenRule.EXACT

    def _problems(self, inputs: Sequence[Tensor], output: Tensor) -> Iterator[str]:
        shape = inputs[0].shape
        if len(shape) != 4 or self.groups < 1 or shape[2] % self.groups:
            yield f"columns of {shape} in groups of {self.groups}"
        elif output.shape != self._dealt(shape):
            yield f"output {output.shape}, expected {self._dealt(shape)}"

    def _compute(self, inputs: Sequence[TensorValue], output: Tensor) -> npt.NDArray:
        images, height, width, depth = inputs[0].tensor.shape
        columns = inputs[0].value.reshape(images, height, width // self.groups, self.groups, depth)
        return columns.swapaxes(3, 4).reshape(output.shape)

    def _dealt(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*shape[:2], shape[2] // self.groups, shape[3] * self.groups)


@dataclass
class Repeat(Operation):
    """``numpy.repeat`` along every physical axis: each index comes ``factors[axis]`` times, one after the other."""

    factors: tuple[int, ...]
    rule: ClassVar[GoldenRule] = GoldenRule.EXACT

    def _problems(self, inputs: Sequence[Tensor], output: Tensor) -> Iterator[str]:
        shape = inputs[0].shape
        if len(self.factors) != len(shape) or min(self.factors) < 1:
            yield f"{self.factors} do not repeat {shape}"
        elif output.shape != tuple(size * factor for size, factor in zip(shape, self.factors, strict=True)):
            yield f"output {output.shape} is not {shape} by {self.factors}"

    def _compute(self, inputs: Sequence[TensorValue], output: Tensor) -> npt.NDArray:
        value = inputs[0].shaped
        for axis, factor in enumerate(self.factors):
            value = value.repeat(factor, axis)
        return value


@dataclass
class Reshape(Operation):
    """Same bytes, other shape; costs nothing."""

    rule: ClassVar[GoldenRule] = GoldenRule.EXACT
    renames: ClassVar[bool] = True

    def _problems(self, inputs: Sequence[Tensor], output: Tensor) -> Iterator[str]:
        if math.prod(inputs[0].shape) != math.prod(output.shape):
            yield f"{inputs[0].shape} does not hold as many elements as {output.shape}"

    def _compute(self, inputs: Sequence[TensorValue], output: Tensor) -> npt.NDArray:
        return inputs[0].value


@dataclass
class Pad(Operation):
    """Constant padding of H and W (top, left, bottom, right) with raw byte value ``value``."""

    pads: tuple[int, int, int, int]
    value: int
    rule: ClassVar[GoldenRule] = GoldenRule.EXACT

    def _problems(self, inputs: Sequence[Tensor], output: Tensor) -> Iterator[str]:
        n, h, w, c = inputs[0].nhwc
        top, left, bottom, right = self.pads
        if min(self.pads) < 0 or not 0 <= self.value <= 255:
            yield f"pads {self.pads} or value {self.value}"
        if output.nhwc != (n, h + top + bottom, w + left + right, c):
            yield f"output {output.shape} does not fit pads {self.pads} of {inputs[0].shape}"

    def _compute(self, inputs: Sequence[TensorValue], output: Tensor) -> npt.NDArray:
        top, left, bottom, right = self.pads
        x = inputs[0].value.reshape(inputs[0].tensor.nhwc)
        fill = np.array([self.value], np.uint8).view(x.dtype)[0]
        return np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=fill)


@dataclass
class Host(Operation):
    """ONNX nodes that run on the CPU. ``model`` is a serialised ONNX model whose input and output names are
    ``inputs`` and ``outputs``; tensors between host operators may have any dtype."""

    model: bytes
    outputs: list[str]
    reason: str

    @property
    def results(self) -> list[str]:
        """Return all outputs."""
        return self.outputs
