"""How LV2 is divided: staging for tensors in DRAM, homes of activations, and the ring of weight windows."""

from dataclasses import dataclass, replace

import numpy as np

from compiler.backend.layers import ConvLayer, Layer
from compiler.backend.operand import Staging
from compiler.backend.tiling import params_bytes
from hw.params import SocParams

_SLACK = 1024  #: per layer: parameter blocks, tables, padding


@dataclass(frozen=True)
class Budget:
    """Bytes. Segment 6 holds a staging area for each engine, then homes up to ``homes_end``; segment 7 is a ring of
    weight windows for each engine, ``windows`` bytes each; more than ``wanted`` would be of no use. A job of several
    channel tiles has at most ``job_weights`` bytes of weights: few enough that loads run ahead of it, and at most half
    of the ring, so that the next job's fit beside them."""

    engines: int
    staging_size: int
    homes_end: int
    windows: int
    wanted: int
    job_weights: int

    def staging(self, engine: int) -> Staging:
        """The staging area of an engine."""
        return Staging(engine * self.staging_size, self.staging_size)

    def extended(self, homes_end: int, params: SocParams) -> "Budget":
        """The same with the windows grown into what lies between the last home and ``homes_end``."""
        used = max(homes_end, self.staging_size * self.engines)
        space = (params.lv2_bytes - used) // self.engines // params.lv1_word * params.lv1_word
        return replace(self, windows=max(self.windows, min(self.wanted, space)))


def _largest_tiles(layers: list[Layer], params: SocParams) -> int:
    """Two buffers each of the largest streamed weights, outputs and inputs a plan can have (LV0 limits them all)."""
    weights = params.lv0_wgt_bytes // 2 * params.pes
    inputs = params.lv0_act_bytes // 2 * params.pes
    outputs = params.lv0_acc_rows // 2 * params.out_channels
    adds = any(isinstance(layer, ConvLayer) and layer.addition for layer in layers)
    return 2 * (weights + inputs + outputs * (2 if adds else 1))


def divide(layers: list[Layer], params: SocParams, engines: int) -> Budget:
    """The window rings take what the weights need, at most a quarter of LV2; homes get the rest. What these leave
    goes back to the windows, see :meth:`Budget.extended`."""
    total = 0
    for layer in layers:
        total += _SLACK
        if isinstance(layer, ConvLayer):
            depth = 1 if layer.depthwise else max(tile.channels for tile in layer.tiles)
            lines = int(np.prod(layer.kernel)) * -(-depth // params.rows) * params.rows
            if layer.depthwise:
                lines *= params.rows
            per_tile = lines * params.out_channels + params_bytes(params) * len(layer.regions)
            total += len(layer.tiles) * per_tile
    word = params.lv1_word
    wanted = -(-total // word) * word
    windows = min(params.lv2_bytes // 4 // engines // word * word, wanted)
    staging = max(params.lv2_bytes // 16 // engines, _largest_tiles(layers, params)) // word * word
    return Budget(engines, staging, params.lv2_bytes - windows * engines, windows, wanted, windows // 2)
