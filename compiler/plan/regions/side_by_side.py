"""The order of the layers of a placed model: branches in turn, as they would begin side by side on several engines."""

import heapq
from collections.abc import Sequence

import networkx as nx

from compiler import ir
from compiler.plan.layers.flow import layer_flow
from compiler.plan.layers.layer import HostLayer, Layer
from compiler.plan.work import peak_cycles
from hw.contract.params import SocParams


def side_by_side(graph: ir.Graph, layers: Sequence[Layer], params: SocParams, engines: int) -> list[Layer]:
    """``layers`` in the order in which they would begin on ``engines``, each on the one that is free first.

    Of the layers whose inputs exist, the one with the most work on the way to the end goes first (list scheduling by
    critical path); work is counted in cycles of the arithmetic or of LV2, whichever is more. Jobs are queued in this
    order, so a queue seldom holds a layer up that could run behind one that has to wait. Layers on the CPU keep their
    places: all before them come before them.
    """
    flow = layer_flow(graph, layers)
    ordered: list[Layer] = []
    run: list[Layer] = []
    for layer in [*layers, None]:
        if layer is None or isinstance(layer, HostLayer):
            ordered += _listed(graph, run, flow, params, engines)
            run = []
            ordered += [layer] if layer is not None else []
        else:
            run.append(layer)
    return ordered


def _listed(
    graph: ir.Graph, run: Sequence[Layer], flow: nx.DiGraph, params: SocParams, engines: int
) -> list[Layer]:  # fmt: skip
    inside = flow.subgraph(run)
    place = {layer: i for i, layer in enumerate(run)}
    work = {layer: peak_cycles(graph, layer, params) for layer in run}
    path: dict[Layer, float] = {}
    for layer in reversed(run):
        path[layer] = work[layer] + max((path[reader] for reader in inside.successors(layer)), default=0.0)
    missing = {layer: inside.in_degree(layer) for layer in run}
    ready = [(-path[layer], place[layer], layer) for layer in run if not missing[layer]]
    heapq.heapify(ready)
    free, running, now = engines, list[tuple[float, int, Layer]](), 0.0
    ordered: list[Layer] = []
    while ready or running:
        if ready and free:
            _, _, layer = heapq.heappop(ready)
            ordered.append(layer)
            heapq.heappush(running, (now + work[layer], place[layer], layer))
            free -= 1
            continue
        now, _, ended = heapq.heappop(running)
        free += 1
        for reader in inside.successors(ended):
            missing[reader] -= 1
            if not missing[reader]:
                heapq.heappush(ready, (-path[reader], place[reader], reader))
    return ordered
