"""Graphs with a run of operators that can be cut into parts of an image."""

import random

import numpy as np

from compiler import ir
from tests.support.graphs import GraphBuilder

PADS = (1, 1, 1, 1)


def random_run(seed: int, frames: int = 1) -> tuple[ir.Graph, list[ir.Operation]]:
    """A random graph, and some neighbouring operators of it that hand on one tensor."""
    draw, make = random.Random(seed), GraphBuilder(seed)
    x = make.input((frames, draw.randint(12, 30), draw.randint(12, 30), draw.randint(3, 20)))
    x = make.conv(x, draw.randint(4, 24), pads=PADS) if draw.random() < 0.5 else x
    first = len(make.graph.ops)
    while len(make.graph.ops) < first + 5 and min(make.shape(x)[1:3]) > 5:
        x = _operators(draw, make, x)
    last = len(make.graph.ops)
    make.output(make.conv(x, draw.randint(4, 24), (1, 1)) if draw.random() < 0.5 else x)
    return make.graph, make.graph.ops[first:last]


def _operators(draw: random.Random, make: GraphBuilder, x: str) -> str:
    kind = draw.choice(["conv", "pixel", "depthwise", "max", "avg", "residual", "table", "fire"])
    pads, strides = draw.choice([PADS, (1, 0, 0, 1), (0, 0, 0, 0)]), draw.choice([(1, 1), (2, 2), (1, 2)])
    channels, outs = make.shape(x)[3], draw.randint(4, 40)
    if kind == "conv":
        return make.conv(x, outs, (3, 3), strides, pads)
    if kind == "pixel":
        return make.conv(x, outs, (1, 1), strides)
    if kind == "depthwise":
        return make.conv(x, channels, (3, 3), strides, pads, groups=channels)
    if kind in ("max", "avg"):
        return make.pool(kind, x, (3, 3), strides, pads, draw.random() < 0.5)
    if kind == "residual":
        y = make.conv(make.conv(x, outs, (1, 1)), channels, (3, 3), pads=PADS)
        return make.eltwise("add", *draw.sample([x, y], 2))
    if kind == "table":
        return make.table(x)
    squeezed = make.conv(x, outs, (1, 1))
    return make.concat([make.conv(squeezed, outs, (1, 1)), make.conv(squeezed, outs, (3, 3), pads=PADS)], 3)


def wide_middle(size: int = 32, channels: int = 96, frames: int = 1) -> GraphBuilder:
    """Few channels, many, then fewer pixels: as at the beginning of MobileNetV2."""
    make = GraphBuilder(3)
    x = make.conv(make.input((frames, size, size, 8)), 16)
    wide = make.conv(make.conv(x, channels, (1, 1)), channels, (3, 3), (2, 2), PADS, groups=channels)
    make.output(make.conv(make.conv(wide, 24, (1, 1)), 32, pads=PADS))
    return make


def random_matrices(seed: int) -> tuple[ir.Graph, list[ir.Operation], int]:
    """A random graph on a batch of matrices with attention, a run of it that keeps frames apart, and the frames."""
    draw, make = random.Random(seed), GraphBuilder(seed)
    frames, rows, width = draw.randint(2, 4), draw.randint(3, 9), 4 * draw.randint(2, 5)
    x = make.input((frames, rows, width))
    x = make.table(x) if draw.random() < 0.5 else x
    first = len(make.graph.ops)
    for step in draw.sample(_ON_MATRICES, 4):
        x = step(draw, make, x)
    x = make.table(x)
    last = len(make.graph.ops)
    make.output(make.layer_norm(x) if draw.random() < 0.5 else x)
    return make.graph, make.graph.ops[first:last], frames


def projected(make: GraphBuilder, x: str, width: int) -> str:
    """A fully connected layer on the rows of matrices."""
    frames, rows, _ = make.shape(x)
    return make.reshape(make.conv(x, width, (1, 1)), (frames, rows, width))


def attended(draw: random.Random, make: GraphBuilder, x: str) -> str:
    """Attention with heads side by side, and a sum."""
    frames, rows, width = make.shape(x)
    heads = draw.choice([count for count in (1, 2, 4) if width % count == 0])
    q, k, v = (projected(make, x, width) for _ in range(3))
    scores = make.product(q, k, heads, (True, True, False), transposed=True)
    if draw.random() < 0.5:  # a mask, the same for all frames or not
        given = make.rng.integers(0, 2, (draw.choice([1, frames]), heads, rows, rows)).astype(np.uint8)
        mask = make.tensor((frames, heads, rows, rows), "uint8", np.broadcast_to(given, (frames, *given.shape[1:])))
        scores = make.eltwise("mul", make.reshape(scores, (frames, heads, rows, rows)), mask)
        scores = make.reshape(scores, (frames * heads, rows, rows))
    mixed = make.product(make.softmax(scores), v, heads, (False, True, True), transposed=False)
    return make.eltwise("add", x, projected(make, mixed, width))


