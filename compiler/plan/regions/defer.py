"""Order of layers: a layer whose result is not needed yet waits, where that takes less memory."""

from collections.abc import Sequence
from itertools import accumulate

from compiler import ir
from compiler.plan.layers.flow import layer_flow
from compiler.plan.layers.layer import HostLayer, Layer


def defer(graph: ir.Graph, layers: list[Layer]) -> list[Layer]:
    """``layers`` with some moved to just before the first reader of their result, as the shortcut of a residual block.

    A move is kept if it lowers the most bytes alive at a time, or their sum over the layers it passes.
    """
    roots, flow = graph.roots(), layer_flow(graph, layers)
    ordered = list(layers)
    for layer in reversed(layers):
        here = ordered.index(layer)
        there = min((ordered.index(reader) for reader in flow.successors(layer)), default=here + 1) - 1
        passed = ordered[here + 1 : there + 1]
        if not passed or any(isinstance(other, HostLayer) for other in (layer, *passed)):
            continue
        moved = [*ordered[:here], *passed, layer, *ordered[there + 1 :]]
        before, after = (_alive(graph, order, roots)[here : there + 2] for order in (ordered, moved))
        if (max(after), sum(after)) < (max(before), sum(before)):
            ordered = moved
    return ordered


def _alive(graph: ir.Graph, layers: Sequence[Layer], roots: dict[str, str]) -> list[int]:
    """Return the bytes of intermediate tensors alive at each layer. A sum takes the place of an operand that dies
    there."""
    outside = {roots[port.tensor] for port in (*graph.inputs, *graph.outputs)}
    last: dict[str, int] = {}
    for number, layer in enumerate(layers):
        last |= {roots[name]: number for name in layer.inputs}
    changes = [0] * (len(layers) + 1)  # at each layer
    for number, layer in enumerate(layers):
        name = roots[layer.output]
        if name in outside:
            continue
        size = graph.tensors[layer.output].size
        dying = (roots[operand] for operand in layer.inputs if graph.tensors[operand].size == size)
        first = number + 1 if layer.replaceable and any(last[operand] == number for operand in dying) else number
        end = last.get(name, number) + 1
        if first < end:
            changes[first] += size
            changes[end] -= size
    return list(accumulate(changes[:-1]))
