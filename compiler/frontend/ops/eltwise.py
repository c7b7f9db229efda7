"""Add, Sub, Mul, Min and Max: of two tensors (Min and Max of several), or of a tensor and a constant; sums and products
with a constant also as bias or scale of the operator in front."""

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx

from compiler.frontend.draft import Draft, Pending, Value, operator
from compiler.frontend.ops import affine, masks, move, pointwise, quantise, rows
from compiler.frontend.ops.conv import Accumulated
from compiler.frontend.problems import Unsupported
from compiler.frontend.requantise import Multipliers, add_multipliers, mul_multipliers
from compiler.frontend.values import (
    NHWC,
    Const,
    Quant,
    QuantConst,
    Quantisation,
    Real,
    Shape,
    TensorLayout,
    common_layout,
)
from compiler.ir import Eltwise, Requantisation

#: What an operator of ONNX is in the IR, and the sign of its second operand.
_KINDS = {
    "Add": ("add", 1), "Sum": ("add", 1), "Sub": ("add", -1), "Mul": ("mul", 1), "Min": ("min", 1), "Max": ("max", 1),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Combined(Pending):
    """a + b, a - b (``sign`` -1), a * b, or the smaller or larger of both. ``b`` may be a constant; it has a's shape or
    is broadcast to it."""

    kind: str
    a: Real
    b: Real | QuantConst
    sign: int = 1

    def emit(self, draft: Draft, target: Quantisation, name: str) -> Quant:
        """Return one ``ir.Eltwise``, behind a table for each operand of a comparison that is stored otherwise."""
        if self.kind == "add" and self.sign > 0 and isinstance(self.b, QuantConst) and self.b.quantisation:
            mask = masks.summed(self.node, self.a, self.b, target, self.low, self.high)
            if mask is not None:
                return mask.emit(draft, target, name)
        one, other, layout = self.a.quantisation, _parameters(self.b), self._layout()
        a, b = draft.relayout(self.a.quant, layout), self._right(draft, layout, name)
        by = Multipliers(1, 1, 0, np.float32(1), target.zero_point)
        table = None
        if self.kind == "mul":
            by = mul_multipliers(one, other, target)
        elif self.kind == "add":
            by = add_multipliers(one, other, target, self.sign)
        elif one == other and one.dtype == target.dtype:
            by = dataclasses.replace(by, zero_point=one.zero_point)
            table = pointwise.requantisation_table(one, target) if one != target else None
        else:  # to requantise keeps the order of values: of two requantised ones the smaller is the smaller requantised
            a, b = move.requantised(draft, a, one, target), move.requantised(draft, b, other, target)
        lo, hi = target.clamp(self.low, self.high)
        if table is not None:
            table = np.clip(table.view(target.dtype), lo, hi).view(np.uint8)
            lo, hi = target.limits
        made = draft.new_tensor(name, self.base_shape, layout, target)
        draft.add(
            Eltwise(
                self.node, [a, b], made.tensor, kind_=self.kind, ma=by.ma, mb=by.mb, bias=by.bias,
                requantise=Requantisation(np.array([by.scale], np.float32), by.zero_point, lo, hi, table),
            )
        )  # fmt: skip
        return made

    def _layout(self) -> TensorLayout:
        """That of both operands if they share one, so that no data moves; the order of ONNX if one lies so and none as
        an image does; else the default."""
        whole = [one.quant for one in (self.a, self.b) if isinstance(one, Real) and one.shape == self.base_shape]
        own = [quant.layout for quant in whole if quant.padding is None]
        if len(own) == 2 and own[0].view == self.base_shape and own[0].same_order(own[1]):
            return own[0]
        if isinstance(self.b, Real) and _over_rows(self.base_shape, self.b.shape):
            return TensorLayout.plain(self.base_shape)
        return common_layout(self.base_shape, whole if self._reads_plain() else [])

    def _reads_plain(self) -> bool:
        """Return whether the second operand can be read beside a first one in the order of ONNX."""
        shape = (1,) * (len(self.base_shape) - len(self.b.shape)) + self.b.shape
        small = math.prod(shape) in (1, shape[-1])
        if isinstance(self.b, Real):
            return small or shape == self.base_shape
        return small or math.prod(shape) != math.prod(shape[1:2])  # one value per channel is best read as an image

    def _right(self, draft: Draft, layout: TensorLayout, name: str) -> str:
        if isinstance(self.b, QuantConst):
            data = self.b.data.reshape((1,) * (len(layout.view) - self.b.data.ndim) + self.b.data.shape)
            if data.size not in (1, math.prod(data.shape[1:2] if layout.perm == NHWC else data.shape[-1:])) or (
                data.size > 1 and len(layout.view) == 3 and layout.view[0] > 1
            ):
                data = np.broadcast_to(data, layout.view)
            elif data.size > 1 and len(layout.view) == 4:
                data = np.broadcast_to(data, (layout.view[0], *data.shape[1:]))  # one row for each image
            return draft.new_constant(f"{name}:b", data.transpose(layout.perm), _parameters(self.b))
        b = self.b.quant
        shape = (1,) * (len(layout.view) - len(b.shape)) + b.shape
        return draft.relayout(Quant(b.tensor, shape, b.layout, b.dtype, b.padding), TensorLayout(shape, layout.perm))


@dataclass(frozen=True, kw_only=True)
class Chained(Pending):
    """The smallest or largest of more than two ``values``, which ``by`` compares in order. The result is stored with
    the same parameters after each comparison, which keeps the order of values: so it is that of all at once."""

    values: tuple[Real | QuantConst, ...]
    by: onnx.NodeProto

    def emit(self, draft: Draft, target: Quantisation, name: str) -> Quant:
        """Return one ``ir.Eltwise`` less than there are values, as :class:`Combined` does each."""
        found, *others = self.values
        for number, other in enumerate(others):
            last = other is others[-1]
            step = combined(self.by, [found, other])
            step = step.clamped(self.low, self.high) if last else step
            label = name if last else f"{name}:{number}"
            made = step.emit(draft, target, label)
            if not last:
                draft.graph.tensors[made.tensor].onnx_name = ""
                del draft.source.signatures[label]
            found = Real(made, target, label)
        return made


def _parameters(value: Real | QuantConst) -> Quantisation:
    params = value.quantisation
    if params is None:
        raise Unsupported("its constant has several scales; quantise it to 8 bits per tensor")
    return params


@operator("Add", "Sub", "Mul", "Min", "Max")
def binary(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """See the module's text; what depends on one tensor alone is a table, also where there are other numbers of
    operands."""
    values = [draft.value(name) for name in node.input]
    if len(values) > 2 and not all(one_tensor(values[0], value) for value in values[1:]):
        operands = tuple(_operand(draft, name) for name in node.input)
        return [chained(node, operands)]
    if len(node.input) == 2:
        left, right = (draft.value(name) for name in node.input)
        for value, other in ((left, right), (right, left)):
            taken = node.op_type in ("Add", "Mul") or (node.op_type == "Sub" and value is left)
            if taken and isinstance(value, Accumulated | rows.Normalised) and isinstance(other, Const | QuantConst):
                return [_with_constant(value, other.array, node.op_type)]
            if taken and isinstance(value, Real) and isinstance(other, Const):
                by = affine.per_channel(value.shape, other.array)
                if by is not None:
                    one, nothing = np.ones(by.size), np.zeros(by.size)
                    sign = -1 if node.op_type == "Sub" else 1
                    factor, offset = (by, nothing) if node.op_type == "Mul" else (one, sign * by)
                    return [affine.affine(draft, node, value, factor, offset)]
        if not one_tensor(left, right):
            return [combined(node, [_operand(draft, name) for name in node.input])]
    return pointwise.extended(draft, node)


def one_tensor(left: Value, right: Value) -> bool:
    """Return whether both depend on one tensor alone: they are made of it, or one is a single constant."""

    def root(value: Value) -> object:
        if isinstance(value, Const | QuantConst):
            return None if value.array.size == 1 else value
        if isinstance(value, pointwise.Pointwise):
            return value.x.quant
        return value.quant if isinstance(value, Real) else value

    def computed(value: Value) -> bool:
        return isinstance(value, pointwise.Pointwise) and not value.reshapes

    a, b = root(left), root(right)
    if a is None or b is None:
        return True
    return a is b and (computed(left) or computed(right) or left is right)


def combined(node: onnx.NodeProto, values: list[Real | QuantConst]) -> Combined:
    """Return the pending result of two operands that ``node`` computes."""
    kind, sign = _KINDS[node.op_type.removeprefix("QLinear")]
    shape = np.broadcast_shapes(values[0].shape, values[1].shape)
    if values[0].shape != shape or not isinstance(values[0], Real):
        if sign < 0:
            raise Unsupported(f"shapes {values[0].shape} and {values[1].shape}: the left operand would be broadcast")
        values = values[::-1]
    a, b = values
    if not isinstance(a, Real):
        raise Unsupported("both operands are constants")
    if a.shape != shape:
        raise Unsupported(f"shapes {a.shape} and {b.shape}: both operands would be broadcast")
    if isinstance(b, Real) and not _broadcasts(a.shape, b.shape):
        raise Unsupported(
            f"shape {b.shape} broadcast to {a.shape}; the accelerator broadcasts over pixels or over everything"
        )
    return Combined(
        shape=shape, node=node.name, kind=kind, a=a, b=b, sign=sign,
        roots=tuple(value.quant.tensor for value in values if isinstance(value, Real)),
    )  # fmt: skip


def chained(node: onnx.NodeProto, values: tuple[Real | QuantConst, ...]) -> Chained:
    """Return the pending minimum or maximum of ``values``, the largest first."""
    values = tuple(sorted(values, key=lambda value: (isinstance(value, QuantConst), -math.prod(value.shape))))
    shape = np.broadcast_shapes(*(value.shape for value in values))
    for other in values[1:]:
        combined(node, [values[0], other])  # Unsupported where shapes do not go together
    return Chained(
        shape=shape, node=node.name, values=values, by=node,
        roots=tuple(value.quant.tensor for value in values if isinstance(value, Real)),
    )  # fmt: skip


def _operand(draft: Draft, name: str) -> Real | QuantConst:
    value = draft.value(name)
    if isinstance(value, QuantConst):
        if value.quantisation is None:
            raise Unsupported(f"its constant {name!r} is {value.data.dtype.name} with {value.scale.size} scales; "
                              "quantise it to 8 bits per tensor")  # fmt: skip
        return value
    if isinstance(value, Const):
        raise Unsupported(f"its constant {name!r} is not quantised; put DequantizeLinear behind an 8-bit constant")
    return draft.real(name)


def _broadcasts(full: Shape, small: Shape) -> bool:
    small = (1,) * (len(full) - len(small)) + small
    if small == full or math.prod(small) == 1:
        return True
    if len(full) == 4:
        return small == (full[0], full[1], 1, 1) or _over_rows(full, small)
    lead = math.prod(full[:-1])
    return small[-1] == full[-1] and math.prod(small[:-1]) == 1 and (len(full) == 2 or lead == full[-2])


def _over_rows(full: Shape, small: Shape) -> bool:
    """Return whether ``small`` is one row that is broadcast over all rows of four axes, as a mask of keys is over
    scores of one image."""
    return len(full) == 4 and full[0] == 1 and small[-1:] == full[-1:] and math.prod(small) == full[-1] > 1


def _with_constant(
    pending: Accumulated | rows.Normalised, constant: npt.NDArray, op_type: str
) -> Accumulated | rows.Normalised:
    """Return a constant behind a convolution, product or layer normalisation, taken into its bias or scale."""
    if (pending.low, pending.high) != (-np.inf, np.inf) or pending.reshapes:
        raise Unsupported(f"it follows {pending.node!r} in float, behind a clamp or reshape; quantise between them")
    by = _per_channel(pending, constant)
    sign = -1 if op_type == "Sub" else 1
    if isinstance(pending, rows.Normalised):
        if op_type == "Mul":
            return dataclasses.replace(pending, gamma=pending.gamma * by, beta=pending.beta * by)
        return dataclasses.replace(pending, beta=pending.beta + sign * by)
    if op_type == "Mul":
        if (by <= 0).any():
            raise Unsupported("it multiplies by a constant that is not positive")
        scale = (pending.scale * by.astype(np.float32)).astype(np.float32)
        return dataclasses.replace(pending, scale=scale, real_bias=pending.real_bias * by)
    if constant.dtype == np.int32 and (pending.scale == 1).all():
        return dataclasses.replace(pending, bias=pending.bias + sign * by.astype(np.int64))
    return dataclasses.replace(pending, real_bias=pending.real_bias + sign * by)


def _per_channel(pending: Accumulated | rows.Normalised, constant: npt.NDArray) -> npt.NDArray[np.float64]:
    shape, rank = constant.shape, len(pending.shape)
    axis = 1 if isinstance(pending, Accumulated) and not pending.matrix else rank - 1
    channels, extended = pending.shape[axis], (1,) * (rank - len(shape)) + shape
    wanted = tuple(channels if index == axis and size != 1 else 1 for index, size in enumerate(extended))
    if len(extended) > rank or extended != wanted:
        raise Unsupported(f"a constant of shape {shape} behind {pending.node!r}; it must be one value per channel")
    return np.broadcast_to(constant.reshape(-1).astype(np.float64), channels)


@operator("QLinearAdd", "QLinearMul", domain="com.microsoft")
def qlinear_binary(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """A, a_scale, a_zp, B, b_scale, b_zp, y_scale, y_zp; one operand may be constant."""
    operands = [quantise.dequantised(draft, node, index) for index in (0, 3)]
    dtype = next(value.quant.dtype for value in operands if isinstance(value, Real))
    result = combined(node, operands)
    return quantise.stored(draft, node, result, 6, dtype)
