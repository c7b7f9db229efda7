"""Slopes to layers. Of an element and zero, the smaller is scaled for each channel as a convolution scales its results,
and the larger goes through a table; one of both is zero, so their sum is the result."""

import numpy as np

from compiler import ir
from compiler.plan.layers.layer import ConvLayer, EltwiseLayer, Layer, OutputArea
from compiler.plan.layers.lower import channel_tiles, lowers
from hw.contract.isa import VecOp
from hw.contract.params import SocParams


@lowers(ir.Slope)
def _slope(graph: ir.Graph, op: ir.Slope, params: SocParams) -> list[Layer]:
    x, y = graph.tensors[op.inputs[0]], graph.tensors[op.output]
    low, high = np.iinfo(y.dtype).min, np.iinfo(y.dtype).max
    stored = np.arange(256, dtype=np.uint8).view(x.dtype).astype(np.int32)
    smaller = np.minimum(stored, x.zero_point).astype(x.dtype).view(np.uint8)
    scaled = np.rint(np.maximum(stored - x.zero_point, 0).astype(np.float32) * op.above) + np.float32(op.zero_point)
    larger = np.clip(scaled, low, high).astype(y.dtype).view(np.uint8)

    def inner(name: str, like: ir.Tensor) -> str:
        made = ir.Tensor(f"{op.output}/{name}", like.shape, like.dtype, like.scale, like.zero_point)
        graph.tensors[made.name] = made
        return made.name

    def table(result: str, entries: np.ndarray) -> EltwiseLayer:
        how = ir.Requantisation(np.ones(1, np.float32), 0, 0, 255, entries)
        return EltwiseLayer(op, op.inputs, result, "prelu", VecOp.LIN, how, raw=True)

    _, rows, cols, channels = y.nhwc
    below, scaled_below, above = inner("below", x), inner("scaled", y), inner("above", y)
    keep = ir.Requantisation(op.below, op.zero_point, low, high)
    area = OutputArea(0, rows, 0, cols, np.zeros(channels, np.int32), op.below)
    conv = ConvLayer(
        op, [below], scaled_below, "prelu", np.ones((channels, 1, 1, 1), np.uint8), 0, [area], keep, True,
        channel_tiles(channels, channels, 1, params, True), channels, (1, 1), (0, 0), (1, 1), False,
    )  # fmt: skip
    total = ir.Requantisation(np.ones(1, np.float32), op.zero_point, op.lo, op.hi)
    add = EltwiseLayer(op, [above, scaled_below], op.output, "prelu", VecOp.LIN, total, 1, 1, 0)
    return [table(below, smaller), conv, table(above, larger), add]
