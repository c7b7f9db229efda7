"""How LV2 is divided: staging for tensors in DRAM, buffers of tensors, and the ring of weight windows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from compiler import ir
from compiler.plan.layers.layer import ConvLayer, Layer, NormLayer, SoftmaxLayer
from compiler.plan.layers.vec_params import conv_params_bytes, params_bytes
from compiler.plan.memory.operand import StagingArea
from hw.contract.isa import WIDE_TABLE_BYTES
from hw.contract.params import SocParams

_LEAST_STAGING = 1024  #: DRAM words: of several tiles, of which two are on their way in either direction
SLACK = 1024  #: per layer: parameter blocks, tables, padding


@dataclass(frozen=True)
class Lv2Budget:
    """Says how LV2 is divided. All sizes are bytes.

    Segment 6 holds a staging area for each engine, one behind the other, and tensors. Segment 7 is a ring of weight
    windows for each engine. In a placed model a layer has one engine, but any of ``parts``: these have a staging area
    and a ring each, and kernels see the first.
    """

    engines: int  #: that share each layer
    parts: int  #: engines that need an area and a ring
    area: StagingArea  #: of the first engine
    windows: int  #: size of each ring
    #: Weights of a job of several channel tiles that computes longer than it loads, at most: few enough that loads run
    #: ahead of it, and at most half of the ring, so that the next job's fit beside them.
    job_weights: int

    def staging(self, engine: int) -> StagingArea:
        """Return the staging area of an engine."""
        return StagingArea(self.area.base + engine * self.area.size, self.area.size)

    def of_one(self, engine: int) -> "Lv2Budget":
        """As ``engine`` sees it where it computes a layer alone: it is the only one."""
        return replace(self, engines=1, parts=1, area=self.staging(engine))

    @property
    def staging_base(self) -> int:
        """Start of the staging areas in segment 6."""
        return self.area.base

    @property
    def staging_end(self) -> int:
        """End of the staging areas in segment 6."""
        return self.area.base + self.parts * self.area.size

    @property
    def placed(self) -> bool:
        """Return whether layers go to any engine, one each."""
        return self.parts > self.engines


@dataclass(frozen=True)
class Lv2Division:
    """Is a way to divide LV2: the least that areas and rings get, before tensors have their places."""

    least: Lv2Budget
    tensors_end: int
    useful_windows: int  #: size of a ring that holds all weights of the model
    useful_staging: int  #: size of a staging area in which the model's input can stay
    two_tiles: int  #: weights of two of the largest channel tiles, which a ring should hold

    def with_staging(self, part: Fraction, params: SocParams) -> "Lv2Division | None":
        """Return the same with a part of the staging areas; None if that has room for short copies only, which wait for
        DRAM longer than they take."""
        size = int(self.least.area.size * part) // params.lv1_word * params.lv1_word
        if part < 1 and size < _LEAST_STAGING * params.dram_word:
            return None
        return replace(self, least=replace(self.least, area=StagingArea(self.least.area.base, size)))

    def extended(self, tensors_end: int, lv2_bytes: int, params: SocParams) -> Lv2Budget:
        """Return the division with the bytes from the last tensor, which ends at ``tensors_end``, to ``lv2_bytes``
        given out: to staging areas and windows as far as they can use them, the rest to the staging areas."""
        least, word = self.least, params.lv1_word
        base = tensors_end if tensors_end > least.staging_end else 0
        whole = space = (lv2_bytes - max(tensors_end, least.staging_end)) // least.parts
        if self.useful_staging > least.area.size:  # staging areas move behind the tensors
            rest = (lv2_bytes - base) // least.parts - self.useful_staging
            space = rest if rest >= min(self.useful_windows, self.two_tiles) else space
        windows = max(least.windows, min(self.useful_windows, space // word * word))
        size = (lv2_bytes - windows * least.parts - base) // least.parts // word * word
        area = StagingArea(base, size)
        if size <= least.area.size:  # they stay where they are, and windows get what they would have had
            area, windows = least.area, max(least.windows, min(self.useful_windows, whole // word * word))
        return replace(least, windows=windows, area=area, job_weights=min(windows // 2, least.job_weights))


def _largest_tiles(layers: Sequence[Layer], params: SocParams) -> int:
    """Return two buffers each of the largest streamed weights, outputs and inputs a plan can have (LV0 limits them
    all)."""
    weights = params.lv0_wgt_bytes // 2 * params.pes
    inputs = params.lv0_act_bytes // 2 * params.pes
    outputs = params.lv0_acc_rows // 2 * params.out_channels
    adds = any(isinstance(layer, ConvLayer) and layer.addition for layer in layers)
    return 2 * (weights + inputs + outputs * (2 if adds else 1))


def divide(
    graph: ir.Graph, layers: Sequence[Layer], params: SocParams, engines: int, lv2_bytes: int, *, placed: bool = False
) -> list[Lv2Division]:
    """Return the divisions of ``lv2_bytes`` of LV2 to choose from, by how many bytes their tensors save DRAM;
    ``placed``: each layer runs on one of ``engines``, whichever. The window rings take what the weights need, at most a
    quarter, or less as long as they hold the weights of any channel tile that a quarter holds. Tensors get the rest;
    what these leave is given out again by :meth:`Lv2Division.extended`."""
    word = params.lv1_word
    tiles = [(len(layer.tiles), tile_bytes(layer, params)) for layer in layers if isinstance(layer, ConvLayer)]
    constants = [_row_constants(layer, params) for layer in layers]
    total = sum(count * size for count, size in tiles) + sum(constants) + SLACK * len(layers)
    useful = -(-total // word) * word
    quarter = lv2_bytes // 4 // engines // word * word
    sizes = [*(size for _, size in tiles), *constants]
    largest = max((size + SLACK for size in sizes if size + SLACK <= quarter), default=0)
    staging = max(lv2_bytes // 16 // engines, _largest_tiles(layers, params)) // word * word
    outside = max((_outside_bytes(graph, layer, lv2_bytes, params, engines) for layer in layers), default=0)
    pair = 2 * max((size for _, size in tiles), default=0)
    shared, area, divisions = 1 if placed else engines, StagingArea(0, staging), []
    for windows in (quarter, quarter // 2, quarter // 4):
        size = min(max(windows, largest) // word * word, useful)
        tensors_end = lv2_bytes - size * engines
        least = Lv2Budget(shared, engines, area, size, quarter * 9 // 16)
        divisions.append(Lv2Division(least, tensors_end, useful, outside, pair))
    return divisions


def _outside_bytes(graph: ir.Graph, layer: Layer, lv2_bytes: int, params: SocParams, engines: int) -> int:
    """Return staging that holds an engine's part of the model's input and two pixel tiles of its output, if that is not
    more than half of LV2."""
    if not isinstance(layer, ConvLayer):
        return 0
    x, y, total = graph.tensors[layer.inputs[0]], graph.tensors[layer.output], 0
    pixels = params.lv0_acc_rows // 2
    if any(port.tensor == x.name for port in graph.inputs):
        rows = layer.kernel[0] * layer.dilations[0]
        total += min(x.size, x.size // engines + rows * x.nhwc[2] * x.nhwc[3])
    if any(port.tensor == y.name for port in graph.outputs):
        total += 2 * min(y.size, pixels * y.nhwc[3])
    return total * 3 // 2 if total * 3 // 2 * engines <= lv2_bytes // 2 else 0


def _row_constants(layer: Layer, params: SocParams) -> int:
    """Return the tables and parameters of a layer that works on rows."""
    if isinstance(layer, SoftmaxLayer):
        return 2 * WIDE_TABLE_BYTES
    if isinstance(layer, NormLayer):
        return -(-len(layer.bias) // params.out_channels) * params_bytes(params)
    return 0


def tile_bytes(layer: ConvLayer, params: SocParams) -> int:
    """Return the weights and parameters of one channel tile."""
    depth = 1 if layer.depthwise else layer.pe_channels or max(tile.channels for tile in layer.tiles)
    lines = int(np.prod(layer.kernel)) * -(-depth // params.rows) * params.rows
    if layer.depthwise:
        lines *= params.rows
    return lines * params.out_channels + conv_params_bytes(layer, params) * len(layer.areas)
