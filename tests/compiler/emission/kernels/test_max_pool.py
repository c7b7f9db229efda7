"""Compiled pools on the functional model equal the NumPy reference: maxima, and averages as convolutions."""

import pytest

from hw.contract.params import preset
from tests.support.graphs import GraphBuilder, check

TINY, BASE = preset("tiny"), preset("base")
both = pytest.mark.parametrize("params", [TINY, BASE], ids=lambda p: p.name)


POOLS = {
    "2x2": ((1, 8, 10, 12), (2, 2), (2, 2), (0, 0, 0, 0)),
    "3x3 padded": ((2, 11, 9, 7), (3, 3), (2, 2), (1, 1, 1, 1)),
    "3x3 uneven": ((1, 9, 9, 40), (3, 3), (1, 1), (0, 1, 2, 1)),
    "global": ((1, 13, 11, 37), (13, 11), (1, 1), (0, 0, 0, 0)),
    "large": ((1, 40, 40, 3), (32, 30), (4, 4), (3, 5, 3, 5)),
    "strip": ((1, 20, 1, 5), (20, 1), (1, 1), (0, 0, 0, 0)),
}


@both
@pytest.mark.parametrize("kind", ["max", "avg", "avg include"])
@pytest.mark.parametrize("case", POOLS)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_pool(case, kind, dtype, params):
    shape, kernel, strides, pads = POOLS[case]
    build = GraphBuilder(len(case))
    y = build.pool(kind[:3], build.input(shape, dtype), kernel, strides, pads, include=kind.endswith("include"))
    build.output(y)
    check(build.graph, params)
