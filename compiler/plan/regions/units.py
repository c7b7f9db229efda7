"""How long a layer keeps each unit of an engine busy, before anything of it is compiled."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from compiler import ir
from compiler.plan.layers.layer import ConvLayer, Layer
from compiler.plan.layers.narrow_tiles import imbalance_of_tiles
from compiler.plan.layers.region_share import EngineShare, imbalance
from compiler.plan.work import layer_work, reads_groups
from hw.contract.params import SocParams
from sim.cost import work_cycles

#: Where the figures of a unit stand in :attr:`LayerTimes.busy`.
MAC, VEC, LD1, ST1 = range(4)


@dataclass(frozen=True, eq=False)
class LayerTimes:
    """Cycles of MAC, VEC, LD1 and ST1 on an engine, bytes of weights that it loads, and bytes of the result.
    ``by_channels``: cycles on the engine with the most to do if they share whole blocks of channels; ``by_rows``: if
    they share rows, where each loads ``all_weights``."""

    busy: npt.NDArray[np.float64]
    weight_bytes: int
    out_bytes: int
    by_channels: npt.NDArray[np.float64]
    by_rows: npt.NDArray[np.float64]
    all_weights: int

    @cached_property
    def units(self) -> tuple[float, ...]:
        """Return ``busy`` as numbers, which are added faster: regions by the thousand ask for sums of a few."""
        return tuple(self.busy.tolist())


def layer_times(graph: ir.Graph, layer: Layer, params: SocParams, engines: int) -> LayerTimes:
    """Return the times of ``layer``, if ``engines`` share it and its tensors lie in LV2."""
    work, outputs = layer_work(graph, layer, params), sum(graph.tensors[name].size for name in layer.outputs)
    if work is None:
        idle = np.zeros(4)
        return LayerTimes(idle, 0, outputs, idle, idle, 0)
    engines = 1 if work.copies else engines  # copies run on one engine, and their runs may be short
    mac, vec = (float(sum(map(work_cycles, shapes))) for shapes in (work.mac, work.vec))
    busy = np.array([mac, vec, work.loaded / params.lv1_word, work.stored / params.lv1_word])
    rows, by_rows = graph.tensors[layer.output].nhwc[1], busy / engines
    by_rows[LD1] += work.weights / params.lv1_word
    by_rows *= imbalance(rows, engines)
    channels = graph.tensors[layer.output].shape[-1]
    blocks = [min(params.out_channels, channels - first) for first in range(0, channels, params.out_channels)]
    if isinstance(layer, ConvLayer):
        blocks = [tile.outs for tile in layer.tiles]
        if not layer.by_channels and not reads_groups(layer) and len(layer.tiles) >= engines:
            busy[LD1] *= engines  # they share the channels of the result, and each reads all of the input
    largest = max(sum(EngineShare(engine, engines).of(blocks)) for engine in range(engines)) * engines / channels
    tiles = (
        imbalance_of_tiles(layer, params, engines) if isinstance(layer, ConvLayer) else imbalance(len(blocks), engines)
    )
    by_channels = busy / engines * np.array([tiles, *([largest] * 3)])
    return LayerTimes(busy / engines, work.weights // engines, outputs, by_channels, by_rows, work.weights)
