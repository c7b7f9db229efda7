"""Layer normalisation written out in single operators, as exporters write it below opset 17::

    mean = ReduceMean(x);  d = x - mean;  y = d / sqrt(ReduceMean(d * d) + epsilon)

Its first node finds out whether all that reads its inner values belongs to it. Then they are :class:`Inner` values,
which nothing computes, and its last node is the same :class:`rows.Normalised` as that of LayerNormalization. Scale and
bias that follow, Mul and Add of constants, are taken in by :mod:`compiler.frontend.ops.eltwise`.
"""

import enum
import heapq
from dataclasses import dataclass, field

import numpy.typing as npt
import onnx

from compiler.frontend.draft import Draft, Pending, Value, attributes
from compiler.frontend.ops import rows
from compiler.frontend.problems import Unsupported
from compiler.frontend.source import OnnxSource
from compiler.frontend.values import Real


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


_ONE_PER_ROW = (Role.MEAN, Role.VARIANCE, Role.STEADY, Role.DEVIATION, Role.INVERSE)


@dataclass(frozen=True, kw_only=True)
class Inner(Pending):
    """A value inside a layer normalisation of ``x``; ``match`` knows what its readers make of it."""

    x: Real
    match: "_Match"


@dataclass
class _Match:
    """Roles of ONNX tensors in a layer normalisation whose first node is ``first``, and its epsilon."""

    source: OnnxSource
    first: onnx.NodeProto
    rank: int
    roles: dict[str, Role] = field(default_factory=dict)
    epsilon: float | None = None

    def fill(self) -> None:
        """Find the roles of all values between x and the results; Unsupported if something else reads one of them."""
        self.roles[self.first.output[0]] = Role.MEAN
        todo, seen = self._readers(self.first.output[0]), set[int]()
        while todo:
            place = heapq.heappop(todo)
            if place in seen:
                continue
            seen.add(place)
            node = self.source.model.graph.node[place]
            role, name = self._role(node), node.output[0]
            if role is None:
                inner = next(name for name in node.input if name in self.roles)
                raise _not_whole(f"{node.op_type} {node.name!r} reads its {self.roles[inner].value}")
            self.roles[name] = role
            if role is not Role.NORMALISED:
                for reader in self._readers(name):
                    heapq.heappush(todo, reader)
        if Role.NORMALISED not in self.roles.values():
            raise _not_whole("its end is missing")
        for name, role in self.roles.items():
            if role is not Role.NORMALISED and name in self.source.outputs:
                raise _not_whole(f"its {role.value} is an output of the model")

    def _readers(self, name: str) -> list[int]:
        return [self.source.order[node.name] for node in self.source.consumers.get(name, [])]

    def _role(self, node: onnx.NodeProto) -> Role | None:
        """Of the result of ``node``, None if it has no part in a layer normalisation."""
        if node.domain not in ("", "ai.onnx"):
            return None
        match node.op_type, *(self._operand(name) for name in node.input[:2]):
            case "Sub", Role.ROW, Role.MEAN:
                return Role.CENTRED
            case ("Pow", Role.CENTRED, 2.0) | ("Mul", Role.CENTRED, Role.CENTRED):
                return Role.SQUARE
            case ("ReduceMean", Role.SQUARE, *_) if over_rows(self.source, node, self.rank):
                return Role.VARIANCE
            case ("Add", Role.VARIANCE, float(epsilon)) | ("Add", float(epsilon), Role.VARIANCE):
                if self.epsilon is not None:
                    raise _not_whole(f"{node.op_type} {node.name!r} adds a second epsilon")
                self.epsilon = epsilon
                return Role.STEADY
            case ("Sqrt", Role.STEADY) | ("Pow", Role.STEADY, 0.5):
                return Role.DEVIATION
            case ("Reciprocal", Role.DEVIATION) | ("Div", 1.0, Role.DEVIATION) | ("Pow", Role.STEADY, -0.5):
                return Role.INVERSE
            case (
                ("Div", Role.CENTRED, Role.DEVIATION)
                | ("Mul", Role.CENTRED, Role.INVERSE)
                | ("Mul", Role.INVERSE, Role.CENTRED)
            ):
                return Role.NORMALISED
        return None

    def _operand(self, name: str) -> Role | float | None:
        """Return the role of a value, or the number that it is."""
        if name in self.roles:
            return self.roles[name]
        if _same_value(self.source, name, self.first.input[0]):
            return Role.ROW
        constant = _constant(self.source, name)
        if constant is None or constant.size != 1 or constant.ndim > self.rank:
            return None
        return float(constant.reshape(-1)[0])


