"""Operators to layers: which unit does what, before anything has an address."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from compiler import ir
from compiler.plan.layers.channel_packing import packed_channels
from compiler.plan.layers.layer import (
    AppendLayer,
    ChannelTile,
    ConvLayer,
    EltwiseLayer,
    FilledRow,
    HostLayer,
    Layer,
    LoadLayer,
    MoveLayer,
    NormLayer,
    OutputArea,
    PadLayer,
    ProductLayer,
    SoftmaxLayer,
    StridedCopy,
)
from hw.contract.isa import RECORD_BYTES, VecOp
from hw.contract.params import SocParams
from hw.image import ParameterInfo

Lowering = Callable[[ir.Graph, Any, SocParams], list[Layer]]

LOWERINGS: dict[type[ir.Operation], Lowering] = {}


def lowers(kind: type[ir.Operation]) -> Callable[[Lowering], Lowering]:
    """Register a function that turns an operator of ``kind`` into layers, in order; it may add tensors to the graph."""

    def register(lowering: Lowering) -> Lowering:
        LOWERINGS[kind] = lowering
        return lowering

    return register


def lower(graph: ir.Graph, params: SocParams) -> list[Layer]:
    """Return the layers of ``graph`` in order. Adds tensors to the graph where an operator takes two layers. Raises
    :class:`compiler.ir.CompileError` for an operator that no function lowers."""
    layers: list[Layer] = []
    for op in graph.ops:
        if type(op) not in LOWERINGS:
            raise ir.CompileError(f"operator {op.name!r}: the back end has no {op.kind}; mark it for the host")
        layers += LOWERINGS[type(op)](graph, op, params)
    return layers


@lowers(ir.Reshape)
def _reshape(graph: ir.Graph, op: ir.Reshape, params: SocParams) -> list[Layer]:
    """No layer: both tensors are the same bytes."""
    return []


@lowers(ir.Pad)
def _pad(graph: ir.Graph, op: ir.Pad, params: SocParams) -> list[Layer]:
    return [PadLayer(op, op.inputs, op.output, "pad", op.pads[:2], op.value)]


@lowers(ir.Host)
def _host(graph: ir.Graph, op: ir.Host, params: SocParams) -> list[Layer]:
    return [HostLayer(op, op.inputs, op.output, "host")]


def per_channel(scale: npt.NDArray, channels: int) -> npt.NDArray[np.float32]:
    """Return a scale for each of ``channels``, of as many or of one."""
    return np.broadcast_to(np.asarray(scale, np.float32).reshape(-1), (channels,)).copy()


@lowers(ir.Blend)
@lowers(ir.Conv)
def _conv(graph: ir.Graph, op: ir.Conv, params: SocParams) -> list[Layer]:
    x, y = graph.tensors[op.inputs[0]].nhwc, graph.tensors[op.output].nhwc
    outs, _, _, group_in = op.weights.shape
    weights, dilations = op.weights, op.dilations
    depthwise = op.groups > 1 and group_in == 1 and outs == op.groups
    if depthwise:  # neighbouring columns meet in one cycle, so columns between the taps become zero taps
        weights, dilations = dilated_columns(weights, dilations[1], op.weight_zero_point), (dilations[0], 1)
    area = OutputArea(0, y[1], 0, y[2], op.bias.astype(np.int32), per_channel(op.requantise.scale, outs))
    tiles = channel_tiles(outs, op.groups, group_in, params, depthwise)
    packed = 0 if depthwise else packed_channels(tiles, outs, op.groups, group_in, params)
    flat = weights.shape[1:3] == (1, 1) and op.strides == (1, 1) and not any(op.pads) and x[:3] == y[:3]
    layer = ConvLayer(
        op, op.inputs, op.output, "depthwise" if depthwise else "conv", weights, op.weight_zero_point, [area],
        op.requantise, depthwise, tiles, op.groups, op.strides, op.pads[:2], dilations, flat,
        pe_channels=packed, int4=op.int4,
    )  # fmt: skip
    return [layer]


def dilated_columns(weights: npt.NDArray, dilation: int, zero: int) -> npt.NDArray:
    """Return ``weights`` (O, kh, kw, I) with ``dilation - 1`` columns that are ``zero`` between theirs."""
    outs, kh, kw, depth = weights.shape
    wide = np.full((outs, kh, (kw - 1) * dilation + 1, depth), zero, weights.dtype)
    wide[:, :, ::dilation] = weights
    return wide


def channel_tiles(outs: int, groups: int, group_in: int, params: SocParams, depthwise: bool) -> list[ChannelTile]:
    """Return the output channels, ``outs`` in ``groups`` of ``group_in`` inputs each, in tiles that the arrays hold."""
    step, group_out, tiles = params.out_channels, outs // groups, []
    for first in range(0, outs, step):
        count = min(step, outs - first)
        if depthwise:
            tiles.append(ChannelTile(first, count, first, count))
            continue
        low = first // group_out
        high = (first + count - 1) // group_out + 1
        tiles.append(ChannelTile(first, count, low * group_in, (high - low) * group_in))
    return tiles


@lowers(ir.Eltwise)
def _eltwise(graph: ir.Graph, op: ir.Eltwise, params: SocParams) -> list[Layer]:
    a, b = (graph.tensors[name] for name in op.inputs)
    broadcast = ""
    if b.nhwc != a.nhwc:
        broadcast = "all" if b.size == 1 else "pixels"
    if op.kind_ in ("min", "max"):
        return _extreme(graph, op, broadcast)
    code = VecOp.MUL if op.kind_ == "mul" else VecOp.LIN
    return [EltwiseLayer(
        op, op.inputs, op.output, op.kind_, code, op.requantise, op.ma, op.mb, op.bias, broadcast
    )]  # fmt: skip


def _extreme(graph: ir.Graph, op: ir.Eltwise, broadcast: str) -> list[Layer]:
    """The smaller of A and B is A less what it is larger by; the larger one is A and what it is smaller by. Either
    difference is a byte, as both operands are quantised alike."""
    sign = -1 if op.kind_ == "min" else 1
    beyond = ir.Tensor(f"{op.output}/difference", graph.tensors[op.inputs[0]].shape, "uint8")
    graph.tensors[beyond.name] = beyond
    bytes_of = ir.Requantisation(np.ones(1, np.float32), 0, 0, 255)
    return [
        EltwiseLayer(op, op.inputs, beyond.name, op.kind_, VecOp.LIN, bytes_of, -sign, sign, 0, broadcast),
        EltwiseLayer(
            op, [op.inputs[0], beyond.name], op.output, op.kind_, VecOp.LIN, op.requantise, 1, sign, op.bias
        ),
    ]  # fmt: skip


@lowers(ir.Table)
def _table(graph: ir.Graph, op: ir.Table, params: SocParams) -> list[Layer]:
    identity = ir.Requantisation(np.ones(1, np.float32), 0, 0, 255, op.table)
    return [EltwiseLayer(op, op.inputs, op.output, "table", VecOp.LIN, identity, raw=True)]


@lowers(ir.Product)
def _product(graph: ir.Graph, op: ir.Product, params: SocParams) -> list[Layer]:
    return [
        ProductLayer(
            op, op.inputs, op.output, "product", op.heads, op.first, op.all_heads, op.joined, op.transposed,
            op.requantise,
        )
    ]  # fmt: skip


@lowers(ir.Softmax)
def _softmax(graph: ir.Graph, op: ir.Softmax, params: SocParams) -> list[Layer]:
    _check_records(op, params)
    filled = None
    if len(op.inputs) > 1:
        count = partial(_parameter, graph, op.inputs[1])
        filled = FilledRow(
            count(div=params.vec_lanes), count(add=1, mod=params.vec_lanes), count(add=1)
        )  # fmt: skip
    return [
        SoftmaxLayer(
            op, op.inputs[:1], op.output, "softmax", op.sums, op.values, op.exponent, op.zero_point, op.lo, op.hi,
            filled,
        )
    ]  # fmt: skip


def _parameter(graph: ir.Graph, number: str, **formula: int) -> ParameterInfo:
    """Return what follows by ``formula`` from a number of the inference."""
    limits = graph.numbers[number]
    return ParameterInfo(number, limits.low, limits.high, **formula)


@lowers(ir.Append)
def _append(graph: ir.Graph, op: ir.Append, params: SocParams) -> list[Layer]:
    """Two copies, to the place that the number says; what is there stays where it is."""
    before, rows, number, _ = op.inputs
    size, count = graph.tensors[rows].size, graph.tensors[rows].shape[op.axis]
    place = _parameter(graph, number, mul=size // count)
    copies = [StridedCopy(rows, 0, [(size, 1, 1)], more_offset=place, dst=name) for name in op.results]
    return [AppendLayer(op, [before, rows], op.output, "append", copies)]


@lowers(ir.Lookup)
def _lookup(graph: ir.Graph, op: ir.Lookup, params: SocParams) -> list[Layer]:
    table, *numbers = op.inputs
    size = graph.tensors[op.output].size // len(numbers)
    copies = [
        StridedCopy(table, place * size, [(size, 1, 1)], more_start=_parameter(graph, number, mul=size))
        for place, number in enumerate(numbers)
    ]
    return [MoveLayer(op, [table], op.output, "lookup", copies)]


@lowers(ir.StateLoad)
def _load(graph: ir.Graph, op: ir.StateLoad, params: SocParams) -> list[Layer]:
    copy = StridedCopy(op.inputs[0], 0, [(graph.tensors[op.output].size, 1, 1)])
    return [LoadLayer(op, op.inputs, op.output, "load", [copy], ahead=True)]


@lowers(ir.LayerNorm)
def _layer_norm(graph: ir.Graph, op: ir.LayerNorm, params: SocParams) -> list[Layer]:
    _check_records(op, params)
    return [NormLayer(op, op.inputs, op.output, "layernorm", op.epsilon, op.exponent, op.bias, op.requantise)]


@lowers(ir.RmsNorm)
def _rms_norm(graph: ir.Graph, op: ir.RmsNorm, params: SocParams) -> list[Layer]:
    _check_records(op, params)
    return [
        NormLayer(op, op.inputs, op.output, "rmsnorm", op.epsilon, op.exponent, op.bias, op.requantise, centred=False)
    ]


def _check_records(op: ir.Operation, params: SocParams) -> None:
    if params.vec_lanes < RECORD_BYTES:
        raise ir.CompileError(
            f"operator {op.name!r}: a {op.kind} needs vec_lanes of at least {RECORD_BYTES}, the machine has "
            f"{params.vec_lanes}: choose another"
        )


@lowers(ir.Concat)
def _concat(graph: ir.Graph, op: ir.Concat, params: SocParams) -> list[Layer]:
    out = graph.tensors[op.output].shape
    axis = op.axis % len(out)
    outer = int(np.prod(out[:axis], dtype=np.int64))
    pitch, offset, moves = int(np.prod(out[axis:], dtype=np.int64)), 0, []
    for name in op.inputs:
        inner = int(np.prod(graph.tensors[name].shape[axis:], dtype=np.int64))
        moves.append(StridedCopy(name, offset, [(outer, inner, pitch), (inner, 1, 1)]))
        offset += inner
    return [MoveLayer(op, op.inputs, op.output, "concat", moves)]


@lowers(ir.Slice)
def _slice(graph: ir.Graph, op: ir.Slice, params: SocParams) -> list[Layer]:
    before, after = graph.tensors[op.inputs[0]].shape, graph.tensors[op.output].shape
    outer = int(np.prod(after[: op.axis], dtype=np.int64))
    line, taken = (int(np.prod(shape[op.axis :], dtype=np.int64)) for shape in (before, after))
    run = int(np.prod(after[op.axis + 1 :], dtype=np.int64))
    dims = [(outer, line, taken), (after[op.axis], op.step * run, run), (run, 1, 1)]
    copy = StridedCopy(op.inputs[0], 0, dims, op.first * run)
    return [MoveLayer(op, op.inputs, op.output, "slice", [copy])]


@lowers(ir.Repeat)
def _repeat(graph: ir.Graph, op: ir.Repeat, params: SocParams) -> list[Layer]:
    """One copy, which reads what it repeats from the same place."""
    dims, taken, pitch = list[tuple[int, int, int]](), 1, 1
    for size, factor in zip(reversed(graph.tensors[op.inputs[0]].shape), reversed(op.factors), strict=True):
        dims += [(factor, 0, pitch), (size, taken, factor * pitch)]
        taken, pitch = taken * size, pitch * size * factor
    return [MoveLayer(op, op.inputs, op.output, "repeat", [StridedCopy(op.inputs[0], 0, dims[::-1])])]


@lowers(ir.Permute)
def _permute(graph: ir.Graph, op: ir.Permute, params: SocParams) -> list[Layer]:
    shuffled = _shuffle(graph, op, params)
    if shuffled is not None:
        return [shuffled]
    shape = graph.tensors[op.inputs[0]].shape
    strides = [int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(len(shape))]
    dims, pitch = [], 1
    for axis in reversed(op.perm):
        dims.append((shape[axis], strides[axis], pitch))
        pitch *= shape[axis]
    return [MoveLayer(op, op.inputs, op.output, "permute", [StridedCopy(op.inputs[0], 0, dims[::-1])])]


def _shuffle(graph: ir.Graph, op: ir.Permute, params: SocParams) -> ConvLayer | None:
    """Return a permutation of channels as a 1x1 convolution with one weight of 1 for each channel, which is exact; None
    if it is none, or takes longer. As a copy it would move a few bytes at a time, on one engine."""
    shape = graph.tensors[op.inputs[0]].shape
    fixed = next((i for i, axis in enumerate(op.perm) if i != axis), len(shape))
    pixels, channels = math.prod(shape[:fixed]), math.prod(shape[fixed:])
    run = shape[-1] if op.perm[-1] == len(shape) - 1 else 1
    tiles = channel_tiles(channels, 1, channels, params, False)
    sums = pixels * len(tiles) * -(-channels // params.rows) / params.engines
    x, y = (_with_channels(graph, name, channels) for name in (op.inputs[0], op.output))
    if x is None or y is None or sums > pixels * channels / min(run, params.lv1_word):
        return None
    tail = [axis - fixed for axis in op.perm[fixed:]]
    source = np.arange(channels).reshape(shape[fixed:]).transpose(tail).reshape(-1)
    weights = np.zeros((channels, 1, 1, channels), np.int8)
    weights[np.arange(channels), 0, 0, source] = 1
    return _copying(op, x, y, weights, tiles, 1)


@lowers(ir.Shuffle)
def _dealt(graph: ir.Graph, op: ir.Shuffle, params: SocParams) -> list[Layer]:
    """A convolution over the columns of a pixel, with one weight of 1 for each channel: each tile of channels reads its
    own part of every column alone."""
    x, y = graph.tensors[op.inputs[0]], graph.tensors[op.output]
    depth, channels = x.nhwc[3], y.nhwc[3]
    weights = np.zeros((channels, 1, op.groups, 1), np.int8)
    weights[np.arange(channels), 0, np.arange(channels) % op.groups, 0] = 1
    return [_copying(op, x, y, weights, channel_tiles(channels, depth, 1, params, False), depth)]


def _copying(
    op: ir.Operation, x: ir.Tensor, y: ir.Tensor, weights: npt.NDArray, tiles: list[ChannelTile], groups: int
) -> ConvLayer:
    """Return a convolution that copies: each channel of the result has one weight, which is 1."""
    keep = ir.Requantisation.unchanged(x.dtype, x.zero_point)
    channels, taps = len(weights), weights.shape[2]
    area = OutputArea(0, y.nhwc[1], 0, y.nhwc[2], np.zeros(channels, np.int32), np.ones(channels, np.float32))
    return ConvLayer(
        op, [x.name], y.name, "shuffle", weights, 0, [area], keep, False, tiles, groups, (1, taps), (0, 0), (1, 1),
        x.nhwc[:3] == y.nhwc[:3],
    )  # fmt: skip


def _with_channels(graph: ir.Graph, name: str, channels: int) -> ir.Tensor | None:
    """Return the tensor ``name``, or a reshape of it, with that many channels; None if there is none."""
    roots = graph.roots()
    same = (tensor for other, tensor in graph.tensors.items() if roots[other] == roots[name])
    return next((tensor for tensor in same if tensor.nhwc[3] == channels), None)
