"""Depthwise convolutions whose last kernel column would need blocks of its own: LV0 holds its input by columns."""

import pytest

from compiler.plan.layers.lower import lower
from compiler.plan.tiling.conv_search import best_tiling
from compiler.plan.tiling.conv_tiling import TilingContext, depthwise_blocks
from hw.contract.params import preset
from tests.support.graphs import GraphBuilder, check

TINY, BASE = preset("tiny"), preset("base")

CASES = {  # input, kernel, strides, pads, and blocks of weights on base
    "5x5": ((1, 14, 13, 70), (5, 5), (1, 1), (2, 2, 2, 2), 7),
    "strided": ((2, 15, 14, 64), (5, 5), (2, 2), (2, 1, 1, 2), 7),
    "3x5": ((1, 9, 11, 40), (3, 5), (1, 2), (1, 2, 1, 2), 4),
    "one column": ((1, 16, 5, 33), (7, 1), (2, 1), (3, 0, 3, 0), 2),
    "3x3": ((1, 9, 8, 40), (3, 3), (1, 1), (1, 1, 1, 1), 3),
}


def depthwise(case: str, dtype: str = "int8") -> GraphBuilder:
    shape, kernel, strides, pads, _ = CASES[case]
    build = GraphBuilder(len(case))
    x = build.input(shape, dtype)
    build.output(build.conv(x, shape[3], kernel, strides=strides, pads=pads, groups=shape[3]))
    return build


@pytest.mark.parametrize("params", [TINY, BASE], ids=lambda p: p.name)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("case", CASES)
def test_exact(case, dtype, params):
    check(depthwise(case, dtype).graph, params, engines=params.engines)


@pytest.mark.parametrize("case", CASES)
def test_blocks(case):
    (layer,) = lower(depthwise(case).graph, BASE)
    assert depthwise_blocks(layer, BASE) == CASES[case][4]


def test_the_search_takes_the_last_column_alone():
    (layer,) = lower(depthwise("5x5").graph, BASE)
    tiling = best_tiling(layer, TilingContext(1, False, False, 1 << 18, 2), BASE)
    assert [(part.rows, part.cols) for part in tiling.chunks(layer, 32)] == [(5, 4), (5, 1)]
