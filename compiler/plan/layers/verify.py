"""The verifier of layers, run after each pass that makes or orders them."""

from collections.abc import Iterator, Sequence

from compiler import ir
from compiler.plan.layers.layer import ConvLayer, Layer


def verify_layers(graph: ir.Graph, layers: Sequence[Layer]) -> None:
    """Check that names exist, that each tensor is computed once and before it is read, that outputs are computed, and
    that the channel tiles of a convolution cover its output. Raises :class:`compiler.ir.CompileError` naming graph,
    layer and tensor."""
    for problem in _problems(graph, layers):
        raise ir.CompileError(f"{graph.name}: internal error: {problem}")


def _problems(graph: ir.Graph, layers: Sequence[Layer]) -> Iterator[str]:
    roots = graph.roots()
    known = {roots[port.tensor] for port in graph.inputs}
    known |= {roots[name] for name, tensor in graph.tensors.items() if tensor.data is not None}
    for layer in layers:
        where = f"layer {layer.name!r}"
        for name in (*layer.inputs, *layer.outputs):
            if name not in roots:
                yield f"{where}: no tensor {name!r}"
                return
        for name in layer.inputs:
            if roots[name] not in known:
                yield f"{where}: tensor {name!r} is read before anything computes it"
        for name in layer.outputs:
            if roots[name] in known:
                yield f"{where}: tensor {name!r} is computed twice"
            known.add(roots[name])
        if isinstance(layer, ConvLayer) and sum(tile.outs for tile in layer.tiles) != layer.weights.shape[0]:
            yield f"{where}: its channel tiles do not cover {layer.weights.shape[0]} output channels"
    for port in graph.outputs:
        if roots[port.tensor] not in known:
            yield f"output {port.name!r}: nothing computes tensor {port.tensor!r}"
