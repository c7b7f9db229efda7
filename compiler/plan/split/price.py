"""What a graph takes once its tensors have their places: each layer as long as its busiest unit, or as DRAM."""

import numpy as np

from compiler import ir
from compiler.plan.layers.flow import step_flow
from compiler.plan.layers.layer import ConvLayer, Layer
from compiler.plan.layers.step import ModelStep
from compiler.plan.lowered_model import LoweredModel
from compiler.plan.memory.place import most_room, place
from compiler.plan.memory.tensor_placement import TensorPlacement
from compiler.plan.options import Options
from compiler.plan.regions.queue_schedule import QueuedStep, by_critical_path, makespan
from compiler.plan.regions.units import layer_times
from compiler.plan.split.estimate import alone_cycles
from hw.contract.params import SocParams
from sim.cost import LAYER_TO_FULL_WORK, moved, overlapped


def placed_cycles(graph: ir.Graph, params: SocParams, options: Options) -> tuple[float, int, int]:
    """Return the cycles of the layers of ``graph`` one after the other, bytes that pass from or to DRAM because they do
    not fit on chip, and bytes that LV2 has for tensors at most. Raises :class:`compiler.ir.CompileError`."""
    made = LoweredModel.of(graph, params, options)
    graph, layers = made.graph, made.layers
    budget, placement = place(graph, [ModelStep.alone(layer) for layer in layers], params, options)
    room = budget.job_weights
    total = sum(_alone(graph, layer, placement, params, options.engines, room) for layer in layers)
    return total, placement.moved, most_room(graph, layers, params, options)


def joined_cycles(graph: ir.Graph, params: SocParams, options: Options) -> float:
    """Return the cycles of the layers of ``graph`` in its order, as regions where these pay, without what is spilled; 0
    where ``options`` join none. Raises :class:`compiler.ir.CompileError`."""
    study = LoweredModel.of(graph, params, options).study()
    return study.cycles(study.source)


def _alone(
    graph: ir.Graph, layer: Layer, placement: TensorPlacement, params: SocParams, engines: int, window: int
) -> float:  # fmt: skip
    """Return the cycles of ``layer`` by itself, which ``engines`` share; ``window``: bytes of weights that are on chip
    at a time."""
    times = layer_times(graph, layer, params, engines)
    busy = float(np.max(times.busy))
    if not busy:
        return 0.0
    size = sum(graph.tensors[n].size for n in {*layer.inputs, *layer.outputs} if not placement.view(n).on_chip)
    again = _passes(layer, times.all_weights, window) - 1
    if not again or placement.view(layer.inputs[0]).on_chip:
        return alone_cycles(busy, size + times.all_weights, params)
    size += again * graph.tensors[layer.inputs[0]].size + times.all_weights
    return overlapped([busy, moved(size, params)]) + LAYER_TO_FULL_WORK


def _passes(layer: Layer, weights: int, window: int) -> int:
    """Return how often a layer reads its input: once for all channel tiles whose weights are on chip together."""
    if not isinstance(layer, ConvLayer) or layer.by_channels:
        return 1
    tiles = len(layer.tiles)
    return -(-tiles // max(1, window * tiles // max(1, weights)))


def queued_cycles(graph: ir.Graph, params: SocParams, options: Options) -> float:
    """Return the cycles until the queues of all engines have ended if each layer of ``graph``, which is placed, runs on
    one of them. Raises :class:`compiler.ir.CompileError`."""
    made = LoweredModel.of(graph, params, options)
    steps = [ModelStep.alone(layer) for layer in made.layers]
    budget, placement = place(made.graph, steps, params, options)
    flow, queued = step_flow(made.graph, steps), dict[int, QueuedStep]()
    for number, layer in enumerate(made.layers):
        cycles = _alone(made.graph, layer, placement, params, 1, budget.job_weights)
        queued[number] = QueuedStep(cycles, tuple(sorted(flow.predecessors(number))))
    return makespan(queued, by_critical_path(queued, options.engines), options.engines)
