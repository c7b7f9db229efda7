"""What a graph takes once its tensors have their places: each layer as long as its busiest unit, or as DRAM."""

import numpy as np

from compiler import ir
from compiler.plan.layers.step import ModelStep
from compiler.plan.lowered_model import LoweredModel
from compiler.plan.memory.budget import divide
from compiler.plan.memory.place import place
from compiler.plan.options import Options
from compiler.plan.regions.units import layer_times
from compiler.plan.split.estimate import alone_cycles
from hw.contract.params import SocParams


def placed_cycles(graph: ir.Graph, params: SocParams, options: Options) -> tuple[float, int, int]:
    """Return the cycles of the layers of ``graph`` one after the other, bytes that pass from or to DRAM because they do
    not fit on chip, and bytes that LV2 has for tensors at most. Raises :class:`compiler.ir.CompileError`."""
    made = LoweredModel.of(graph, params, options)
    graph, layers = made.graph, made.layers
    _, placement = place(graph, [ModelStep.alone(layer) for layer in layers], params, options)
    divisions = divide(graph, layers, params, options.engines, options.lv2_bytes(params))
    total = 0.0
    for layer in layers:
        times = layer_times(graph, layer, params, options.engines)
        busy = float(np.max(times.busy))
        if busy:
            names = {*layer.inputs, *layer.outputs}
            moved = sum(graph.tensors[name].size for name in names if not placement.view(name).on_chip)
            total += alone_cycles(busy, moved + times.all_weights, params)
    return total, placement.moved, max(one.tensors_end - one.least.staging_end for one in divisions)
