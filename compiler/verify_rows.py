"""What must hold of the operators of attention: products of computed matrices, softmax, layer normalisation."""

import math
from collections.abc import Iterator

import numpy as np

from compiler.ir import LayerNorm, Product, Softmax, Tensor
from hw.contract.row_function import EXPONENTS

_MOST_SUMS = 1 << 32
_MOST_MULTIPLIER = 1 << 22  #: of the vector unit, which multiplies by the length of a row


def product(op: Product, inputs: list[Tensor], output: Tensor) -> Iterator[str]:
    """Yield the shapes of both operands and the result."""
    if not 0 < op.heads <= op.all_heads - op.first <= op.all_heads:
        yield f"heads {op.first} to {op.first + op.heads} of {op.all_heads}"
        return
    if len(op.joined) != 3 or any(len(tensor.shape) != 3 for tensor in (*inputs, output)):
        yield f"{op.heads} heads, operands {[tensor.shape for tensor in inputs]}, result {output.shape}"
        return
    (images, rows, depth), other, result = (
        _apart(tensor, joined, op.heads, held)
        for tensor, joined, held in zip(
            (*inputs, output), op.joined, (op.all_heads, op.all_heads, op.heads), strict=True
        )
    )
    columns = other[1] if op.transposed else other[2]
    wanted = (images, columns, depth) if op.transposed else (images, depth, columns)
    if other != wanted or result != (images, rows, columns):
        yield f"{(images, rows, depth)} by {other}{' transposed' * op.transposed} is not {result}"


def _apart(tensor: Tensor, joined: bool, heads: int, held: int) -> tuple[int, int, int]:
    images, rows, columns = tensor.shape
    return (images * heads, rows, columns // held) if joined else (images, rows, columns)


def softmax(op: Softmax, inputs: list[Tensor], output: Tensor) -> Iterator[str]:
    """Yield the shapes, and tables whose sums and entries the vector unit can hold."""
    if math.prod(inputs[0].shape) != math.prod(output.shape) or inputs[0].shape[-1] != output.shape[-1]:
        yield f"output {output.shape}, expected {inputs[0].shape}"
    for table in (op.sums, op.values):
        if table.shape != (256,) or table.dtype != np.int32 or (table < 0).any():
            yield f"a table is {table.dtype} {table.shape}, not 256 int32 from 0 on"
    if int(op.sums.max()) * output.shape[-1] >= _MOST_SUMS:
        yield "sums of exponentials exceed 32 bits"
    if op.exponent not in EXPONENTS:
        yield f"exponent {op.exponent}"
    info = np.iinfo(output.dtype)
    if not info.min <= op.lo <= op.hi <= info.max:
        yield f"clamp [{op.lo}, {op.hi}] is not within {output.dtype}"


def layer_norm(op: LayerNorm, inputs: list[Tensor], output: Tensor) -> Iterator[str]:
    """Yield the shapes and ranges."""
    if math.prod(inputs[0].shape) != math.prod(output.shape) or inputs[0].shape[-1] != output.shape[-1]:
        yield f"output {output.shape}, expected {inputs[0].shape}"
    channels = output.shape[-1]
    if op.bias.shape != (channels,) or op.bias.dtype != np.int32 or op.requantise.scale.shape != (channels,):
        yield f"bias is {op.bias.dtype} {op.bias.shape}, scale {op.requantise.scale.shape}, not ({channels},)"
    if not 0 <= op.epsilon < _MOST_SUMS or op.exponent not in EXPONENTS or channels >= _MOST_MULTIPLIER:
        yield f"epsilon {op.epsilon}, exponent {op.exponent} or {channels} channels"
    if not np.isfinite(op.requantise.scale).all():
        yield "a scale is not finite"
