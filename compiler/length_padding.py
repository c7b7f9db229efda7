"""Whether a model for a longer input computes, where the shorter input lies, what the model for that one computes.

That padding an input at its end is exact is proved operator by operator, for any values in the padding: each tensor of
the model for the shorter input is the first part, along one axis, of the same tensor of the other model. It is so where
every window reads what the shorter input has, or padding in front of it: in causal and in valid convolutions. It is not
where a window reaches beyond the end, as those of "same" convolutions do, nor where something is computed over the
whole length.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from compiler import ir

Shape = tuple[int, ...]
Shapes = tuple[Shape, Shape]  #: of the same tensor for the shorter input and for the longer one
_NAMES = frozenset({"name", "inputs", "output", "nodes"})


def padding_problem(short: ir.Graph, long: ir.Graph) -> str | None:
    """Return why results of ``long``, the same model for a longer input, do not begin with those of ``short``; None if
    they do, whatever follows the shorter input."""
    try:
        _Proof(short, long).run()
    except _NotExact as problem:
        return str(problem)
    return None


class _NotExact(Exception):
    """Names the operator and what stands in the way."""


class _Proof:
    """``_twin``: names of tensors in the other model. A tensor is the first part of its twin along the only axis where
    their shapes differ; both are equal if there is none."""

    def __init__(self, short: ir.Graph, long: ir.Graph) -> None:
        self._short, self._long = short, long
        self._twin: dict[str, str] = {}

    def run(self) -> None:
        for a, b in self._pairs(self._short.inputs, self._long.inputs, "inputs"):
            where = f"input {a.name!r}"
            self._twin[a.tensor] = b.tensor
            self._same(where, (a.name, a.dtype, a.perm, a.quantise), (b.name, b.dtype, b.perm, b.quantise))
            _axis(where, (a.shape, b.shape))
            _regrouped(where, (_permuted(a.shape, a.perm), _permuted(b.shape, b.perm)), self._shapes(a.tensor))
        for one, other in self._pairs(self._short.ops, self._long.ops, "operators"):
            self._operator(one, other)
        for a, b in self._pairs(self._short.outputs, self._long.outputs, "outputs"):
            where = f"output {a.name!r}"
            self._same(where, (a.name, a.dtype, a.perm, a.quantise), (b.name, b.dtype, b.perm, b.quantise))
            if self._twin.get(a.tensor) != b.tensor:
                raise _NotExact(f"{where}: it is made from other tensors")
            shape, longer = self._shapes(a.tensor)
            _regrouped(where, (_permuted(shape, a.perm), _permuted(longer, b.perm)), (a.shape, b.shape))

    def _shapes(self, tensor: str) -> Shapes:
        """Return the shapes of a tensor and its twin."""
        return self._short.tensors[tensor].shape, self._long.tensors[self._twin[tensor]].shape

    def _pairs(self, a: Sequence[Any], b: Sequence[Any], what: str) -> Iterable[tuple[Any, Any]]:
        if len(a) != len(b):
            raise _NotExact(f"{len(a)} {what} for the shorter input, {len(b)} for the longer one")
        return zip(a, b, strict=True)

    def _same(self, where: str, a: object, b: object) -> None:
        if not _equal(a, b):
            raise _NotExact(f"{where} is not the same for both lengths")

    def _operator(self, op: ir.Operation, twin: ir.Operation) -> None:
        where = f"operator {op.name!r} ({op.kind})"
        self._same(where, type(op), type(twin))
        if isinstance(op, ir.Host):
            raise _NotExact(f"{where} runs on the CPU, and nothing is known of it")
        for each in fields(op):
            if each.name not in _NAMES:
                self._same(f"{each.name} of {where}", getattr(op, each.name), getattr(twin, each.name))
        for a, b in self._pairs(op.inputs, twin.inputs, f"inputs of {where}"):
            self._operand(where, a, b)
        one, other = self._short.tensors[op.output], self._long.tensors[twin.output]
        self._same(where, (one.dtype, one.scale, one.zero_point), (other.dtype, other.scale, other.zero_point))
        self._twin[op.output] = twin.output
        self._result(where, op, [self._shapes(name) for name in op.inputs], (one.shape, other.shape))

    def _operand(self, where: str, a: str, b: str) -> None:
        one, other = self._short.tensors[a], self._long.tensors[b]
        if one.data is not None and other.data is not None:
            self._same(f"constant {a!r} of {where}", one.data, other.data)
            self._twin[a] = b
        if self._twin.get(a) != b:
            raise _NotExact(f"{where} reads other tensors")

    def _result(self, where: str, op: ir.Operation, operands: list[Shapes], made: Shapes) -> None:
        """Check that the result of ``op``, of the shapes ``made``, begins with what it is for the shorter input."""
        axes = [_axis(where, shapes) for shapes in operands]
        if all(axis is None for axis in axes):
            self._same(f"the shape of {where}", *made)
        elif isinstance(op, ir.Reshape):
            _regrouped(where, operands[0], made)
        elif isinstance(op, ir.Conv | ir.Pool | ir.Pad):
            self._windows(where, op, axes[0], made)
        elif isinstance(op, ir.Concat) and (len(set(axes)) > 1 or op.axis == axes[0]):
            raise _NotExact(f"{where} joins along the length")
        elif isinstance(op, ir.Eltwise):
            _eltwise(where, operands, axes, made)
        elif not isinstance(op, ir.Concat | ir.Permute | ir.Shuffle | ir.Table):
            raise _NotExact(f"nothing is known of {where}")
        _axis(where, made)

    def _windows(self, where: str, op: ir.Conv | ir.Pool | ir.Pad, axis: int | None, made: Shapes) -> None:
        """Operators on (N, H, W, C): the last window must end within the shorter input."""
        source, result = self._short.tensors[op.inputs[0]], self._short.tensors[op.output]
        side = _image_axis(source.shape, axis)
        if side not in (1, 2):
            raise _NotExact(f"{where} mixes what lies along the length")
        have, count, before = source.nhwc[side], result.nhwc[side], op.pads[side - 1]
        if isinstance(op, ir.Pad):
            last = count - 1 - before
        else:
            kernel = op.weights.shape[1:3] if isinstance(op, ir.Conv) else op.kernel
            last = (count - 1) * op.strides[side - 1] - before + (kernel[side - 1] - 1) * op.dilations[side - 1]
        if last >= have:
            raise _NotExact(
                f"{where} reads {last - have + 1} beyond the end of the shorter input, where it has padding"
            )
        # Windows may be so far apart that the longer input has no more of them.
        if made[0] != made[1] and _image_axis(made[0], _axis(where, made)) != side:
            raise _NotExact(f"{where} keeps no axis for the length")


def _eltwise(where: str, operands: list[Shapes], axes: list[int | None], made: Shapes) -> None:
    """Check operands: they have the result's shape, or one element along the length, which is there for all of it."""
    axis = _axis(where, made)
    if axis is None or {*axes} - {None} != {axis}:
        raise _NotExact(f"{where} has the length in several places")
    for (shape, _), each in zip(operands, axes, strict=True):
        if len(shape) != len(made[0]) or (each is None and shape[axis] != 1):
            raise _NotExact(f"{where} reads tensors of different ranks")


