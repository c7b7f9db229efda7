"""Gather, GatherND and GatherElements: elements of a tensor by constant indices, which are slices, and of a constant
table by indices that are known at run time only, such as the embeddings of words.

One index that is an input of the model is a number that jobs get as a parameter: the accelerator copies that row. More
of them are steps of the CPU, whose results go on in 8 bits: addresses of copies stand in their code. The CPU has the
indices anyway: they are an input of the model, or what it computes of one.
"""

import dataclasses
import math

import numpy as np
import onnx

from compiler.frontend import inputs
from compiler.frontend.draft import Draft, Value, attributes, operator
from compiler.frontend.ops import host, move, repeats, slices
from compiler.frontend.problems import NodeProblem, Unsupported
from compiler.frontend.values import Const, Float, Quant, QuantConst, Quantisation, Real, TensorLayout
from compiler.ir import Lookup, NumberRange
from compiler.ir.graph import EIGHT_BIT
from hw.contract.formats import PARAMETERS

_MOST_LOOKUPS = PARAMETERS // 2  #: numbers with sizes of rows; states need the other parameters
_REASON = "looks up a constant table by indices of run time; the accelerator copies from constant addresses"


@operator("Gather")
def gather(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Return indices along an axis, such as the class token of an encoder, or channels in another order."""
    if (found := _looked_up(draft, node)) is not None:
        return [found]
    value, indices = slices.stored_value(draft, node), draft.constant(node, 1, "indices")
    assert indices is not None
    if not indices.size:
        raise Unsupported("no indices, which leave nothing")
    rank = len(value.shape)
    axis = attributes(node).get("axis", 0) % rank
    extent = value.shape[axis]
    if indices.min() < -extent or indices.max() >= extent:
        raise Unsupported(f"indices from {indices.min()} to {indices.max()} along an axis of {extent}")
    first, *others = (int(index) % value.shape[axis] for index in indices.reshape(-1))
    shape = (*value.shape[:axis], *indices.shape, *value.shape[axis + 1 :])
    if others:
        quant = value.quant if isinstance(value, Real) else value
        params = draft.quantisation(quant.tensor)
        quant = repeats.chosen(draft, node.output[0], node.name, quant, axis, [first, *others])
        return [slices.as_given(draft, node, value, dataclasses.replace(quant, shape=shape), params)]
    return [slices.SlicedTensor(draft, node, value).part([slices.AxisSlice(axis, first, 1)], shape, 0)]


@operator("GatherND")
def gather_nd(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Return what tuples of indices choose of the first axes: as Gather where they are constants."""
    found = _looked_up(draft, node)
    if found is not None:
        return [found]
    value, indices = slices.stored_value(draft, node), draft.constant(node, 1, "indices")
    assert indices is not None
    if attributes(node).get("batch_dims", 0):
        raise Unsupported(f"batch_dims {attributes(node)['batch_dims']}; the accelerator takes 0")
    if not indices.size:
        raise Unsupported("no indices, which leave nothing")
    depth = indices.shape[-1]
    lead, rest = value.shape[:depth], value.shape[depth:]
    if (indices < [-size for size in lead]).any() or (indices >= lead).any():
        raise Unsupported(f"indices from {indices.min()} to {indices.max()} of axes of {lead}")
    rows = np.ravel_multi_index(tuple(np.moveaxis(indices % lead, -1, 0)), lead).reshape(-1)
    quant = value.quant if isinstance(value, Real) else value
    params = draft.quantisation(quant.tensor)
    quant = move.reshape_all(draft, quant, (("reshape", (int(np.prod(lead)), *rest)),))
    quant = repeats.chosen(draft, node.output[0], node.name, quant, 0, [int(row) for row in rows])
    quant = move.reshape_all(draft, quant, (("reshape", (*indices.shape[:-1], *rest)),))
    return [slices.as_given(draft, node, value, quant, params)]


@operator("GatherElements")
def gather_elements(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Return elements of a constant table, one for each index."""
    found = _looked_up(draft, node)
    if found is None:
        raise Unsupported("constant indices of each element; the accelerator takes whole rows or columns: use Gather")
    return [found]


def _row(draft: Draft, node: onnx.NodeProto, table: Const, number: Float, params: Quantisation) -> Quant | None:
    """Return the row of ``table`` that ``number`` says, copied by the accelerator; None where rows lie otherwise, or
    others take the parameters of jobs."""
    shape, axis = table.shape, attributes(node).get("axis", 0) % len(table.shape)
    rows, graph = shape[axis], draft.graph
    taken = {(op.inputs[1], graph.tensors[op.output].size) for op in graph.ops if isinstance(op, Lookup)}
    if math.prod(shape[:axis]) > 1 or len(taken | {(number.tensor, table.array.size // rows)}) > _MOST_LOOKUPS:
        return None
    result = (*shape[:axis], *number.shape, *shape[axis + 1 :])
    made = draft.new_tensor(node.output[0], result, TensorLayout.plain(result), params)
    held = draft.new_constant(node.input[0], table.array.reshape(rows, -1), params)
    most = graph.numbers.get(number.tensor, NumberRange(0, rows - 1)).high
    graph.numbers[number.tensor] = NumberRange(0, min(most, rows - 1))
    draft.add(Lookup(node.name, [held, number.tensor], made.tensor))
    return made


def _looked_up(draft: Draft, node: onnx.NodeProto) -> Quant | None:
    """Return the 8-bit elements that the CPU takes of a constant table, as ``node`` says; None if its indices are
    constants. Raises :class:`Unsupported` where the table is no 8-bit constant, or where the accelerator would compute
    the indices."""
    table, indices = draft.value(node.input[0]), draft.value(node.input[1])
    if isinstance(indices, Const):
        return None
    if isinstance(table, QuantConst):
        raise Unsupported(f"its table {node.input[0]!r} has several scales; quantise it to 8 bits with one scale")
    if not isinstance(table, Const):
        raise Unsupported(
            f"its indices {node.input[1]!r} are computed at run time, and so is its data {node.input[0]!r}; the "
            "accelerator takes constant indices of computed data, and the CPU looks up constant tables"
        )
    if table.array.dtype.name not in EIGHT_BIT:
        raise Unsupported(
            f"its table {node.input[0]!r} is a constant of {table.array.dtype}; quantise it to 8 bits with one scale, "
            "with DequantizeLinear behind"
        )
    if not isinstance(indices, Float | host.OnHost):
        raise Unsupported(f"its indices {node.input[1]!r} are computed by the accelerator; it computes no indices")
    scale, zero = inputs.parameters(draft, node.output[0])
    if node.op_type == "Gather" and isinstance(indices, Float) and move.is_number(draft, indices):
        params = Quantisation(np.float32(scale), zero, table.array.dtype.name)
        if (row := _row(draft, node, table, indices, params)) is not None:
            return row
    found = host.pending(draft, node, str(NodeProblem(node.name, node.op_type, _REASON)))
    return found.emit(draft, Quantisation(np.float32(scale), zero, table.array.dtype.name), node.output[0])
