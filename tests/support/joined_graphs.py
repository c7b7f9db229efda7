"""Random graphs with concatenations along channels that convolutions and pools alone read."""

from dataclasses import replace

import numpy as np

from compiler import ir
from tests.support.graphs import GraphBuilder

_KERNELS = ((1, 1), (1, 1), (3, 3), (1, 5))


def joined_graph(seed: int, least: int = 1, most: int = 40, size: int = 9) -> ir.Graph:
    """Return a graph of two or three concatenations of pieces of ``least`` to ``most`` channels, some of which others
    are pieces of, on images of up to ``size`` pixels a side."""
    make, rng = GraphBuilder(seed), np.random.default_rng(seed)
    height, width = (int(side) for side in rng.integers(4, size + 1, 2))
    x = make.input((int(rng.integers(1, 3)), height, width, 5))
    ends = list[str]()
    for _ in range(int(rng.integers(2, 4))):
        pieces = [make.conv(x, int(rng.integers(least, most + 1)), (1, 1)) for _ in range(int(rng.integers(2, 5)))]
        joined = alike = make.concat(pieces, 3)
        if rng.integers(3) == 0:  # of concatenations
            joined = make.concat([alike, pieces[0]], 3)
        _alike(make.graph, [*pieces, alike, joined])
        for _ in range(int(rng.integers(1, 4))):
            ends.append(_read(make, rng, joined, most))
        x = ends[-1]
    for end in ends:
        make.output(end)
    return make.graph


def _alike(graph: ir.Graph, names: list[str]) -> None:
    """Give the tensors ``names`` the quantisation of the first, which their requantisation need not know."""
    for name in names[1:]:
        graph.tensors[name] = replace(graph.tensors[name], zero_point=graph.tensors[names[0]].zero_point)


def _read(make: GraphBuilder, rng: np.random.Generator, joined: str, most: int) -> str:
    """Add what reads ``joined``."""
    channels, kernel = make.shape(joined)[3], _KERNELS[rng.integers(len(_KERNELS))]
    pads = tuple(int(k // 2) for k in (*kernel, *kernel))
    kind = int(rng.integers(5))
    if kind == 0:
        return make.pool("max", joined, (3, 3), (1, 1), (1, 1, 1, 1))
    if kind == 1:
        return make.conv(joined, channels, (3, 3), pads=(1, 1, 1, 1), groups=channels)
    y = make.conv(joined, int(rng.integers(1, most + 1)), kernel, pads=pads)
    if kind == 2:
        other = make.conv(joined, make.shape(y)[3], (1, 1))
        return make.eltwise("add", y, other)
    return y