def _image_axis(shape: Shape, axis: int | None) -> int | None:
    """Return the axis of (N, H, W, C) that ``axis`` of ``shape`` is (``ir.Tensor.nhwc``); None where it is no single
    one."""
    if axis is None or not 2 <= len(shape) <= 4:
        return None
    return {2: (2, 3), 3: (0, 2, 3), 4: (0, 1, 2, 3)}[len(shape)][axis]


def _permuted(shape: Shape, perm: Shape) -> Shape:
    return tuple(shape[axis] for axis in perm) if perm else tuple(shape)


def _axis(where: str, shapes: Shapes) -> int | None:
    """Return the only axis where two shapes differ; None if they are equal."""
    differ = _differ(shapes)
    if len(differ) > 1:
        raise _NotExact(f"{where} has the length in several places")
    return differ[0] if differ else None


def _differ(shapes: Shapes) -> list[int]:
    one, other = shapes
    if len(one) != len(other):
        return [-1, -1]
    return [axis for axis, (x, y) in enumerate(zip(one, other, strict=True)) if x != y]


def _regrouped(where: str, before: Shapes, after: Shapes) -> None:
    """Check bytes under another shape: as many blocks come before the length, so that each keeps its first part."""
    axis, differ = _axis(where, before), _differ(after)
    if axis is None and not differ:
        return
    if axis is None or len(differ) != 1 or math.prod(after[0][: differ[0]]) != math.prod(before[0][:axis]):
        raise _NotExact(f"{where} mixes what lies along the length")


def _equal(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, ir.Requantisation) and isinstance(b, ir.Requantisation):
        return all(_equal(getattr(a, each.name), getattr(b, each.name)) for each in fields(a))
    return a == b
