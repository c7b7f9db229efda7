"""Where a part of a tensor begins that is cut along one axis, and how an axis is cut evenly."""

from itertools import pairwise

from compiler import ir

Origin = tuple[int, int, int]  #: row, column and channel of an element


def origin(graph: ir.Graph, name: str, axis: int, first: int) -> Origin | None:
    """Return the element of tensor ``name`` at which a part begins that is cut along ``axis`` from index ``first`` on,
    and is reached like the tensor itself; None if it is not: cut along what counts as several axes. Rows count on from
    image to image."""
    shape = graph.tensors[name].shape
    if axis % len(shape) == len(shape) - 1:
        return (0, 0, first)
    if len(shape) in (2, 3) and axis == len(shape) - 2 and (len(shape) == 2 or shape[0] == 1):
        return (0, first, 0)  # rows of one matrix
    if len(shape) in (3, 4) and axis == 0:
        return (first * graph.tensors[name].nhwc[1], 0, 0)  # whole images
    if len(shape) != 4 or shape[0] != 1 or axis not in (1, 2):
        return None
    return (first, 0, 0) if axis == 1 else (0, first, 0)


def is_in_place(graph: ir.Graph, op: ir.Operation) -> bool:
    """Return whether ``op`` joins tensors or slices one in such a way that mostly nothing is copied."""
    if not isinstance(op, ir.Concat | ir.Slice) or (isinstance(op, ir.Slice) and op.step > 1):
        return False
    shape = graph.tensors[op.output].shape
    if isinstance(op, ir.Concat) and len(shape) == 3 and op.axis % 3 == 1:
        made = {each.output for each in graph.ops if isinstance(each, ir.Reshape)}
        if made.intersection(op.inputs):
            return False  # what was made in another shape has its place already
    return origin(graph, op.output, op.axis % len(shape), 0) is not None


def even_pieces(extent: int, count: int) -> list[tuple[int, int]]:
    """Return (first, end) of ``count`` nearly equal pieces of ``extent``, larger ones first."""
    small, larger = divmod(extent, count)
    bounds = [i * small + min(i, larger) for i in range(count + 1)]
    return list(pairwise(bounds))
