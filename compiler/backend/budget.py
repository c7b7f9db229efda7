"""How LV2 is divided: staging for tensors in DRAM, homes of activations, and the ring of weight windows."""

from dataclasses import dataclass

import numpy as np

from compiler.backend.layers import ConvLayer, Layer
from compiler.backend.operand import Staging
from compiler.backend.tiling import params_bytes
from hw.params import KIB, SocParams

_SLACK = 1024  #: per layer: parameter blocks, tables, padding


@dataclass(frozen=True)
class Budget:
    """Bytes: ``staging`` and homes share segment 6 up to ``homes_end``; segment 7 is the window ring."""

    staging: Staging
    homes_end: int
    windows: int

    @property
    def job_weights(self) -> int:
        """Most weights of a job of several channel tiles: half the ring, so that the next job's fit beside them."""
        return self.windows // 2


def divide(layers: list[Layer], params: SocParams) -> Budget:
    """The window ring takes what the weights need, at most a quarter of LV2; homes get the rest."""
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
    windows = min(params.lv2_bytes // 4, -(-total // word) * word)
    staging = Staging(0, max(params.lv2_bytes // 16, min(16 * KIB, params.lv2_bytes // 8)))
    return Budget(staging, params.lv2_bytes - windows, windows)
