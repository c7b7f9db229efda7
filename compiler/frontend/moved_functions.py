"""Operators that choose elements, behind a function of one tensor that is not stored: a quantiser stores neither a
HardSwish nor what a Slice takes of it. The elements of the tensor itself are taken, and the function follows."""

import dataclasses

import onnx

from compiler.frontend.draft import Draft, Handler, Value, attributes
from compiler.frontend.ops import move, pointwise
from compiler.frontend.values import Real

#: They choose elements of their first input; so does Pad, but where it adds a constant.
_CHOOSE = ("Slice", "Split", "Gather", "GatherND", "Expand", "Tile", "Resize", "Upsample", "Pad")


def moved_function(draft: Draft, node: onnx.NodeProto, handler: Handler) -> list[Value] | None:
    """Return functions of the elements that ``node``, which ``handler`` imports, chooses; None if it does not choose
    among those of a function."""
    if handler is pointwise.extended:  # moves in front of it
        for name in filter(None, node.input):
            if isinstance(function := draft.values[name], pointwise.Pointwise) and function.reshapes:
                draft.values[name] = _of(function, _moved(draft, function), function.node)
    value = draft.values.get(node.input[0]) if node.input else None
    given = attributes(node)
    if node.op_type not in _CHOOSE or not isinstance(value, pointwise.Pointwise):
        return None
    if (node.op_type == "Pad" and given.get("mode", "constant") == "constant") or given.get("mode") in (
        "linear",
        "cubic",
    ):
        return None
    alone = onnx.NodeProto()
    alone.CopyFrom(node)
    alone.output[:] = [f"{name}/argument" for name in node.output]  # ONNX stores none of these
    draft.values[node.input[0]] = _moved(draft, value)
    try:
        found = handler(draft, alone)
    finally:
        draft.values[node.input[0]] = value
    return [_of(value, one, node.name) for one in found if isinstance(one, Real)]


def _moved(draft: Draft, value: pointwise.Pointwise) -> Real:
    """Return what ``value`` is a function of, in its shape."""
    return dataclasses.replace(value.x, quant=move.reshape_all(draft, value.x.quant, value.reshapes))


def _of(value: pointwise.Pointwise, x: Real, node: str) -> pointwise.Pointwise:
    """Return the same function of ``x``."""
    return dataclasses.replace(value, shape=x.shape, reshapes=(), node=node, roots=(x.quant.tensor,), x=x)
