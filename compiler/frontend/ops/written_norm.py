"""Layer normalisation written out in single operators, as exporters write it below opset 17::

    mean = ReduceMean(x);  d = x - mean;  y = d / sqrt(ReduceMean(d * d) + epsilon)

Root mean square normalisation, which exporters write so below opset 23, is the same with x in the place of d.

Its values before y are :class:`Inner` ones, which nothing computes, and its last node is the same
:class:`rows.Normalised` as that of LayerNormalization. Scale and bias that follow, Mul and Add of constants, are taken
in by :mod:`compiler.frontend.ops.eltwise`. Where something else reads an inner value, the walk begins again and the
first node is refused.
"""

import dataclasses
import enum
from dataclasses import dataclass

import onnx

from compiler.frontend.draft import Draft, Pending, Value, attributes
from compiler.frontend.ops import pointwise, rows
from compiler.frontend.problems import Unsupported
from compiler.frontend.source import OnnxSource
from compiler.frontend.values import Const, QuantConst, Real


class Role(enum.Enum):
    """What a value is within a layer normalisation."""

    ROW = "x"
    MEAN = "mean"
    CENTRED = "difference to the mean"
    SQUARE = "square"
    VARIANCE = "variance"
    STEADY = "variance with epsilon"
    DEVIATION = "deviation"
    INVERSE = "inverse deviation"
    NORMALISED = "normalised value"


_PER_ELEMENT = (Role.CENTRED, Role.SQUARE)  #: others are one value per row


@dataclass(frozen=True, kw_only=True)
class Inner(Pending):
    """A value inside a normalisation of ``x`` whose first node is ``first``; ``epsilon``: once it is added; without
    ``centred`` it is one by the root mean square."""

    x: Real
    first: str
    role: Role
    epsilon: float | None = None
    centred: bool = True

    @property
    def called(self) -> str:
        """Return what it is, in words."""
        return self.role.value if self.centred else self.role.value.replace("variance", "mean square")


def reduced_axes(draft: Draft, node: onnx.NodeProto, rank: int) -> list[int]:
    """Return the axes of a tensor of ``rank`` that ReduceMean ``node`` names, in order."""
    constant = draft.constant(node, 1, "axes")
    axes = attributes(node).get("axes", ()) if constant is None else constant.reshape(-1)
    return sorted(int(axis) % rank for axis in axes)


def begun(draft: Draft, node: onnx.NodeProto, x: Real) -> Inner | None:
    """Return the mean of each row of ``x`` that ReduceMean ``node`` computes, if it is subtracted from the row; else
    None."""
    source = draft.source
    subtracted = any(
        reader.op_type == "Sub"
        and reader.input[1] == node.output[0]
        and _stored(source, reader.input[0]) == _stored(source, node.input[0])
        for reader in source.consumers.get(node.output[0], [])
    )
    if not subtracted or not _over_rows(draft, node, x):
        return None
    if node.name in draft.broken_norms:
        raise Unsupported(
            f"it begins a layer normalisation written out in single operators, but {draft.broken_norms[node.name]}; "
            "export with opset 17 or later, so that it is one LayerNormalization, or leave these nodes out of "
            "quantisation"
        )
    shape = (*x.shape[:-1], 1)
    return Inner(shape=shape, node=node.name, roots=(x.quant.tensor,), x=x, first=node.name, role=Role.MEAN)


def begun_with_squares(draft: Draft, node: onnx.NodeProto, value: Value) -> Inner | None:
    """Return the mean square of each row of a tensor that ReduceMean ``node`` computes, if ``value``, which it reads,
    is the square of that tensor; else None."""
    if not isinstance(value, pointwise.Pointwise) or value.reshapes or not _over_rows(draft, node, value.x):
        return None
    square = draft.source.producers[node.input[0]]
    operands = [draft.value(name) for name in square.input]
    by_itself = square.op_type == "Mul" and all(operand == value.x for operand in operands)
    to_the_second = (
        square.op_type == "Pow" and operands[0] == value.x and _number(operands[1], len(value.x.shape)) == 2.0
    )
    if not by_itself and not to_the_second:
        return None
    if node.name in draft.broken_norms:
        raise Unsupported(
            "it begins a root mean square normalisation written out in single operators, but "
            f"{draft.broken_norms[node.name]}; export with opset 23 or later, so that it is one RMSNormalization, or "
            "leave these nodes out of quantisation"
        )
    shape, roots = (*value.x.shape[:-1], 1), (value.x.quant.tensor,)
    return Inner(
        shape=shape, node=node.name, roots=roots, x=value.x, first=node.name, role=Role.VARIANCE, centred=False
    )


