"""Parts of tensors along an axis: Slice, and Gather of one index, such as the class token of an encoder."""

import dataclasses

import onnx

from compiler.frontend.draft import Draft, Value, attributes, operator
from compiler.frontend.ops.move import own_axes
from compiler.frontend.problems import Unsupported
from compiler.frontend.values import Const, Quant, Quantisation, Real, Shape, TensorLayout
from compiler.ir import Slice


@operator("Gather")
def gather(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Return one index along an axis, such as the class token of an encoder."""
    value, indices = draft.value(node.input[0]), draft.constant(node, 1, "indices")
    assert indices is not None
    if not isinstance(value, Real | Quant):
        raise Unsupported("it takes elements of a float tensor")
    if indices.size != 1:
        raise Unsupported(f"{indices.size} indices; the accelerator takes one")
    rank = len(value.shape)
    axis = attributes(node).get("axis", 0) % rank
    first = int(indices.reshape(-1)[0]) % value.shape[axis]
    shape = (*value.shape[:axis], *indices.shape, *value.shape[axis + 1 :])
    return [_sliced(draft, node, value, axis, first, 1, shape)]


@operator("Slice")
def slice_(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Return a stretch of one axis."""
    value = draft.value(node.input[0])
    if not isinstance(value, Real | Quant):
        raise Unsupported("it takes elements of a float tensor")
    starts, ends, axes, steps = (
        draft.constant(node, index, what) for index, what in enumerate(("starts", "ends", "axes", "steps"), start=1)
    )
    if starts is None or ends is None or starts.size != 1 or (steps is not None and int(steps.reshape(-1)[0]) != 1):
        raise Unsupported("several axes or steps; the accelerator takes a stretch of one axis")
    axis = 0 if axes is None else int(axes.reshape(-1)[0]) % len(value.shape)
    first, end, _ = slice(int(starts.reshape(-1)[0]), int(ends.reshape(-1)[0])).indices(value.shape[axis])
    if end <= first:
        raise Unsupported(f"an empty stretch {first} to {end} of {value.shape[axis]}")
    shape = (*value.shape[:axis], end - first, *value.shape[axis + 1 :])
    return [_sliced(draft, node, value, axis, first, end - first, shape)]


def _sliced(
    draft: Draft, node: onnx.NodeProto, value: Real | Quant, axis: int, first: int, count: int, shape: Shape
) -> Real | Quant:
    """Return the indices ``first`` to ``first + count`` of an axis of ``value``, as a tensor of ``shape``."""
    quant = draft.dense(value.quant if isinstance(value, Real) else value)
    layout = own_axes(quant) or TensorLayout.plain(quant.shape)
    source = draft.relayout(quant, layout)
    view = (*quant.shape[:axis], count, *quant.shape[axis + 1 :])
    name = node.output[0] if isinstance(value, Quant) else _stored_as(draft, node.output[0], value.quantisation)
    made = draft.new_tensor(name or node.output[0], shape, TensorLayout(view, layout.perm), draft.quantisation(source))
    if not name:  # ONNX has it in float only
        draft.graph.tensors[made.tensor].onnx_name = ""
        del draft.source.signatures[node.output[0]]
    draft.add(Slice(node.name, [source], made.tensor, axis=layout.perm.index(axis), first=first))
    return dataclasses.replace(value, quant=made) if isinstance(value, Real) else made


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