def _attended_apart(draw: random.Random, make: GraphBuilder, x: str) -> str:
    """Attention with heads one after the other, as one batch of matrices."""
    frames, rows, width = make.shape(x)
    heads = draw.choice([count for count in (1, 2, 4) if width % count == 0])
    split = make.permute(make.reshape(x, (frames, rows, heads, width // heads)), (0, 2, 1, 3))
    split = make.reshape(split, (frames * heads, rows, width // heads))
    count = draw.choice([frames * heads, heads])
    scores = make.product(split, make.table(split), count, (False, False, False), transposed=True)
    mixed = make.product(make.softmax(scores), split, count, (False, False, False), transposed=False)
    mixed = make.permute(make.reshape(mixed, (frames, heads, rows, width // heads)), (0, 2, 1, 3))
    return make.reshape(mixed, (frames, rows, width))


def _by_rows(draw: random.Random, make: GraphBuilder, x: str) -> str:
    """The rows of all frames as those of one matrix."""
    frames, rows, width = make.shape(x)
    y = make.layer_norm(make.reshape(x, (frames * rows, width)))
    return make.reshape(make.conv(y, width, (1, 1)), (frames, rows, width))


def _turned(draw: random.Random, make: GraphBuilder, x: str) -> str:
    frames, _, width = make.shape(x)
    outs = 4 * draw.randint(1, 5)
    y = make.reshape(make.conv(make.permute(x, (0, 2, 1)), outs, (1, 1)), (frames, width, outs))
    return make.permute(y, (0, 2, 1)) if draw.random() < 0.5 else y


def _with_positions(draw: random.Random, make: GraphBuilder, x: str) -> str:
    shape = make.shape(x)
    given = make.rng.integers(-128, 128, (draw.choice([1, shape[0]]), *shape[1:])).astype(np.int8)
    return make.eltwise("add", x, make.tensor(shape, "int8", np.broadcast_to(given, shape)))


def _gated(draw: random.Random, make: GraphBuilder, x: str) -> str:
    """Each channel of a frame times a factor of that frame."""
    frames, rows, width = make.shape(x)
    x = make.reshape(x, (frames, 1, rows, width))
    return make.reshape(make.eltwise("mul", x, make.pool("avg", x, (1, rows), (1, 1))), (frames, rows, width))


def _joined(draw: random.Random, make: GraphBuilder, x: str) -> str:
    """Rows or channels of two branches, or some of them, or each twice."""
    axis, shape = draw.choice([1, 2]), list(make.shape(x))
    if draw.random() < 0.5:
        return make.concat([x, make.table(x)], axis)
    factors = [1, 1, 1]
    factors[draw.choice([0, 1])] = 2
    y = make.tensor(tuple(size * factor for size, factor in zip(shape, factors, strict=True)))
    make.graph.ops.append(ir.Repeat(y, [x], y, factors=tuple(factors)))
    shape = [*make.shape(y)[:1], -(-shape[1] // 2), shape[2]]
    z = make.tensor(tuple(shape))
    make.graph.ops.append(ir.Slice(z, [y], z, axis=1, first=1 if make.shape(y)[1] > shape[1] else 0))
    return z


_ON_MATRICES = (attended, _attended_apart, _by_rows, _turned, _with_positions, _gated, _joined)


def batched_attention(frames: int, rows: int, width: int, heads: int, layers: int = 1) -> GraphBuilder:
    """Attention on each of a batch of matrices, and a feed-forward network behind it, ``layers`` times."""
    make = GraphBuilder(9)
    x = projected(make, make.input((frames, rows, width)), width)
    for _ in range(layers):
        q, k, v = (projected(make, x, width) for _ in range(3))
        scores = make.softmax(make.product(q, k, heads, (True, True, False), transposed=True))
        x = make.eltwise("add", x, make.product(scores, v, heads, (False, True, True), transposed=False))
        x = make.table(projected(make, make.table(projected(make, x, 2 * width)), width))
    make.output(x)
    return make
