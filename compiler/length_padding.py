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
    """``_axis``: of each tensor of the short model the axis along which it is the first part of the other's; None if
    both are equal."""

    def __init__(self, short: ir.Graph, long: ir.Graph) -> None:
        self._short, self._long = short, long
        self._axis: dict[str, int | None] = {}
        self._twin: dict[str, str] = {}  #: names in the other model

    def run(self) -> None:
        for a, b in self._pairs(self._short.inputs, self._long.inputs, "inputs"):
            self._same(
                f"input {a.name!r}", (a.name, a.dtype, a.perm, a.quantise), (b.name, b.dtype, b.perm, b.quantise)
            )
            seen = _moved(f"input {a.name!r}", a.shape, b.shape, _permuted(a.shape, a.perm), _permuted(b.shape, b.perm))
            self._begin(f"input {a.name!r}", a.tensor, b.tensor, _permuted(a.shape, a.perm), seen, b)
        for one, other in self._pairs(self._short.ops, self._long.ops, "operators"):
            self._operator(one, other)
        for a, b in self._pairs(self._short.outputs, self._long.outputs, "outputs"):
            where = f"output {a.name!r}"
            self._same(where, (a.name, a.dtype, a.perm, a.quantise), (b.name, b.dtype, b.perm, b.quantise))
            if self._twin.get(a.tensor) != b.tensor:
                raise _NotExact(f"{where}: it is made from other tensors")
            axis = self._axis[a.tensor]
            shape = self._short.tensors[a.tensor].shape
            turned = None if axis is None else (a.perm.index(axis) if a.perm else axis)
            _reshaped(where, _permuted(shape, a.perm), turned, a.shape, b.shape)

    def _begin(self, where: str, a: str, b: str, shape: Shape, axis: int | None, port: ir.Port) -> None:
        """An input: its tensor holds the transposed array under another shape."""
        one, other = self._short.tensors[a], self._long.tensors[b]
        self._axis[a] = _reshaped(where, shape, axis, one.shape, other.shape)
        self._twin[a] = b

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
        self._axis[op.output] = self._result(where, op, one.shape, other.shape)
        self._twin[op.output] = twin.output

    def _operand(self, where: str, a: str, b: str) -> None:
        one, other = self._short.tensors[a], self._long.tensors[b]
        if one.data is not None and other.data is not None:
            self._same(f"constant {a!r} of {where}", one.data, other.data)
            self._axis[a], self._twin[a] = None, b
        if self._twin.get(a) != b:
            raise _NotExact(f"{where} reads other tensors")

    def _result(self, where: str, op: ir.Operation, shape: Shape, longer: Shape) -> int | None:
        """Return the axis of the result, of ``shape`` and for the longer input of shape ``longer``."""
        axes = [self._axis[name] for name in op.inputs]
        if all(axis is None for axis in axes):
            self._same(f"the shape of {where}", shape, longer)
            return None
        axis, source = axes[0], self._short.tensors[op.inputs[0]].shape
        if isinstance(op, ir.Reshape):
            return _reshaped(where, source, axis, shape, longer)
        if isinstance(op, ir.Permute) and axis is not None:
            return _only(where, shape, longer, op.perm.index(axis))
        if isinstance(op, ir.Table):
            return _only(where, shape, longer, axis)
        if isinstance(op, ir.Conv | ir.Pool | ir.Pad):
            return self._windows(where, op, axis, longer)
        if isinstance(op, ir.Concat):
            if len(set(axes)) == 1 and op.axis != axis:
                return _only(where, shape, longer, axis)
            raise _NotExact(f"{where} joins along the length")
        if isinstance(op, ir.Eltwise):
            return self._eltwise(where, op, axes, shape, longer)
        raise _NotExact(f"nothing is known of {where}")

    def _eltwise(self, where: str, op: ir.Eltwise, axes: list[int | None], shape: Shape, longer: Shape) -> int | None:
        """Operands have the result's shape, or one element along the length, which is there for all of it."""
        lengths = {each for each in axes if each is not None}
        axis = lengths.pop()
        if lengths:
            raise _NotExact(f"{where} has the length in several places")
        for name, each in zip(op.inputs, axes, strict=True):
            operand = self._short.tensors[name].shape
            if len(operand) != len(shape) or (each is None and operand[axis] != 1):
                raise _NotExact(f"{where} reads tensors of different ranks")
        return _only(where, shape, longer, axis)

    def _windows(self, where: str, op: ir.Conv | ir.Pool | ir.Pad, axis: int | None, longer: Shape) -> int | None:
        """Operators on (N, H, W, C): the last window must end within the shorter input."""
        source, result = self._short.tensors[op.inputs[0]], self._short.tensors[op.output]
        side = _image_axis(source.shape, axis)
        if side not in (1, 2):
            raise _NotExact(f"{where} mixes what lies along the length")
        have, made, before = source.nhwc[side], result.nhwc[side], op.pads[side - 1]
        if isinstance(op, ir.Pad):
            last = made - 1 - before
        else:
            kernel = op.weights.shape[1:3] if isinstance(op, ir.Conv) else op.kernel
            dilation = op.dilations[side - 1] if isinstance(op, ir.Conv) else 1
            last = (made - 1) * op.strides[side - 1] - before + (kernel[side - 1] - 1) * dilation
        if last >= have:
            raise _NotExact(
                f"{where} reads {last - have + 1} beyond the end of the shorter input, where it has padding"
            )
        if result.shape == longer:  # windows so far apart that the longer input has no more of them
            return None
        for found in range(len(result.shape)):
            if _image_axis(result.shape, found) == side and _differ(result.shape, longer) == [found]:
                return found
        raise _NotExact(f"{where} keeps no axis for the length")


