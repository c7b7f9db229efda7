"""How long a layer keeps each unit of an engine busy, before anything of it is compiled."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from compiler import ir
from compiler.backend.layers.engine_share import EngineShare, imbalance
from compiler.backend.layers.layer import (
    ConvLayer,
    EltwiseLayer,
    HostLayer,
    Layer,
    MaxLayer,
    NormLayer,
    ProductLayer,
    SoftmaxLayer,
)
from compiler.backend.layers.origin import is_in_place
from hw.contract.isa import WIDE_BYTES
from hw.contract.params import SocParams

#: Where the figures of a unit stand in :attr:`LayerTimes.busy`.
MAC, VEC, LD1, ST1 = range(4)


_SOFTMAX_PASSES = 3.4  #: cycles of a vector: maximum, sum and quotient, with what two tables take
_TWO_OPERANDS = 1.5  #: cycles of a vector whose operands both lie in LV1, as they share its ports with the result


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


def layer_times(graph: ir.Graph, layer: Layer, params: SocParams, engines: int) -> LayerTimes:
    """Return the times of ``layer``, if ``engines`` share it and its tensors lie in LV2."""
    busy = np.zeros(4)
    inputs = sum(graph.tensors[name].size for name in layer.inputs)
    outputs = sum(graph.tensors[name].size for name in layer.outputs)
    weights, channels = 0, graph.tensors[layer.output].shape[-1]
    blocks = [min(params.out_channels, channels - first) for first in range(0, channels, params.out_channels)]
    if isinstance(layer, HostLayer) or is_in_place(graph, layer.op):
        return LayerTimes(busy, 0, outputs, busy, busy, 0)
    if isinstance(layer, ConvLayer):
        busy[MAC], weights = _convolved(graph, layer, params)
        blocks = [tile.outs for tile in layer.tiles]
        busy[VEC] = outputs / params.vec_lanes * (1 + _TWO_OPERANDS if layer.addition else 1)
    elif isinstance(layer, MaxLayer):
        busy[VEC] = outputs * math.prod(layer.kernel) / params.vec_lanes
    elif isinstance(layer, EltwiseLayer):
        busy[VEC] = outputs / params.vec_lanes * (_TWO_OPERANDS if len(layer.inputs) > 1 else 1)
    elif isinstance(layer, ProductLayer):
        busy[MAC], busy[VEC] = _multiplied(graph, layer, params), outputs / params.vec_lanes
    elif isinstance(layer, SoftmaxLayer):
        busy[VEC] = _SOFTMAX_PASSES * outputs / params.vec_lanes
    elif isinstance(layer, NormLayer):
        busy[VEC] = (1 + 2 * WIDE_BYTES) * outputs / params.vec_lanes
    else:  # copies run on one engine, and their runs may be short
        engines = 1
    busy[LD1], busy[ST1] = inputs / params.lv1_word, outputs / params.lv1_word
    rows, by_rows = graph.tensors[layer.output].nhwc[1], busy / engines
    by_rows[LD1] += weights / params.lv1_word
    by_rows *= imbalance(rows, engines)
    if isinstance(layer, ConvLayer) and not layer.depthwise and len(layer.tiles) >= engines:
        busy[LD1] *= engines  # they share the channels of the result, and each reads all of the input
    largest = max(sum(EngineShare(engine, engines).of(blocks)) for engine in range(engines)) * engines / channels
    by_channels = busy / engines * np.array([imbalance(len(blocks), engines), *([largest] * 3)])
    return LayerTimes(busy / engines, weights // engines, outputs, by_channels, by_rows, weights)


def _multiplied(graph: ir.Graph, layer: ProductLayer, params: SocParams) -> float:
    """Return the cycles of MAC on all engines."""
    _, _, rows, columns = graph.tensors[layer.output].nhwc
    columns //= layer.heads if layer.joined[2] else 1
    depth = layer.macs(graph) // graph.tensors[layer.output].size
    tiles = -(-columns // params.out_channels) * graph.tensors[layer.output].size // (rows * columns)
    return float(tiles * rows * -(-depth // params.rows))


def _convolved(graph: ir.Graph, layer: ConvLayer, params: SocParams) -> tuple[float, int]:
    """Return the cycles of MAC on all engines, and bytes of weights."""
    kh, kw = layer.kernel
    pixels, cycles, size = math.prod(graph.tensors[layer.output].nhwc[:3]), 0, 0
    for tile in layer.tiles:
        blocks = kh * -(-kw // params.depthwise_taps) if layer.depthwise else kh * kw * -(-tile.channels // params.rows)
        if not layer.depthwise and tile.channels < params.rows:
            blocks = -(-kh * kw * tile.channels // params.rows)
        cycles += blocks * pixels
        size += blocks * params.rows * params.out_channels
    return float(cycles), size
