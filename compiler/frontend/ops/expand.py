"""Tile and Expand by constants: copies of a tensor side by side, and indices that come several times."""

import dataclasses

import numpy as np
import onnx

from compiler.frontend.draft import Draft, Value, operator
from compiler.frontend.ops import move, repeats, slices
from compiler.frontend.problems import Unsupported
from compiler.frontend.values import Quant, Real, TensorLayout
from compiler.ir import Concat


@operator("Expand")
def expand(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Return a tensor broadcast to a constant shape."""
    value, wanted = slices.stored_value(draft, node), draft.constant(node, 1, "shape")
    assert wanted is not None
    shape = np.broadcast_shapes(value.shape, tuple(int(size) for size in wanted.reshape(-1)))
    full = (1,) * (len(shape) - len(value.shape)) + value.shape
    quant = move.reshape_all(draft, _bytes(value), (("reshape", full),))
    factors = [size // before for size, before in zip(shape, full, strict=True)]
    return [_result(draft, node, value, repeats.repeated(draft, node.output[0], node.name, quant, factors))]


@operator("Tile")
def tile(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Return a tensor several times side by side along its axes."""
    value, times = slices.stored_value(draft, node), draft.constant(node, 1, "repeats")
    assert times is not None
    counts = [int(count) for count in times.reshape(-1)]
    if len(counts) != len(value.shape) or min(counts) < 1 or max(counts) > repeats.MOST_PARTS:
        raise Unsupported(
            f"repeats {counts} of a tensor of shape {value.shape}; the accelerator takes 1 to {repeats.MOST_PARTS} for "
            "each axis"
        )
    single = [count if size == 1 else 1 for count, size in zip(counts, value.shape, strict=True)]
    quant = repeats.repeated(draft, node.output[0], node.name, _bytes(value), single)
    for axis, count in enumerate(counts):
        if count > 1 and value.shape[axis] > 1:
            quant = repeats.aligned(draft, quant)
            shape = (*quant.shape[:axis], quant.shape[axis] * count, *quant.shape[axis + 1 :])
            layout = TensorLayout(shape, quant.layout.perm)
            made = draft.new_inner(node.output[0], layout, draft.quantisation(quant.tensor))
            draft.add(Concat(node.name, [quant.tensor] * count, made.tensor, axis=layout.perm.index(axis)))
            quant = made
    return [_result(draft, node, value, quant)]


def _bytes(value: Real | Quant) -> Quant:
    return value.quant if isinstance(value, Real) else value


def _result(draft: Draft, node: onnx.NodeProto, value: Real | Quant, quant: Quant) -> Real | Quant:
    """Return ``quant`` as what ``node`` makes of ``value``."""
    quant = slices.named(draft, node, value, quant, draft.quantisation(quant.tensor))
    return dataclasses.replace(value, quant=quant) if isinstance(value, Real) else quant
