"""Compiled pools on the functional model equal the NumPy reference: maxima, and averages as convolutions or as sums of
the vector unit."""

import math

import numpy as np
import pytest

from compiler import reference
from compiler.plan.layers import WindowLayer
from compiler.plan.lowered_model import LoweredModel
from compiler.plan.options import Options
from compiler.plan.order.dimensions import HEIGHT, WIDTH
from compiler.plan.plan import ImageCut
from compiler.plan.split.parts import cut
from hw.contract.isa import Op, Segment, VecOp
from hw.contract.params import KIB, preset
from tests.support.graphs import GraphBuilder, check, random_inputs
from tests.support.images import decoded

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


DILATED = {
    "2x3 by 2 and 3": ((1, 11, 13, 12), (2, 3), (1, 1), (0, 0, 0, 0), (2, 3)),
    "3x3 by 2, padded": ((2, 11, 9, 7), (3, 3), (1, 1), (2, 2, 2, 2), (2, 2)),
    "with strides": ((1, 15, 14, 20), (3, 2), (2, 3), (1, 3, 2, 3), (2, 4)),
    "large": ((1, 40, 40, 3), (8, 8), (4, 4), (3, 5, 3, 5), (4, 4)),
    "a signal": ((1, 1, 60, 9), (1, 3), (1, 2), (0, 8, 0, 8), (1, 8)),
    "one window": ((1, 9, 9, 20), (3, 3), (1, 1), (0, 0, 0, 0), (4, 4)),
}


@both
@pytest.mark.parametrize("kind", ["max", "min", "avg", "avg include", "sum"])
@pytest.mark.parametrize("case", DILATED)
def test_dilated(case, kind, params):
    shape, kernel, strides, pads, dilations = DILATED[case]
    build = GraphBuilder(len(case))
    x = build.input(shape, "uint8")
    build.output(build.pool(kind[:3], x, kernel, strides, pads, kind.endswith("include"), dilations))
    check(build.graph, params)


def dilated_behind_a_convolution(kind: str) -> GraphBuilder:
    build = GraphBuilder(3)
    y = build.conv(build.input((1, 24, 26, 8)), 24, pads=(1, 1, 1, 1))
    y = build.pool(kind, y, (3, 3), (1, 1), (3, 3, 3, 3), dilations=(3, 3))
    build.output(build.conv(y, 16, (1, 1)))
    return build


@pytest.mark.parametrize("engines", [1, 2])
def test_dilated_in_a_region(monkeypatch, engines):
    monkeypatch.setattr("compiler.plan.regions.region_rules.LAYER_TO_LOAD", 4000.0)
    make, wide = GraphBuilder(8), (2, 2, 2, 2)
    x = make.conv(make.input((1, 17, 15, 8)), 96, (1, 1))
    for strides in ((1, 1), (2, 2)):
        x = make.pool("max", x, (3, 3), strides, wide, dilations=(2, 2))
        x = make.conv(x, 96, pads=(1, 1, 1, 1), groups=12)
    make.output(x)
    kinds = [layer.kind for layer in check(make.graph, BASE, engines=engines).meta.layers]
    assert any("maxpool+conv" in kind or "conv+maxpool" in kind for kind in kinds), kinds


@pytest.mark.parametrize("side", [HEIGHT, WIDTH])
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_dilated_in_parts(kind, side):
    graph = dilated_behind_a_convolution(kind).graph
    split = cut(graph, ImageCut(frozenset(op.name for op in graph.ops), side, 3))
    assert split is not None
    inputs = random_inputs(graph, 1)
    expected, found = reference.run(graph, inputs), reference.run(split, inputs)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)
    check(split, TINY)


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


@pytest.mark.parametrize(("lv2", "channels"), [(128 * KIB, 48), (256 * KIB, 96)])
@pytest.mark.parametrize("depth", [160, 150])
def test_one_load_brings_the_channels_of_several_tiles(lv2, channels, depth):
    """Runs from DRAM are as long as the staging area has room for two buffers of them; tiles have 16 channels, or
    32."""
    build = GraphBuilder(3)
    build.output(build.pool("avg", build.input((1, 32, 32, depth), "uint8"), (32, 32), (32, 32)))
    program = decoded(check(build.graph, BASE.replace(lv2_bytes=lv2)).code)
    runs = [insn["len"] for insn in program if insn.op is Op.LD2 and insn["src_seg"] == Segment.INPUTS]
    assert runs == [min(channels, depth - first) for first in range(0, depth, channels)]


def vector_steps(image) -> list[tuple[int, int, int]]:
    """By VEC instruction over windows, rows and columns of its window, and the vectors that it reads."""
    return [
        (insn["k1"], insn["k0"], math.prod(insn[name] for name in ("n2", "n1", "n0", "k1", "k0")))
        for insn in decoded(image.code)
        if insn.op is Op.VEC and insn["op"] == VecOp.MAX
    ]


SIDE_BY_SIDE = {  # by shape, kernel, strides, pads, dilations, and the steps of one group of channels
    "3x3": ((1, 9, 14, 12), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 9 * (3 * 16 + 3 * 14)),
    "5x5": ((2, 9, 14, 12), (5, 5), (1, 1), (2, 2, 2, 2), (1, 1), 2 * 9 * (5 * 18 + 5 * 14)),
    "5x5, every second": ((1, 9, 15, 12), (5, 5), (2, 2), (2, 2, 2, 2), (1, 1), 5 * (5 * 19 + 5 * 8)),
    "3x4 by 2 and 3": ((1, 9, 20, 12), (3, 4), (1, 1), (2, 4, 2, 5), (2, 3), 9 * (3 * 29 + 4 * 20)),
}


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("case", SIDE_BY_SIDE)
def test_maxima_of_columns_come_first(case, dtype, kind):
    """Windows side by side share those of their columns, whatever the result is requantised to."""
    shape, (kh, kw), strides, pads, dilations, steps = SIDE_BY_SIDE[case]
    build = GraphBuilder(len(case))
    build.output(build.pool(kind, build.input(shape, dtype), (kh, kw), strides, pads, dilations=dilations))
    (pool,) = build.graph.ops
    pool.requantise = build.requantise(pool.output, 1.0, table=True)
    found = vector_steps(check(build.graph, BASE))
    assert {(k1, k0) for k1, k0, _ in found} == {(kh, 1), (1, kw)}
    assert sum(read for _, _, read in found) == steps


@pytest.mark.parametrize(
    ("kernel", "strides"), [((3, 3), (2, 2)), ((2, 2), (2, 2)), ((1, 5), (1, 1)), ((5, 1), (1, 1))]
)
def test_windows_that_share_too_little_are_read_whole(kernel, strides):
    build = GraphBuilder(1)
    build.output(build.pool("max", build.input((1, 12, 14, 20)), kernel, strides, (0, 0, 0, 0)))
    assert {(k1, k0) for k1, k0, _ in vector_steps(check(build.graph, BASE))} == {kernel}
