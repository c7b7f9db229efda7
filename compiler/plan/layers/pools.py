"""Pools to layers: maxima and minima are work of the vector unit, sums and averages are depthwise convolutions, or work
of the vector unit where a window has more pixels than there are windows."""

import dataclasses
import math

import numpy as np

from compiler import ir
from compiler.plan.layers.layer import ConvLayer, EltwiseLayer, Layer, OutputArea, WindowLayer
from compiler.plan.layers.lower import channel_tiles, dilated_columns, lowers, per_channel
from hw.contract.isa import VecOp
from hw.contract.params import SocParams

_FEW_WINDOWS = 2  #: as many MAC cycles as a block of weights takes to load


@lowers(ir.Pool)
def _pool(graph: ir.Graph, op: ir.Pool, params: SocParams) -> list[Layer]:
    if op.kind_ in ("avg", "sum"):
        conv = _sum_pool(graph, op, params)
        return [_window_sum(graph, op, conv.areas, params) or conv]
    return _min_pool(graph, op, params) if op.kind_ == "min" else _max_pool(graph, op, op.inputs, op.requantise, params)


def _min_pool(graph: ir.Graph, op: ir.Pool, params: SocParams) -> list[Layer]:
    """A minimum is the maximum of all values less, and less itself: of bytes with all bits turned."""
    x = graph.tensors[op.inputs[0]]
    turned = ir.Tensor(f"{op.output}/turned", x.shape, x.dtype, x.scale, -1 - x.zero_point + 256 * (x.dtype == "uint8"))
    graph.tensors[turned.name] = turned
    table = ir.Requantisation(np.ones(1, np.float32), 0, 0, 255, np.arange(256, dtype=np.uint8)[::-1].copy())
    less = dataclasses.replace(op.requantise, scale=-op.requantise.scale)
    return [
        EltwiseLayer(op, op.inputs, turned.name, "minpool", VecOp.LIN, table, raw=True),
        *_max_pool(graph, op, [turned.name], less, params),
    ]


def _max_pool(
    graph: ir.Graph, op: ir.Pool, inputs: list[str], requantise: ir.Requantisation, params: SocParams
) -> list[Layer]:
    (kh, kw), (sh, sw), (top, left), (dh, dw) = op.kernel, op.strides, op.pads[:2], op.dilations
    kind, window = f"{op.kind_}pool", math.prod(op.span) * params.vec_lanes
    if kh == 1 or kw == 1 or (window <= params.lv1_bytes // 16 and max(kh, kw) < 256):
        if max(kh, kw) > 255:
            raise ir.CompileError(f"operator {op.name!r}: pooling kernel {kh}x{kw} exceeds 255; split it in the model")
        return [WindowLayer(
            op, inputs, op.output, kind, VecOp.MAX, op.kernel, op.strides, (top, left), requantise,
            dilations=op.dilations,
        )]  # fmt: skip
    # Too large for one tile: a maximum over rows and columns is a maximum over columns of maxima over rows.
    x, y = graph.tensors[inputs[0]], graph.tensors[op.output]
    n, h, _, c = x.nhwc
    middle = ir.Tensor(f"{op.output}/columns", (n, h, y.nhwc[2], c), x.dtype, x.scale, x.zero_point)
    graph.tensors[middle.name] = middle
    keep = ir.Requantisation.unchanged(x.dtype, x.zero_point)
    return [
        WindowLayer(op, inputs, middle.name, kind, VecOp.MAX, (1, kw), (1, sw), (0, left), keep, dilations=(1, dw)),
        WindowLayer(
            op, [middle.name], op.output, kind, VecOp.MAX, (kh, 1), (sh, 1), (top, 0), requantise, dilations=(dh, 1)
        ),
    ]


def _sum_pool(graph: ir.Graph, op: ir.Pool, params: SocParams) -> ConvLayer:
    """A sum is a depthwise convolution with weights 1, and so is an average; where padding changes its count, so does
    the scale."""
    _, height, width, channels = graph.tensors[op.inputs[0]].nhwc
    _, rows, cols, _ = graph.tensors[op.output].nhwc
    (kh, kw), (sh, sw), (top, left), (dh, dw) = op.kernel, op.strides, op.pads[:2], op.dilations
    if op.count_include_pad or op.kind_ == "sum":
        row_runs, col_runs = [(0, rows, kh)], [(0, cols, kw)]
    else:
        row_runs, col_runs = _count_runs(rows, sh, top, kh, dh, height), _count_runs(cols, sw, left, kw, dw, width)
    areas = []
    for y, ny, valid_rows in row_runs:
        for x, nx, valid_cols in col_runs:
            count = valid_rows * valid_cols if op.kind_ == "avg" else 1
            scale = np.asarray(op.requantise.scale, np.float32).reshape(-1)[:1] / np.float32(max(count, 1))
            bias = np.full(channels, op.bias * count, np.int32)
            areas.append(OutputArea(y, ny, x, nx, bias, per_channel(scale.astype(np.float32), channels)))
    tiles = channel_tiles(channels, channels, 1, params, True)
    ones = dilated_columns(np.ones((channels, kh, kw, 1), np.uint8), dw, 0)
    return ConvLayer(
        op, op.inputs, op.output, f"{op.kind_}pool", ones, 0, areas, op.requantise, True, tiles, channels, op.strides,
        (top, left), (dh, 1), False, uniform=dw == 1,
    )  # fmt: skip


def _window_sum(
    graph: ir.Graph, op: ir.Pool, areas: list[OutputArea], params: SocParams
) -> WindowLayer | None:  # fmt: skip
    """Return a sum or average of few windows on the vector unit; None where it does not suit. The MAC arrays would load
    weights for each pixel of a window, and use them once."""
    (kh, kw), (n, rows, cols, _) = op.kernel, graph.tensors[op.output].nhwc
    few = n * rows * cols <= _FEW_WINDOWS and max(kh, kw) < 256 and kh * kw > 1
    if not few or any(op.pads) or len(areas) > 1 or math.prod(op.span) * params.vec_lanes > params.lv1_bytes // 8:
        return None
    (area,) = areas
    how = dataclasses.replace(op.requantise, scale=area.scale[:1])
    bias = int(area.bias[0])
    return WindowLayer(
        op, op.inputs, op.output, f"{op.kind_}pool", VecOp.SUM, op.kernel, op.strides, (0, 0), how, bias, op.dilations
    )  # fmt: skip


def _count_runs(
    outputs: int, stride: int, pad: int, kernel: int, dilation: int, extent: int
) -> list[tuple[int, int, int]]:
    """(first, length, valid elements) of runs of outputs whose windows hold equally many valid elements."""
    runs: list[tuple[int, int, int]] = []
    for i in range(outputs):
        first = i * stride - pad
        valid = sum(0 <= place < extent for place in range(first, first + kernel * dilation, dilation))
        if runs and runs[-1][2] == valid:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1, valid)
        else:
            runs.append((i, 1, valid))
    return runs
