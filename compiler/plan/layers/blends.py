"""Blends to layers: depthwise convolutions, with a scale of its own wherever other weights meet pixels."""

from collections.abc import Sequence

import numpy as np

from compiler import ir
from compiler.plan.layers.layer import ConvLayer, Layer, OutputArea
from compiler.plan.layers.lower import channel_tiles, lowers, per_channel
from hw.contract.params import SocParams

_Run = tuple[int, int, int]  #: first result, how many, and the sum of the weights that meet pixels


@lowers(ir.Blend)
def _blend(graph: ir.Graph, op: ir.Blend, params: SocParams) -> list[Layer]:
    _, height, width, channels = graph.tensors[op.inputs[0]].nhwc
    _, rows, cols, _ = graph.tensors[op.output].nhwc
    bias, areas = np.zeros(channels, np.int32), []
    for y, ny, down in _runs(op.rows, op.pads[0], rows, height):
        for x, nx, across in _runs(op.columns, op.pads[1], cols, width):
            scale = op.requantise.scale / np.float32(down * across)
            areas.append(OutputArea(y, ny, x, nx, bias, per_channel(scale.astype(np.float32), channels)))
    weights = np.outer(op.rows, op.columns).astype(np.uint8)
    return [ConvLayer(
        op, op.inputs, op.output, "blend", np.broadcast_to(weights[None, ..., None], (channels, *weights.shape, 1)), 0,
        areas, op.requantise, True, channel_tiles(channels, channels, 1, params, True), channels, (1, 1), op.pads[:2],
        (1, 1), False,
    )]  # fmt: skip


def _runs(weights: Sequence[int], pad: int, results: int, extent: int) -> list[_Run]:
    """Return the runs of results along an axis of ``extent`` whose windows have the same sum of weights inside."""
    runs = list[_Run]()
    for place in range(results):
        inside = sum(weight for i, weight in enumerate(weights) if 0 <= place - pad + i < extent)
        if runs and runs[-1][2] == inside:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1, inside)
        else:
            runs.append((place, 1, inside))
    return runs