def continued(draft: Draft, node: onnx.NodeProto, value: Inner) -> list[Value]:
    """Return what ``node`` makes of inner ``value``; Unsupported if it has no part in a layer normalisation."""
    operands = [_operand(draft.value(name), value) if name else None for name in node.input]
    epsilon = value.epsilon
    match (node.op_type if node.domain in ("", "ai.onnx") else ""), *operands:
        case "Sub", Role.ROW, Role.MEAN:
            role = Role.CENTRED
        case ("Pow", Role.CENTRED, 2.0) | ("Mul", Role.CENTRED, Role.CENTRED):
            role = Role.SQUARE
        case ("ReduceMean", Role.SQUARE, *_) if _over_rows(draft, node, value.x):
            role = Role.VARIANCE
        case ("Add", Role.VARIANCE, float(epsilon)) | ("Add", float(epsilon), Role.VARIANCE):
            role = Role.STEADY
        case ("Sqrt", Role.STEADY) | ("Pow", Role.STEADY, 0.5):
            role = Role.DEVIATION
        case ("Reciprocal", Role.DEVIATION) | ("Div", 1.0, Role.DEVIATION) | ("Pow", Role.STEADY, -0.5):
            role = Role.INVERSE
        case (
            ("Div", Role.CENTRED, Role.DEVIATION)
            | ("Mul", Role.CENTRED, Role.INVERSE)
            | ("Mul", Role.INVERSE, Role.CENTRED)
        ):
            return [rows.normalised(node, value.x, None, None, _epsilon(draft, node), centred=value.centred)]
        case _:
            raise broken(draft, value, f"{node.op_type} {node.name!r} reads its {value.called}")
    shape = value.x.shape if role in _PER_ELEMENT else (*value.x.shape[:-1], 1)
    return [dataclasses.replace(value, shape=shape, node=node.name, role=role, epsilon=epsilon)]


def broken(draft: Draft, value: Inner, reason: str) -> Unsupported:
    """Note that the layer normalisation of ``value`` is not whole, and return the error that says so."""
    draft.broken_norms.setdefault(value.first, reason)
    return Unsupported(reason)


def _operand(value: Value, inner: Inner) -> Role | float | None:
    """Return the role of a value in the layer normalisation of ``inner``, or the number that it is."""
    if isinstance(value, Inner) and value.first == inner.first:
        return value.role
    if value == inner.x:
        return Role.ROW if inner.centred else Role.CENTRED
    return _number(value, len(inner.x.shape))


def _number(value: Value, most_axes: int) -> float | None:
    """Return the number that a constant of no more than ``most_axes`` axes is, if it is one."""
    if isinstance(value, Const | QuantConst) and value.array.size == 1 and value.array.ndim <= most_axes:
        return float(value.array.reshape(-1)[0])
    return None


def _epsilon(draft: Draft, node: onnx.NodeProto) -> float:
    values = [draft.value(name) for name in node.input]
    return next(value.epsilon for value in values if isinstance(value, Inner) and value.epsilon is not None)


def _over_rows(draft: Draft, node: onnx.NodeProto, x: Real) -> bool:
    """Return whether ReduceMean ``node`` keeps all axes and reduces the last one."""
    rank = len(x.shape)
    return bool(attributes(node).get("keepdims", 1)) and reduced_axes(draft, node, rank) == [rank - 1]


def _stored(source: OnnxSource, name: str) -> str:
    """Return what a value is dequantised from, or itself: a quantiser may dequantise a tensor once for each reader."""
    node = source.producers.get(name)
    return node.input[0] if node is not None and node.op_type == "DequantizeLinear" else name
