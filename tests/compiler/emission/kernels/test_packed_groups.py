"""Grouped convolutions whose groups are packed: exact and free of races, and as fast as their multiplications."""

from typing import Any

import pytest

from compiler import ir
from compiler.pipeline import build
from compiler.plan.options import Options
from hw.contract.isa import Insn, Lv0Space, Lv0View, MacMode, Op
from hw.contract.params import PRESETS, preset
from hw.image.image import Image
from tests.support.graphs import GraphBuilder, check
from tests.support.images import decoded

TINY, BASE = preset("tiny"), preset("base")
SAME = (1, 1, 1, 1)

CASES: dict[str, dict[str, Any]] = {
    "groups of 2": dict(shape=(1, 9, 7, 40), outs=40, groups=20, pads=SAME),
    "groups of 4": dict(shape=(2, 8, 9, 44), outs=44, groups=11, pads=SAME, dtype="uint8"),
    "groups of 8": dict(shape=(1, 11, 10, 104), outs=104, groups=13, pads=SAME, weight_dtype="uint8"),
    "groups of 16": dict(shape=(1, 7, 9, 48), outs=48, groups=3, pads=SAME, table=True),
    "groups of 24": dict(shape=(1, 6, 5, 72), outs=72, groups=3, pads=SAME),
    "twice the outputs": dict(shape=(1, 7, 7, 24), outs=48, groups=6, pads=SAME),
    "half the outputs": dict(shape=(1, 7, 7, 96), outs=48, groups=12, pads=SAME),
    "of one channel": dict(shape=(1, 7, 6, 20), outs=40, groups=20, pads=SAME),
    "strided": dict(shape=(1, 13, 11, 72), outs=72, groups=9, strides=(2, 2), pads=(1, 1, 0, 1)),
    "strided pairs": dict(shape=(1, 13, 11, 48), outs=48, groups=3, strides=(2, 3), pads=(1, 0, 1, 1)),
    "dilated": dict(shape=(1, 12, 13, 40), outs=40, groups=10, dilations=(2, 3), pads=(2, 3, 2, 3)),
    "5x5": dict(shape=(1, 9, 9, 36), outs=36, groups=9, kernel=(5, 5), pads=(2, 2, 2, 2), table=True),
    "1x1": dict(shape=(1, 5, 9, 56), outs=56, groups=7, kernel=(1, 1)),
    "many groups": dict(shape=(1, 4, 4, 440), outs=440, groups=55, pads=SAME),
}  # fmt: skip


def graph_of(case: str, seed: int) -> ir.Graph:
    """The case between two 1x1 convolutions, so that its tensors lie in LV2."""
    options, build = dict(CASES[case]), GraphBuilder(seed)
    shape = options.pop("shape")
    x = build.conv(build.input((*shape[:3], 5)), shape[3], (1, 1), dtype=str(options.get("dtype", "int8")))
    build.output(build.conv(build.conv(x, **options), 9, (1, 1)))
    return build.graph


@pytest.mark.parametrize("params", [TINY, BASE], ids=lambda p: p.name)
@pytest.mark.parametrize("case", CASES)
def test_packed_convolution(case, params):
    check(graph_of(case, len(case)), params, engines=params.engines)


@pytest.mark.parametrize("preset_name", ["ecp5", "cluster64"])
@pytest.mark.parametrize("case", ["groups of 8", "groups of 16", "strided"])
def test_other_presets(case, preset_name):
    params = preset(preset_name)
    check(graph_of(case, 3), params, engines=params.engines)


@pytest.mark.parametrize("case", ["groups of 4", "groups of 8", "groups of 16", "strided pairs"])
def test_from_and_to_dram(case):
    options, build = dict(CASES[case]), GraphBuilder(8)
    x = build.input(options.pop("shape"), str(options.get("dtype", "int8")))
    build.output(build.conv(x, **options))
    for params in (TINY, BASE):
        check(build.graph, params, engines=params.engines)


def block(seed: int, group: int, channels: int, height: int = 9) -> ir.Graph:
    """A residual block around a packed convolution; behind it another, with a sum and a table of its own."""
    make = GraphBuilder(seed)
    x = make.conv(make.input((1, height, 11, 6)), channels, (1, 1))
    y = make.conv(make.conv(x, channels, (1, 1), table=True), channels, pads=SAME, groups=channels // group)
    x = make.eltwise("add", make.conv(y, channels, (1, 1)), x)
    y = make.conv(x, channels, pads=SAME, groups=channels // group)
    make.output(make.table(make.eltwise("add", y, x)))
    return make.graph


@pytest.mark.parametrize(("group", "channels"), [(2, 20), (4, 52), (8, 72), (16, 80)])
@pytest.mark.parametrize("params", [TINY, BASE], ids=lambda p: p.name)
def test_sums_and_tables_behind(group, channels, params):
    image = check(block(group, group, channels), params, engines=params.engines)
    assert any("conv+add" in layer.kind for layer in image.meta.layers)


@pytest.mark.parametrize("group", [4, 8])
def test_packed_convolutions_join_regions(monkeypatch, group):
    """Engines that share channels read no channel that another makes, so the convolution may follow others."""
    monkeypatch.setattr("compiler.plan.regions.region_rules.LAYER_TO_LOAD", 4000.0)
    make = GraphBuilder(group)
    x = make.conv(make.input((1, 17, 15, 8)), 96, (1, 1))
    y = make.conv(make.pool("max", x, (3, 3), (1, 1), SAME), 96, pads=SAME, groups=96 // group)
    make.output(make.conv(make.pool("max", y, (3, 3), (2, 2), SAME), 96, groups=96 // group))
    image = check(make.graph, BASE, engines=2)
    kinds = [layer.kind for layer in image.meta.layers]
    assert any("maxpool+conv" in kind for kind in kinds), kinds


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_groups_as_deep_as_an_array_take_a_block_for_each_element_of_the_kernel(name):
    params = preset(name)
    make, channels = GraphBuilder(2), 2 * params.out_channels
    make.output(make.conv(make.input((1, 8, 8, channels)), channels, pads=SAME, groups=channels // params.rows))
    image, _ = build(make.graph, params, Options())
    insns = _insns(image)
    macs = [insn.fields for insn in insns if insn.op is Op.MAC]
    assert all(fields.get("mode", 0) == MacMode.DENSE for fields in macs)
    loops = sum(_product(fields, "n2", "n1", "n0") * _product(fields, "p1", "p0") for fields in macs)
    assert loops == 2 * 9 * 8 * 8, "two tiles of channels, nine elements of the kernel, 64 pixels"
    loads = [i.fields for i in insns if i.op is Op.LD0 and i.fields.get("space", 0) == Lv0Space.ACT]
    assert loads and all(fields["view"] == Lv0View.INTERLEAVED for fields in loads)


def _insns(image: Image) -> list[Insn]:
    return decoded(image.code)


def _product(fields: dict[str, int], *names: str) -> int:
    total = 1
    for name in names:
        total *= fields.get(name, 1)
    return total
