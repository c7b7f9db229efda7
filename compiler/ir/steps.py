"""Operators of models that keep a state from one inference to the next, and of numbers that each inference gives.

A number is a tensor of one int64, listed in ``Graph.numbers``: no layer reads it from memory, but jobs get it as a
parameter. A state has a fixed number of rows, of which an inference finds as many filled as a number says, and fills
one more.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from compiler.ir.graph import GoldenRule, Operation, Tensor, TensorValue


@dataclass
class Append(Operation):
    """``inputs[0]`` with the rows ``inputs[1]`` at the place along physical ``axis`` that the number ``inputs[2]``
    says; ``inputs[3]`` is equal to the first, and gets the rows, too. It is done in place: the result takes the bytes
    of the first input, ``kept`` those of the fourth, with room for as many rows more. What lies behind them stays."""

    axis: int
    kept: str
    operands: ClassVar[int] = 4
    rule: ClassVar[GoldenRule] = GoldenRule.EXACT

    @property
    def results(self) -> list[str]:
        """Return both results."""
        return [self.output, self.kept]

    @property
    def places(self) -> dict[str, str]:
        """Return whose bytes the results take."""
        return {self.output: self.inputs[0], self.kept: self.inputs[3]}

    def _problems(self, inputs: Sequence[Tensor], output: Tensor) -> Iterator[str]:
        before, rows, number, state = inputs
        wanted = list(before.shape)
        wanted[self.axis] += rows.shape[self.axis]
        if tuple(wanted) != output.shape or max(before.shape[: self.axis], default=1) > 1:
            yield f"{rows.shape} behind {before.shape} along axis {self.axis} is not {output.shape}"
        for tensor in (before, rows, state):
            if (tensor.dtype, tensor.scale, tensor.zero_point) != (output.dtype, output.scale, output.zero_point):
                yield f"input {tensor.name!r} is not quantised like the output"
        if before.shape != state.shape:
            yield f"{state.shape} is not {before.shape}"
        if number.size != np.dtype(number.dtype).itemsize:
            yield f"number {number.name!r} has shape {number.shape}"

    def _compute(self, inputs: Sequence[TensorValue], output: Tensor) -> npt.NDArray:
        before, rows, number = inputs[:3]
        state = np.concatenate([before.shaped, np.zeros_like(rows.shaped)], self.axis)
        first = int(number.value.reshape(-1)[0])
        place = (slice(None),) * self.axis + (slice(first, first + rows.tensor.shape[self.axis]),)
        state[place] = rows.shaped
        return state


@dataclass
class StateLoad(Operation):
    """The same bytes, brought on chip before anything reads them."""

    rule: ClassVar[GoldenRule] = GoldenRule.EXACT

    def _problems(self, inputs: Sequence[Tensor], output: Tensor) -> Iterator[str]:
        if inputs[0].shape != output.shape:
            yield f"{inputs[0].shape} is not {output.shape}"

    def _compute(self, inputs: Sequence[TensorValue], output: Tensor) -> npt.NDArray:
        return inputs[0].value


@dataclass
class Lookup(Operation):
    """The rows of the constant table ``inputs[0]`` that the numbers behind it say, one behind the other."""

    operands: ClassVar[int] = 0
    rule: ClassVar[GoldenRule] = GoldenRule.EXACT

    def _problems(self, inputs: Sequence[Tensor], output: Tensor) -> Iterator[str]:
        table, *numbers = inputs
        if not numbers or table.data is None or table.size * len(numbers) != table.shape[0] * output.size:
            yield f"{len(numbers)} rows of {table.shape} are not {output.shape}, or the table is no constant"
        for number in numbers:
            if number.size != np.dtype(number.dtype).itemsize:
                yield f"number {number.name!r} has shape {number.shape}"

    def _compute(self, inputs: Sequence[TensorValue], output: Tensor) -> npt.NDArray:
        table, *numbers = inputs
        return table.shaped[[int(number.value.reshape(-1)[0]) for number in numbers]]
