"""Layers whose results are not needed yet wait."""

from compiler.plan.layers.fuse import fuse
from compiler.plan.layers.lower import lower
from compiler.plan.regions.defer import defer
from hw.contract.params import preset
from tests.support.graphs import residual_block

BASE = preset("base")


def test_a_large_shortcut_waits_for_its_reader():
    make = residual_block(2)
    layers = fuse(make.graph, lower(make.graph, BASE))
    names = [layer.name for layer in layers]
    ordered = [layer.name for layer in defer(make.graph, layers)]
    assert names.index("t2") == 1 and ordered.index("t2") > 1
