"""Channel tiles with few outputs: parts of the pixels side by side are exact, free of races, and take fewer cycles."""

import math
from typing import Any

import pytest

from compiler import ir
from compiler.pipeline import build
from compiler.plan.layers.layer import ConvLayer
from compiler.plan.layers.lower import lower
from compiler.plan.layers.narrow_tiles import imbalance_of_tiles, pixel_parts
from compiler.plan.options import Options
from compiler.plan.regions.units import MAC, layer_times
from hw.contract.params import preset
from tests.support.check.preemption import check_points
from tests.support.graphs import GraphBuilder, check, random_inputs

BASE, ECP5 = preset("base"), preset("ecp5")
QUARTERS = BASE.replace(vec_lanes=8, name="quarters")  #: four sets of PEs, one of each
TINY = preset("tiny").replace(vec_lanes=4, name="halves")
SAME = (1, 1, 1, 1)

#: ``outs``: whole tiles, and the share of the lanes of a vector that the outputs of the last one fill.
CASES: dict[str, dict[str, Any]] = {
    "pointwise": dict(shape=(1, 9, 11, 24), outs=(0, 1.0), kernel=(1, 1)),
    "a narrow tile behind a wide one": dict(shape=(2, 7, 9, 40), outs=(1, 0.3), kernel=(1, 1), table=True),
    "a kernel": dict(shape=(1, 11, 13, 9), outs=(0, 0.4), pads=SAME, dtype="uint8"),
    "strided": dict(shape=(1, 13, 15, 20), outs=(0, 0.75), strides=(2, 2), pads=(1, 0, 1, 1), weight_dtype="uint8"),
    "a stem": dict(shape=(1, 31, 27, 3), outs=(0, 1.0), strides=(2, 2), pads=SAME),
    "a deep stem": dict(shape=(1, 33, 30, 3), outs=(0, 0.5), kernel=(7, 7), strides=(2, 2), pads=(3, 3, 3, 3)),
    "dilated": dict(shape=(1, 14, 15, 9), outs=(0, 0.6), pads=(2, 3, 2, 3), dilations=(2, 3)),
    "one row": dict(shape=(1, 1, 23, 16), outs=(0, 0.3), kernel=(1, 3), pads=(0, 1, 0, 1)),
    "one column": dict(shape=(1, 23, 1, 16), outs=(0, 0.3), kernel=(3, 1), pads=(1, 0, 1, 0)),
    "three rows": dict(shape=(1, 5, 30, 8), outs=(0, 0.25)),
    "one pixel": dict(shape=(1, 1, 1, 300), outs=(0, 0.6), kernel=(1, 1)),
    "deep": dict(shape=(1, 5, 5, 600), outs=(1, 0.5), pads=SAME),
}  # fmt: skip


@pytest.mark.parametrize("params", [TINY, ECP5, BASE, QUARTERS], ids=lambda p: p.name)
@pytest.mark.parametrize("case", CASES)
def test_narrow_convolution(case, params):
    options, build = dict(CASES[case]), GraphBuilder(len(case))
    x = build.input(options.pop("shape"), str(options.get("dtype", "int8")))
    whole, share = options.pop("outs")
    outs = whole * params.out_channels + math.ceil(share * params.vec_lanes)
    build.output(build.conv(build.conv(x, outs, **options), outs, (1, 1)))  # from DRAM, and between tensors in LV2
    for layer in _convolutions(build.graph, params):
        assert pixel_parts(layer, layer.tiles[-1], params) == params.vec_groups > 1
    check(build.graph, params, engines=params.engines)


def test_vectors_as_wide_as_an_engine_leave_tiles_whole():
    wide = BASE.replace(vec_lanes=32)
    build = GraphBuilder(5)
    build.output(build.conv(build.input((1, 9, 9, 12)), 16, pads=SAME))
    (layer,) = _convolutions(build.graph, wide)
    assert pixel_parts(layer, layer.tiles[0], wide) == 1 and pixel_parts(layer, layer.tiles[0], BASE) == 2
    check(build.graph, wide)


def test_a_tile_of_two_vectors_stays_whole():
    """A half of the outputs of an engine, but not of a vector: its groups do not follow each other at one distance."""
    build = GraphBuilder(6)
    build.output(build.conv(build.input((1, 9, 9, 12)), 12, pads=SAME))
    (layer,) = _convolutions(build.graph, QUARTERS)
    assert pixel_parts(layer, layer.tiles[0], QUARTERS) == 1
    check(build.graph, QUARTERS)


def block(seed: int, channels: int, height: int = 11) -> ir.Graph:
    """Narrow convolutions with a sum of tensors, a table behind the sum, and a sum with a constant row."""
    make = GraphBuilder(seed)
    x = make.conv(make.input((1, height, 13, 6)), channels, (1, 1))
    y = make.conv(make.conv(x, channels, pads=SAME, table=True), channels, pads=SAME)
    x = make.table(make.eltwise("add", y, x))
    row = make.tensor((1, 1, 1, channels), data=make.rng.integers(-128, 128, (1, 1, 1, channels)).astype("int8"))
    make.output(make.eltwise("add", make.conv(x, channels, (1, 1)), row))
    return make.graph


@pytest.mark.parametrize("channels", [5, 16, 48])
@pytest.mark.parametrize("params", [TINY, BASE], ids=lambda p: p.name)
def test_sums_and_tables_behind(channels, params):
    image = check(block(channels, channels), params, engines=params.engines)
    kinds = [layer.kind for layer in image.meta.layers]
    assert any("conv+add+table" in kind for kind in kinds) and any(kind.endswith("conv+add") for kind in kinds), kinds


@pytest.mark.parametrize(("params", "interval"), [(TINY, 150), (BASE, 100)], ids=["halves", "base"])
def test_points_inside(params, interval):
    """What the parts have made so far survives a stop at any point."""
    graph = block(3, 16 if params is BASE else 4, 15)
    image, _ = build(graph, params, Options(cancel_interval=interval))
    inside = {point.job for point in image.meta.cancel_points}
    assert any(image.meta.layers[image.meta.jobs[job].layer].kind.startswith("conv") for job in inside)
    check_points(image, random_inputs(graph, 1))


@pytest.mark.parametrize(("outs", "tiles"), [(16, 0.5), (48, 1.5), (80, 2.5), (64, 2.0), (40, 1.5)])
def test_prices_and_code_take_half_as_long_for_a_narrow_tile(outs, tiles):
    make = GraphBuilder(1)
    x = make.table(make.input((1, 28, 28, 64)))
    make.output(make.pool("max", make.conv(x, outs, pads=SAME), (2, 2), (1, 1)))
    layer, bound = _convolutions(make.graph, BASE)[0], tiles * 28 * 28 * 9 * 8
    assert layer_times(make.graph, layer, BASE, 1).busy[MAC] == bound
    image, _ = build(make.graph, BASE, Options(engines=1, regions=False))
    assert bound <= image.meta.layers[1].estimated_compute <= 1.1 * bound


def test_engines_that_share_channels_have_tiles_of_unequal_length():
    make = GraphBuilder(1)
    make.output(make.conv(make.input((1, 6, 6, 64)), 80, (1, 1)))
    (layer,) = _convolutions(make.graph, BASE)
    assert [tile.outs for tile in layer.tiles] == [32, 32, 16]
    assert imbalance_of_tiles(layer, BASE, 2) == pytest.approx(1.5 * 2 / 2.5)


def _convolutions(graph: ir.Graph, params) -> list[ConvLayer]:
    return [layer for layer in lower(graph, params) if isinstance(layer, ConvLayer)]
