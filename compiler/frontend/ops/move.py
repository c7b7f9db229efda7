"""Operators that move or rename data: reshapes, transposes, Concat, Cast. Most only change the layout."""

import dataclasses
import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from compiler.frontend.draft import Draft, Pending, Value, attributes, operator
from compiler.frontend.inputs import transposed_axes
from compiler.frontend.ops import host, pointwise
from compiler.frontend.problems import Unsupported
from compiler.frontend.values import (
    Const,
    Float,
    Quant,
    QuantConst,
    Quantisation,
    Real,
    Shape,
    TensorLayout,
    common_layout,
)
from compiler.ir import Concat, Table

MOVES = pointwise.MOVES
Step = tuple[str, Any]  #: ("reshape", shape) or ("transpose", perm)


@operator("Reshape", "Flatten", "Squeeze", "Unsqueeze")
def reshape(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Return the same elements in the same order under another shape."""
    value = draft.value(node.input[0])
    return [_moved(draft, node, value, ("reshape", _new_shape(draft, node, value.shape)))]


@operator("Transpose")
def transpose(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Another order of the axes."""
    value = draft.value(node.input[0])
    step = "transpose", transposed_axes(node, len(value.shape))
    if isinstance(value, Float) and not value.tensor:  # an input that the host quantises: it stores that in any order
        return [dataclasses.replace(value, shape=_shape_after(value.shape, step))]
    return [_moved(draft, node, value, step)]


@operator("DepthToSpace", "SpaceToDepth")
def between_depth_and_space(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Return an image whose blocks of pixels have become channels, or the other way round."""
    value, given = draft.value(node.input[0]), attributes(node)
    (n, c, h, w), size = value.shape, given["blocksize"]
    steps: tuple[Shape, Shape, Shape]  #: a reshape, a transpose, and a reshape
    if node.op_type == "SpaceToDepth":
        inside = (n, c, h // size, size, w // size, size)
        steps = inside, (0, 3, 5, 1, 2, 4), (n, c * size**2, h // size, w // size)
    elif given.get("mode", "DCR") == "DCR":
        inside = (n, size, size, c // size**2, h, w)
        steps = inside, (0, 3, 4, 1, 5, 2), (n, c // size**2, h * size, w * size)
    else:
        inside = (n, c // size**2, size, size, h, w)
        steps = inside, (0, 1, 4, 2, 5, 3), (n, c // size**2, h * size, w * size)
    if math.prod(inside) != math.prod(value.shape):
        raise Unsupported(f"blocks of {size} by {size} in a tensor of shape {value.shape}")
    for kind, argument in zip(("reshape", "transpose", "reshape"), steps, strict=True):
        value = _moved(draft, node, value, (kind, argument))
    return [value]


@operator("Identity", "Dropout")
def identity(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """The value itself (Dropout does nothing in inference)."""
    mask = [Const(np.ones(draft.value(node.input[0]).shape, bool))] * (len(node.output) - 1)
    return [draft.value(node.input[0]), *mask]


@operator("Cast")
def cast(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Accumulators to float: they are as good as real numbers already."""
    value, to = draft.value(node.input[0]), attributes(node)["to"]
    if isinstance(value, Pending) and to == onnx.TensorProto.FLOAT:
        return [value]
    if isinstance(value, Float) and is_number(draft, value) and to in (onnx.TensorProto.INT32, onnx.TensorProto.INT64):
        return [value]
    raise Unsupported("a cast of data; the accelerator has 8-bit tensors only")


def _new_shape(draft: Draft, node: onnx.NodeProto, shape: Shape) -> Shape:
    given, like = attributes(node), np.broadcast_to(np.int8(0), shape)
    if node.op_type == "Flatten":
        axis = given.get("axis", 1)
        axis += len(shape) * (axis < 0)
        return like.reshape(math.prod(shape[:axis]), -1).shape
    wanted = draft.constant(node, 1, "shape")
    if node.op_type == "Reshape":
        assert wanted is not None
        copied = not given.get("allowzero", 0)
        sizes = [shape[i] if size == 0 and copied else int(size) for i, size in enumerate(wanted.reshape(-1))]
        try:
            return like.reshape(sizes).shape
        except ValueError:
            told = f"cannot reshape {shape} to {wanted.reshape(-1).tolist()}"
            raise Unsupported(f"{told}; a batch fixed to 1 may contradict a constant shape") from None
    axes = given.get("axes") if wanted is None else [int(axis) for axis in wanted.reshape(-1)]
    if node.op_type == "Squeeze":
        return np.squeeze(like, None if axes is None else tuple(axes)).shape
    assert axes is not None
    return np.expand_dims(like, tuple(axes)).shape


def _moved(draft: Draft, node: onnx.NodeProto, value: Value, step: Step) -> Value:
    if isinstance(value, Quant):
        return reshape_all(draft, value, (step,))
    if isinstance(value, Real):
        return dataclasses.replace(value, quant=reshape_all(draft, value.quant, (step,)))
    if isinstance(value, Pending):
        return dataclasses.replace(value, shape=_shape_after(value.shape, step), reshapes=(*value.reshapes, step))
    if isinstance(value, QuantConst):
        return _moved_constant(value, step)
    if isinstance(value, Float):
        if is_number(draft, value):
            return dataclasses.replace(value, shape=_shape_after(value.shape, step))
        return host.fall_back(draft, node, "it moves float data")[0]
    raise Unsupported("its input is a constant")


def is_number(draft: Draft, value: Float) -> bool:
    """Return whether ``value`` is one whole number that the model is given."""
    given = {port.tensor for port in draft.graph.inputs}
    return math.prod(value.shape) == 1 and value.dtype in ("int32", "int64") and value.tensor in given


def _moved_constant(value: QuantConst, step: Step) -> QuantConst:
    kind, argument = step
    if kind == "transpose":
        return value.transposed(argument)
    axis = value.axis
    if axis is not None:
        before, extent = math.prod(value.shape[:axis]), value.shape[axis]
        fits = [a for a, size in enumerate(argument) if size == extent and math.prod(argument[:a]) == before]
        if not fits:
            raise Unsupported("a reshape of constants that splits their quantisation axis")
        axis = fits[0]
    return dataclasses.replace(value, data=value.data.reshape(argument), axis=axis)


def _shape_after(shape: Shape, step: Step) -> Shape:
    kind, argument = step
    return argument if kind == "reshape" else tuple(shape[axis] for axis in argument)


def reshape_all(draft: Draft, quant: Quant, steps: tuple[Step, ...]) -> Quant:
    """Apply reshapes and transposes; memory stays as it is wherever one layout can describe the result."""
    for kind, argument in steps:
        quant = draft.dense(quant)
        if kind == "reshape":
            quant = dataclasses.replace(quant, shape=argument)
            continue
        layout = own_axes(quant)
        if layout is None:
            layout = TensorLayout.plain(quant.shape)
            quant = dataclasses.replace(quant, tensor=draft.relayout(quant, layout), layout=layout)
        moved = layout.transposed(argument)
        quant = dataclasses.replace(quant, shape=moved.view, layout=moved)
    return quant


def own_axes(quant: Quant) -> TensorLayout | None:
    """Return the tensor's layout in terms of its present shape, if there is one."""
    if quant.layout.view == quant.shape:
        return quant.layout
    if len(quant.shape) > 6:
        return None
    for perm in itertools.permutations(range(len(quant.shape))):
        layout = TensorLayout(quant.shape, perm)
        if layout.same_order(quant.layout):
            return layout
    return None


@dataclass(frozen=True, kw_only=True)
class Joined(Pending):
    """Tensors joined along ONNX ``axis``."""

    parts: tuple[Real, ...]
    axis: int

    def emit(self, draft: Draft, target: Quantisation, name: str) -> Quant:
        """Return one ``ir.Concat``, behind a table for each part that is stored otherwise."""
        shape = self.base_shape
        computed = [one.quant for one in self.parts if draft.graph.tensors[one.quant.tensor].data is None]
        layout = common_layout(shape, computed)
        sources = []
        for part in self.parts:
            tensor = draft.relayout(part.quant, TensorLayout(part.shape, layout.perm))
            sources.append(requantised(draft, tensor, part.quantisation, target))
        axis = layout.perm.index(self.axis)
        if (self.low, self.high) == (-np.inf, np.inf):
            made = draft.new_tensor(name, shape, layout, target)
            draft.add(Concat(self.node, sources, made.tensor, axis=axis))
            return made
        whole = draft.new_tensor(f"{name}:unclamped", shape, layout, target)
        draft.graph.tensors[whole.tensor].onnx_name = ""
        draft.add(Concat(self.node, sources, whole.tensor, axis=axis))
        made = draft.new_tensor(name, shape, layout, target)
        stored = np.arange(256, dtype=np.uint8).view(target.dtype)
        table = np.clip(stored, *target.clamp(self.low, self.high)).astype(target.dtype).view(np.uint8)
        draft.add(Table(f"{self.node}:clamp", [whole.tensor], made.tensor, table=table))
        return made


def requantised(draft: Draft, tensor: str, source: Quantisation, target: Quantisation) -> str:
    """Return the IR tensor ``tensor`` stored with the parameters ``target``, between tensors of ONNX."""
    if source == target:
        return tensor
    before = draft.graph.tensors[tensor]
    if before.data is not None:
        stored = pointwise.requantisation_table(source, target)[before.data.view(np.uint8)]
        return draft.new_constant(f"{tensor}:requantised", stored.view(target.dtype), target)
    name = draft.unique(f"{tensor}:requantised")
    draft.graph.tensors[name] = dataclasses.replace(
        before, name=name, dtype=target.dtype, scale=float(target.scale), zero_point=target.zero_point,
        onnx_name="", perm=(), view=(),
    )  # fmt: skip
    draft.add(Table(name, [tensor], name, table=pointwise.requantisation_table(source, target)))
    return name


def concat(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Concatenation of quantised tensors and constants; 8-bit ones must be stored alike."""
    values = [draft.value(name) for name in node.input]
    axis = attributes(node)["axis"] % len(values[0].shape)
    first = next((value for value in values if isinstance(value, Quant)), None)
    if first and all(isinstance(value, Quant) or _stored_like(value, first) for value in values):
        params = draft.quantisation(first.tensor)
        reals = [_stored_part(draft, name, params) for name in node.input]
        return [joined(node, tuple(reals), axis).emit(draft, params, node.output[0])]
    return [joined(node, tuple(_part(draft, name) for name in node.input), axis)]


def _stored_like(value: Value, other: Quant) -> bool:
    return isinstance(value, Const) and value.array.dtype == other.dtype


def _stored_part(draft: Draft, name: str, params: Quantisation) -> Real:
    """Return an 8-bit tensor, or a constant in memory, whose parameters are ``params``."""
    value = draft.value(name)
    if isinstance(value, Const):
        return _constant_part(draft, name, value.array, params)
    assert isinstance(value, Quant)
    return Real(value, params, name)


def _part(draft: Draft, name: str) -> Real:
    """Return a dequantised tensor, or a constant in memory."""
    value = draft.value(name)
    if isinstance(value, Const):
        raise Unsupported(
            f"its input {name!r} is a constant of {value.array.dtype}; quantise the model so that it is 8-bit, with "
            "DequantizeLinear behind"
        )
    params = value.quantisation if isinstance(value, QuantConst) else None
    if not isinstance(value, QuantConst) or params is None:
        return draft.real(name)
    return _constant_part(draft, name, value.data, params)


def _constant_part(draft: Draft, name: str, data: npt.NDArray, params: Quantisation) -> Real:
    tensor = draft.new_constant(f"{name}:constant", data, params)
    return Real(Quant(tensor, data.shape, TensorLayout.plain(data.shape), params.dtype), params, name)


def joined(node: onnx.NodeProto, parts: tuple[Real, ...], axis: int) -> Joined:
    """Return the pending concatenation of ``parts``."""
    axis %= len(parts[0].shape)
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    roots = tuple(dict.fromkeys(part.quant.tensor for part in parts))
    return Joined(shape=tuple(shape), node=node.name, roots=roots, parts=parts, axis=axis)
