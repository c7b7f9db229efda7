"""The layers of a graph before any is joined to others, in order."""

from dataclasses import replace

from compiler import ir
from compiler.backend.layers.fold import fold_tables
from compiler.backend.layers.fuse import fuse
from compiler.backend.layers.heads import split_heads
from compiler.backend.layers.layer import Layer
from compiler.backend.layers.load_inputs import load_inputs
from compiler.backend.layers.lower import lower
from compiler.backend.layers.verify import verify_layers
from compiler.backend.options import Options
from compiler.backend.order.defer import defer
from compiler.backend.order.side_by_side import side_by_side
from hw.contract.params import SocParams


def prepared(graph: ir.Graph, params: SocParams, options: Options) -> tuple[ir.Graph, list[Layer]]:
    """Return the layers of ``graph``, and the graph with the tensors that they add. Raises
    :class:`compiler.ir.CompileError`."""
    graph = replace(graph, tensors=dict(graph.tensors))  # lowering adds some
    if not options.observe:
        graph = split_heads(graph, params)
    layers = lower(graph, params)
    verify_layers(graph, layers)
    if not options.observe:  # an observer looks at every operator's own result
        layers = fold_tables(graph, fuse(graph, layers, placed=options.placed))
        if not options.placed:
            layers = load_inputs(graph, layers, params, options.engines, options.lv2_bytes(params))
        verify_layers(graph, layers)
    # Layers that wait for their reader save memory and cost what could run side by side.
    layers = side_by_side(graph, layers, params, options.engines) if options.placed else defer(graph, layers)
    verify_layers(graph, layers)
    return graph, layers
