"""Concatenations along channels that nobody makes: who reads one reads its pieces where they lie.

The pieces share the quantisation of the whole, and loads put their channels side by side in LV1. So products sum over
all of them in int32 and are requantised once, as if the whole lay in LV2; each piece has a home and a life of its own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from compiler import ir
from compiler.plan.layers.layer import ConvLayer, Layer, MoveLayer, WindowLayer
from compiler.plan.layers.origin import origin
from compiler.plan.plan import PiecesRead
from compiler.plan.plan_error import PlanError


def concatenations_to_read(graph: ir.Graph, layers: Sequence[Layer]) -> list[PiecesRead]:
    """Return the concatenations whose pieces all readers can read where they lie."""
    wanted, left = list[PiecesRead](), list(layers)
    for layer in reversed(layers):  # the readers of the last are those of nested ones, too
        if _is_readable(graph, left, layer):
            left = _without(left, layer)
            wanted.append(PiecesRead(layer.op.name))
    return wanted[::-1]


def with_pieces(graph: ir.Graph, layers: Sequence[Layer], wanted: Iterable[PiecesRead]) -> list[Layer]:
    """Return ``layers`` without the concatenations of ``wanted``, whose readers read the pieces. Raises
    :class:`PlanError` if one is no such concatenation."""
    left = list(layers)
    for one in reversed(list(wanted)):
        found = [layer for layer in left if layer.op.name == one.operator and _is_readable(graph, left, layer)]
        if not found:
            raise PlanError(
                f"the pieces of {one.operator!r} cannot be read where they lie: it must be a concatenation along "
                "channels that convolutions and pools read alone"
            )
        left = _without(left, found[0])
    return left


def _is_readable(graph: ir.Graph, layers: Sequence[Layer], layer: Layer) -> bool:
    """Return whether ``layer`` concatenates channels, and whoever reads the result can read pieces."""
    if not isinstance(layer.op, ir.Concat) or not isinstance(layer, MoveLayer):
        return False
    tensor, roots = graph.tensors[layer.output], graph.roots()
    channels = layer.op.axis % len(tensor.shape) == len(tensor.shape) - 1
    alone = [name for name, root in roots.items() if root == roots[layer.output]] == [layer.output]
    outside = {port.tensor for port in graph.outputs}
    readers = [other for other in layers if layer.output in other.inputs]
    return (
        channels and alone and layer.output not in outside and len(layer.inputs) > 1 and bool(readers)
        and origin(graph, layer.output, layer.op.axis % len(tensor.shape), 0) is not None
        and all(_alike(graph.tensors[name], tensor) for name in layer.inputs)
        and all(_reads_pieces(reader, layer.output) for reader in readers)
    )  # fmt: skip


def _alike(piece: ir.Tensor, whole: ir.Tensor) -> bool:
    """Return whether ``piece`` has the pixels of ``whole``, and bytes mean the same in both."""
    pixels = piece.nhwc[:3] == whole.nhwc[:3]
    return pixels and (piece.dtype, piece.zero_point) == (whole.dtype, whole.zero_point)


def _reads_pieces(reader: Layer, name: str) -> bool:
    """Return whether ``reader`` can read the pieces of tensor ``name``, which is one of its inputs."""
    able = isinstance(reader, ConvLayer | WindowLayer)
    return able and name in reader.inputs[: reader.pieces] and name not in reader.inputs[reader.pieces :]


def _without(layers: Sequence[Layer], gone: Layer) -> list[Layer]:
    """Return ``layers`` without the concatenation ``gone``."""
    return [_reading(layer, gone) if gone.output in layer.inputs else layer for layer in layers if layer is not gone]


def _reading(layer: Layer, gone: Layer) -> Layer:
    """``layer`` with the pieces of ``gone`` in its place."""
    pieces = list[str]()
    for name in layer.inputs[: layer.pieces]:
        pieces += gone.inputs if name == gone.output else [name]
    return replace(layer, inputs=[*pieces, *layer.inputs[layer.pieces :]], pieces=len(pieces))
