"""Graphs with a run of operators that can be cut into parts of an image."""

import random

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
