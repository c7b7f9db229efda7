"""Sums inside convolutions give the reference's results."""

import numpy as np
import pytest

from compiler.pipeline import build
from compiler.plan.layers.fuse import fuse
from compiler.plan.layers.lower import lower
from compiler.plan.options import Options
from hw.contract.isa import INSN_BYTES, Op
from hw.contract.params import preset
from tests.support.graphs import GraphBuilder, check, residual_block

BASE = preset("base")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("lv2", [32 * 1024, BASE.lv2_bytes])
def test_residual_block(seed, lv2):
    params = BASE if lv2 == BASE.lv2_bytes else preset("tiny").replace(lv2_bytes=lv2)
    make = residual_block(seed)
    kinds = [layer.kind for layer in check(make.graph, params, engines=params.engines).meta.layers]
    assert "+".join(kinds).count("conv+add") == 1 and "add" not in kinds  # in a region or by itself


def test_an_observer_sees_the_sum_and_its_operands():
    make = residual_block(0)
    image, _ = build(make.graph, BASE, Options(observe=True))
    assert "add" in [layer.kind for layer in image.meta.layers]
    check(make.graph, BASE, observe=True)


def test_a_result_with_two_readers_is_not_fused():
    make = GraphBuilder(1)
    x = make.input((1, 6, 6, 8))
    a, b = make.conv(x, 8, (1, 1)), make.table(x)
    make.output(make.eltwise("add", a, b))
    make.output(make.conv(a, 8, (1, 1)))
    assert all(layer.kind != "conv+add" for layer in fuse(make.graph, lower(make.graph, BASE)))


@pytest.mark.parametrize("images", [1, 2])
def test_a_sum_with_a_pixel_for_each_image_is_not_fused(images):
    make = GraphBuilder(6)
    x = make.conv(make.input((images, 5, 5, 8)), 24, (1, 1))
    make.output(make.eltwise("add", x, make.input((images, 1, 1, 24))))
    kinds = [layer.kind for layer in check(make.graph, BASE, engines=2).meta.layers]
    assert ("conv+add" in kinds) == (images == 1), kinds


@pytest.mark.parametrize("table", [False, True])
@pytest.mark.parametrize("groups", [1, 40])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_a_constant_pixel_comes_with_the_parameters(dtype, groups, table):
    """The body loads nothing from DRAM for it: loads of a body wait for those of prologues."""
    make = GraphBuilder(7)
    x = make.conv(make.input((1, 9, 9, 24)), 40, (1, 1))
    info = np.iinfo(dtype)
    pixel = make.rng.integers(info.min, info.max + 1, (1, 1, 1, 40)).astype(dtype)
    y = make.eltwise("add", make.conv(x, 40, (3, 3), groups=groups), make.tensor((1, 1, 1, 40), dtype, pixel))
    make.output(make.table(y) if table else y)
    for params, engines in ((BASE, 1), (BASE, 2), (preset("tiny"), 1)):
        image = check(make.graph, params, engines=engines, regions=False)
        layers = [layer.kind for layer in image.meta.layers]
        assert layers[-1].endswith("+add" + "+table" * table)
        for job in image.meta.jobs:
            if job.layer == len(layers) - 1:
                ops = image.code[job.body_pc * INSN_BYTES :: INSN_BYTES]
                assert Op.LD2 not in ops[: ops.index(Op.END)]


def test_layers_with_different_constants_share_an_object():
    make = GraphBuilder(8)
    x = make.conv(make.input((1, 4, 4, 32)), 32, (1, 1))
    for _ in range(4):
        pixel = make.rng.integers(-128, 128, (1, 1, 1, 32)).astype(np.int8)
        x = make.eltwise("add", make.conv(x, 32, (1, 1)), make.tensor((1, 1, 1, 32), "int8", pixel))
    make.output(x)
    check(make.graph, BASE, engines=2, regions=False)
