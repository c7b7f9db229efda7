"""Sums inside convolutions, and layers that wait, give the reference's results."""

import pytest

from compiler.backend.layers.fuse import fuse
from compiler.backend.layers.lower import lower
from compiler.backend.options import Options
from compiler.backend.order.defer import defer
from compiler.backend.pipeline import build
from hw.contract.params import preset
from tests.compiler.backend.graphs import GraphBuilder, check

BASE = preset("base")


def _block(seed: int) -> GraphBuilder:
    """A residual block whose shortcut is computed first."""
    make = GraphBuilder(seed)
    x = make.conv(make.input((1, 10, 9, 7)), 40, (1, 1))
    shortcut = make.conv(x, 70, (1, 1))
    y = make.conv(make.conv(x, 24, (3, 3), pads=(1, 1, 1, 1)), 70, (1, 1), table=True)
    z = make.eltwise("add", y, shortcut) if seed % 2 else make.eltwise("add", shortcut, y)
    make.output(make.conv(z, 9, (3, 3)))
    return make


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("lv2", [32 * 1024, BASE.lv2_bytes])
def test_residual_block(seed, lv2):
    params = BASE if lv2 == BASE.lv2_bytes else preset("tiny").replace(lv2_bytes=lv2)
    make = _block(seed)
    kinds = [layer.kind for layer in check(make.graph, params, engines=params.engines).meta.layers]
    assert kinds.count("conv+add") == 1 and "add" not in kinds


def test_an_observer_sees_the_sum_and_its_operands():
    make = _block(0)
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


def test_a_large_shortcut_waits_for_its_reader():
    make = _block(2)
    layers = fuse(make.graph, lower(make.graph, BASE))
    names = [layer.name for layer in layers]
    ordered = [layer.name for layer in defer(make.graph, layers)]
    assert names.index("t2") == 1 and ordered.index("t2") > 1