def _image_axis(shape: Shape, axis: int | None) -> int | None:
    """Return the axis of (N, H, W, C) that ``axis`` of ``shape`` is (``ir.Tensor.nhwc``); None where it is no single
    one."""
    if axis is None or not 2 <= len(shape) <= 4:
        return None
    return {2: (2, 3), 3: (0, 2, 3), 4: (0, 1, 2, 3)}[len(shape)][axis]


def _permuted(shape: Shape, perm: Shape) -> Shape:
    return tuple(shape[axis] for axis in perm) if perm else tuple(shape)


def _moved(where: str, shape: Shape, longer: Shape, turned: Shape, turned_longer: Shape) -> int | None:
    """Return the axis that differs after a transposition."""
    if len(_differ(shape, longer)) > 1:
        raise _NotExact(f"{where} has the length in several places")
    differ = _differ(turned, turned_longer)
    return differ[0] if differ else None


def _differ(a: Shape, b: Shape) -> list[int]:
    return [axis for axis, (x, y) in enumerate(zip(a, b, strict=True)) if x != y] if len(a) == len(b) else [-1, -1]


def _only(where: str, shape: Shape, longer: Shape, axis: int | None) -> int | None:
    """``axis``, if two shapes differ there and nowhere else."""
    if _differ(shape, longer) != ([] if axis is None else [axis]):
        raise _NotExact(f"{where} has the length in several places")
    return axis


def _reshaped(where: str, source: Shape, axis: int | None, shape: Shape, longer: Shape) -> int | None:
    """Return the axis of the same bytes under another shape: as many blocks before it, so that each keeps its first
    part."""
    differ = _differ(tuple(shape), tuple(longer))
    if axis is None and not differ:
        return None
    if axis is None or len(differ) != 1 or math.prod(shape[: differ[0]]) != math.prod(source[:axis]):
        raise _NotExact(f"{where} mixes what lies along the length")
    return differ[0]


def _equal(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, ir.Requantisation) and isinstance(b, ir.Requantisation):
        return all(_equal(getattr(a, each.name), getattr(b, each.name)) for each in fields(a))
    return a == b
