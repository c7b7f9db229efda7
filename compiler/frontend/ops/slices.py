"""Parts of tensors along axes: Slice and Split."""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from compiler.frontend.draft import Draft, Value, attributes, operator
from compiler.frontend.ops.move import own_axes
from compiler.frontend.problems import Unsupported
from compiler.frontend.source import Signature
from compiler.frontend.values import Const, Quant, Quantisation, Real, Shape, TensorLayout, common_layout
from compiler.ir import Slice


@dataclass(frozen=True)
class AxisSlice:
    """``count`` indices of an ONNX axis, ``step`` apart, from ``first`` on."""

    axis: int
    first: int
    count: int
    step: int = 1


@operator("Slice")
def slice_(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Return stretches of one axis or several."""
    value = stored_value(draft, node)
    shape, wanted = list(value.shape), []
    for axis, start, end, step in _bounds(draft, node, len(shape)):
        if step < 1:
            raise Unsupported(f"step {step} along axis {axis}; the accelerator steps forwards")
        first, end, _ = slice(start, end).indices(shape[axis])
        if end <= first:
            raise Unsupported(f"an empty stretch {first} to {end} of {shape[axis]}")
        stretch = AxisSlice(axis, first, -(-(end - first) // step), step)
        if stretch.count < shape[axis]:
            wanted.append(stretch)
        shape[axis] = stretch.count
    return [SlicedTensor(draft, node, value).part(wanted, tuple(shape), 0)]


def _bounds(draft: Draft, node: onnx.NodeProto, rank: int) -> list[tuple[int, int, int, int]]:
    """Return (axis, start, end, step) of each axis that a Slice names."""
    given = [
        draft.constant(node, index, what) for index, what in enumerate(("starts", "ends", "axes", "steps"), start=1)
    ]
    starts, ends, axes, steps = (None if one is None else [int(n) for n in one.reshape(-1)] for one in given)
    assert starts is not None and ends is not None
    axes = [axis % rank for axis in axes or range(len(starts))]
    if len(set(axes)) < len(axes):
        raise Unsupported(f"axes {axes}; each may be there once")
    return list(zip(axes, starts, ends, steps or [1] * len(starts), strict=True))


@operator("Split")
def split(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Return parts of one axis, one after the other."""
    value = stored_value(draft, node)
    axis = attributes(node).get("axis", 0) % len(value.shape)
    sizes = _sizes(draft, node, value.shape[axis])
    whole, first, parts = SlicedTensor(draft, node, value), 0, list[Value]()
    for index, size in enumerate(sizes):
        shape = (*value.shape[:axis], size, *value.shape[axis + 1 :])
        parts.append(whole.part([AxisSlice(axis, first, size)] if len(sizes) > 1 else [], shape, index))
        first += size
    return parts


def _sizes(draft: Draft, node: onnx.NodeProto, extent: int) -> list[int]:
    """Return how long each part of an axis of ``extent`` is: as given, or equal, of which the last may be shorter."""
    given, constant, count = attributes(node), draft.constant(node, 1, "split"), len(node.output)
    if constant is not None or "split" in given:
        sizes = [int(size) for size in (given["split"] if constant is None else constant.reshape(-1))]
    else:
        size = math.ceil(extent / count)
        sizes = [size] * (count - 1) + [extent - size * (count - 1)]
    if len(sizes) != count or sum(sizes) != extent:
        raise Unsupported(f"{count} parts of sizes {sizes} of an axis of {extent}")
    if min(sizes) < 1:
        raise Unsupported(f"an empty part among sizes {sizes}")
    return sizes


def stored_value(draft: Draft, node: onnx.NodeProto) -> Real | Quant:
    """Return what ``node`` takes elements of: an 8-bit tensor, or a view of one."""
    value = draft.value(node.input[0])
    return value if isinstance(value, Real | Quant) else draft.real(node.input[0])


def named(draft: Draft, node: onnx.NodeProto, value: Real | Quant, quant: Quant, params: Quantisation) -> Quant:
    """Return ``quant``, whose bytes ``node`` gives for ``value``, as the 8-bit ONNX tensor that it is, if there is
    one."""
    name = node.output[0] if isinstance(value, Quant) else _stored_as(draft, node.output[0], params)
    held = draft.graph.tensors[quant.tensor]
    if name and not held.onnx_name and quant.layout.view == quant.shape:
        held.onnx_name, held.view, held.perm = name, quant.layout.view, quant.layout.perm
        elem_type = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(quant.dtype))
        draft.source.signatures.setdefault(name, Signature(elem_type, quant.shape))
    return quant


def as_given(
    draft: Draft, node: onnx.NodeProto, value: Real | Quant, quant: Quant, params: Quantisation
) -> Real | Quant:
    """Return ``quant``, as :func:`named` does, real if ``value`` is."""
    quant = named(draft, node, value, quant, params)
    return dataclasses.replace(value, quant=quant) if isinstance(value, Real) else quant


class SlicedTensor:
    """A tensor that parts are taken of, moved once where it must be."""

    def __init__(self, draft: Draft, node: onnx.NodeProto, value: Real | Quant) -> None:
        self._draft, self._node, self._value = draft, node, value
        self._quant = draft.dense(value.quant if isinstance(value, Real) else value)
        self._layout = own_axes(self._quant) or common_layout(self._quant.shape, [self._quant])
        self._source = draft.relayout(self._quant, self._layout)

    def part(self, stretches: Sequence[AxisSlice], shape: Shape, output: int) -> Real | Quant:
        """Return what ``stretches`` of its axes leave of it as output ``output`` of the node, a tensor of ``shape``."""
        draft, label, made = self._draft, self._node.output[output], self._quant
        params, view, source = draft.quantisation(self._source), list(self._quant.shape), self._source
        name = label if isinstance(self._value, Quant) else _stored_as(draft, label, self._value.quantisation)
        for stretch in stretches:
            view[stretch.axis] = stretch.count
            layout = TensorLayout(tuple(view), self._layout.perm)
            if name and stretch is stretches[-1]:
                made = draft.new_tensor(name, shape, layout, params)
            else:  # ONNX has it in float only, or not at all
                made = draft.new_inner(label, layout, params)
            axis = layout.perm.index(stretch.axis)
            draft.add(Slice(self._node.name, [source], made.tensor, axis=axis, first=stretch.first, step=stretch.step))
            source = made.tensor
        made = dataclasses.replace(made, shape=shape)
        return dataclasses.replace(self._value, quant=made) if isinstance(self._value, Real) else made


def _stored_as(draft: Draft, name: str, params: Quantisation) -> str:
    """Return the 8-bit ONNX tensor with ``params`` as which a real one is stored next; empty if there is none."""
    readers = draft.source.consumers.get(name, [])
    if len(readers) != 1 or readers[0].op_type != "QuantizeLinear":
        return ""
    given = [draft.values.get(other) for other in readers[0].input[1:]]
    arrays = [value.array for value in given if isinstance(value, Const)]
    same = len(arrays) == 2 and all(array.size == 1 for array in arrays) and arrays[1].dtype.name == params.dtype
    same = same and (arrays[0].item(), arrays[1].item()) == (params.scale, params.zero_point)
    return readers[0].output[0] if same else ""
