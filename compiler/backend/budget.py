"""How LV2 is divided: staging for tensors in DRAM, homes of activations, and the ring of weight windows."""

from dataclasses import dataclass

import numpy as np

from compiler.backend.layers import ConvLayer, Layer
from compiler.backend.operand import Staging
from compiler.backend.tiling import params_bytes
from hw.params import SocParams

_SLACK = 1024  #: per layer: parameter blocks, tables, padding


@dataclass(frozen=True)
class Budget:
    """Bytes. Segment 6 holds a staging area for each engine, then homes up to ``homes_end``; segment 7 is a ring of
    weight windows for each engine, ``windows`` bytes each."""

    engines: int
    staging_size: int
    homes_end: int
    windows: int

    def staging(self, engine: int) -> Staging:
        """The staging area of an engine."""
        return Staging(engine * self.staging_size, self.staging_size)

    @property
    def job_weights(self) -> int:
        """Most weights of a job of several channel tiles: half the ring, so that the next job's fit beside them."""
        return self.windows // 2


def _largest_tiles(params: SocParams) -> int:
    """Two buffers each of the largest streamed weights, outputs and inputs a plan can have (LV0 limits them all)."""
    weights = params.lv0_wgt_bytes // 2 * params.pes
    inputs = params.lv0_act_bytes // 2 * params.pes
    outputs = params.lv0_acc_rows // 2 * params.out_channels
    return 2 * (weights + inputs + outputs)


def divide(layers: list[Layer], params: SocParams, engines: int) -> Budget:
    """The window rings take what the weights need, at most a quarter of LV2; homes get the rest."""
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
    windows = min(params.lv2_bytes // 4 // engines, -(-total // word) * word)
    staging = max(params.lv2_bytes // 16 // engines, _largest_tiles(params)) // word * word
    return Budget(engines, staging, params.lv2_bytes - windows * engines, windows)