def _not_whole(reason: str) -> Unsupported:
    return Unsupported(
        f"it begins a layer normalisation written out in single operators, but {reason}; export with opset 17 or "
        "later, so that it is one LayerNormalization, or leave these nodes out of quantisation"
    )


def begins(source: OnnxSource, node: onnx.NodeProto, rank: int) -> bool:
    """Return whether ReduceMean ``node`` is the mean of a row that is then subtracted from the row."""
    return over_rows(source, node, rank) and any(
        reader.op_type == "Sub"
        and reader.input[1] == node.output[0]
        and _same_value(source, reader.input[0], node.input[0])
        for reader in source.consumers.get(node.output[0], [])
    )


def over_rows(source: OnnxSource, node: onnx.NodeProto, rank: int) -> bool:
    """Return whether ReduceMean ``node`` of a tensor of ``rank`` keeps all axes and reduces the last one."""
    given, axes = attributes(node), None
    if len(node.input) > 1 and node.input[1]:
        axes = _constant(source, node.input[1])
    wanted = given.get("axes", ()) if axes is None else axes.reshape(-1)
    return bool(given.get("keepdims", 1)) and [int(axis) % rank for axis in wanted] == [rank - 1]


def begun(draft: Draft, node: onnx.NodeProto, x: Real) -> Inner:
    """Return the mean of ``x`` that ``node`` computes, within a layer normalisation; Unsupported if that is not
    whole."""
    match = _Match(draft.source, node, len(x.shape))
    match.fill()
    return _inner(node, x, match)


def continued(node: onnx.NodeProto, value: Inner) -> list[Value]:
    """Return what ``node`` makes of an inner value."""
    match = value.match
    if match.roles[node.output[0]] is not Role.NORMALISED:
        return [_inner(node, value.x, match)]
    assert match.epsilon is not None
    return [rows.normalised(node, value.x, None, None, match.epsilon)]


def _inner(node: onnx.NodeProto, x: Real, match: _Match) -> Inner:
    shape = (*x.shape[:-1], 1) if match.roles[node.output[0]] in _ONE_PER_ROW else x.shape
    return Inner(shape=shape, node=node.name, roots=(x.quant.tensor,), x=x, match=match)


def _same_value(source: OnnxSource, name: str, other: str) -> bool:
    """Return whether two names stand for one value: a quantiser may dequantise a tensor once for each reader."""
    if name == other:
        return True
    first, second = (source.producers.get(each) for each in (name, other))
    if first is None or second is None or not first.op_type == second.op_type == "DequantizeLinear":
        return False
    if first.input[0] != second.input[0] or len(first.input) != len(second.input):
        return False
    pairs = zip(first.input[1:], second.input[1:], strict=True)
    return all(_equal(_constant(source, a), _constant(source, b)) for a, b in pairs)


def _equal(a: npt.NDArray | None, b: npt.NDArray | None) -> bool:
    return a is not None and b is not None and a.size == b.size == 1 and a.item() == b.item()


def _constant(source: OnnxSource, name: str) -> npt.NDArray | None:
    """Return the value of a constant, also where the walk has not come to its node yet; None if it is computed."""
    if name in source.constants:
        return source.constants[name]
    node = source.producers.get(name)
    if node is None or not all(each in source.constants for each in filter(None, node.input)):
        return None
    try:
        return source.evaluate(node)[0]
    except Exception:  # onnxruntime's exceptions have no common base class
        return None
