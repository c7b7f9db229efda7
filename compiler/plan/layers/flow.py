"""The flow of data between layers, as a graph to walk."""

from collections.abc import Sequence

import networkx as nx

from compiler import ir
from compiler.plan.layers.layer import Layer


def layer_flow(graph: ir.Graph, layers: Sequence[Layer]) -> nx.DiGraph:
    """Return the layers as nodes, and an edge from each layer to those that read what it writes, also under another
    shape."""
    roots, flow = graph.roots(), nx.DiGraph()
    flow.add_nodes_from(layers)
    makers = {roots[name]: layer for layer in layers for name in layer.outputs}
    for layer in layers:
        flow.add_edges_from((makers[roots[name]], layer) for name in layer.inputs if roots[name] in makers)
    return flow
