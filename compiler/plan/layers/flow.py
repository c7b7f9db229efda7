"""The flow of data between layers, or between steps, as a graph to walk."""

from collections.abc import Sequence

import networkx as nx

from compiler import ir
from compiler.plan.layers.layer import Layer
from compiler.plan.layers.step import ModelStep, flattened


def layer_flow(graph: ir.Graph, layers: Sequence[Layer]) -> nx.DiGraph:
    """Return the layers as nodes, and an edge from each layer to those that read what it writes, also under another
    shape."""
    roots, flow = graph.roots(), nx.DiGraph()
    flow.add_nodes_from(layers)
    makers = {roots[name]: layer for layer in layers for name in layer.outputs}
    for layer in layers:
        flow.add_edges_from((makers[roots[name]], layer) for name in layer.inputs if roots[name] in makers)
    return flow


def step_flow(graph: ir.Graph, steps: Sequence[ModelStep]) -> nx.DiGraph:
    """Return the numbers of ``steps`` as nodes, and an edge from each to those that read what a member of it writes."""
    number = {member: i for i, step in enumerate(steps) for member in step.members}
    flow: nx.DiGraph = nx.DiGraph()
    flow.add_nodes_from(range(len(steps)))
    edges = layer_flow(graph, flattened(steps)).edges
    flow.add_edges_from((number[a], number[b]) for a, b in edges if number[a] != number[b])
    return flow
