"""Compiled pools on the functional model equal the NumPy reference: maxima, and averages as convolutions or as sums of
the vector unit."""

import pytest

from compiler.plan.layers import WindowLayer
from compiler.plan.lowered_model import LoweredModel
from compiler.plan.options import Options
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


MEANS = {  # by shape and kernel, and on which presets the vector unit makes them
    "of an image": ((1, 7, 7, 40), (7, 7), {"tiny", "base"}),
    "of two images": ((2, 9, 6, 19), (9, 6), {"tiny", "base"}),
    "of halves": ((1, 8, 14, 33), (8, 7), {"tiny", "base"}),
    "of quarters": ((1, 8, 8, 33), (4, 4), set()),
    "of many pixels": ((1, 23, 25, 33), (23, 25), {"base"}),
    "of too many": ((1, 45, 47, 70), (45, 47), set()),
    "of a long signal": ((1, 1, 300, 9), (1, 300), set()),
}


@both
@pytest.mark.parametrize("kind", ["avg", "sum"])
@pytest.mark.parametrize("engines", [1, 2])
@pytest.mark.parametrize("case", MEANS)
def test_means(case, engines, kind, params):
    shape, kernel, on_vec = MEANS[case]
    params = params.replace(engines=engines)
    build = GraphBuilder(len(case))
    build.output(build.pool(kind, build.input(shape, "uint8"), kernel, kernel))
    (layer,) = LoweredModel.of(build.graph, params, Options()).layers
    assert isinstance(layer, WindowLayer) == (params.name in on_vec)
    check(build.graph, params)
