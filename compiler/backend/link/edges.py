"""Edges between the jobs of a placed model: which earlier jobs each waits for."""

from collections.abc import Sequence

from compiler import ir
from compiler.backend.layers.flow import layer_flow
from compiler.backend.layers.layer import HostLayer
from compiler.backend.objects.layer_code import LayerCode


def job_edges(graph: ir.Graph, codes: Sequence[LayerCode]) -> list[list[int]]:
    """For each job the last jobs of the layers that its layer reads. A layer without jobs, as a concatenation in place,
    stands for those that it reads. Layers before one on the CPU have ended when those behind it begin.

    All jobs of a layer run on one engine, in order, so the first of them waits for all, and the last stands for all.
    """
    flow = layer_flow(graph, [code.layer for code in codes])
    ends: dict[object, set[int]] = {}  # by layer: the jobs whose end is that of the layer
    edges: list[list[int]] = []
    for code in codes:
        if isinstance(code.layer, HostLayer):
            ends = {}
            continue
        after = set().union(*(ends.get(maker, set()) for maker in flow.predecessors(code.layer)))
        edges += [sorted(after) if i == 0 else [] for i in range(len(code.jobs))]
        ends[code.layer] = {len(edges) - 1} if code.jobs else after
    return edges
