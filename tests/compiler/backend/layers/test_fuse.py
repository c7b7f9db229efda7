"""Sums inside convolutions give the reference's results."""

import pytest

from compiler.backend.layers.fuse import fuse
from compiler.backend.layers.lower import lower
from compiler.backend.options import Options
from compiler.backend.pipeline import build
from hw.contract.params import preset
from tests.support.graphs import GraphBuilder, check, residual_block

BASE = preset("base")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("lv2", [32 * 1024, BASE.lv2_bytes])
def test_residual_block(seed, lv2):
    params = BASE if lv2 == BASE.lv2_bytes else preset("tiny").replace(lv2_bytes=lv2)
    make = residual_block(seed)
    kinds = [layer.kind for layer in check(make.graph, params, engines=params.engines).meta.layers]
    assert kinds.count("conv+add") == 1 and "add" not in kinds


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
