"""What packed groups are said to take: by the search for tilings, by the prices of regions, and by the code itself."""

import pytest

from compiler import ir
from compiler.pipeline import build
from compiler.plan.layers.layer import ConvLayer
from compiler.plan.layers.lower import lower
from compiler.plan.options import Options
from compiler.plan.regions.units import MAC, layer_times
from hw.contract.params import preset
from tests.support.graphs import GraphBuilder

BASE = preset("base")


def between(size: int, channels: int, group: int) -> ir.Graph:
    """A grouped 3x3 convolution whose tensors lie in LV2."""
    make = GraphBuilder(0)
    x = make.table(make.input((1, size, size, channels)))
    y = make.conv(x, channels, pads=(1, 1, 1, 1), groups=channels // group)
    make.output(make.pool("max", y, (2, 2), (1, 1)))
    return make.graph


#: Size, channels, channels of a group, and the elements of all groups that a row of the array multiplies by zero for
#: each that it needs.
CASES = [(56, 64, 8, 1), (28, 128, 8, 1), (28, 128, 4, 2), (28, 128, 2, 4), (14, 256, 16, 1), (14, 192, 24, 1)]


@pytest.mark.parametrize(("size", "channels", "group", "idle"), CASES)
def test_prices_and_estimates_are_near_the_macs_that_rows_of_a_group_can_do(size, channels, group, idle):
    graph = between(size, channels, group)
    image, _ = build(graph, BASE, Options(regions=False))
    info = image.meta.layers[1]
    bound = info.macs * idle * BASE.engines / BASE.macs
    assert bound <= info.estimated_compute <= 1.25 * bound
    layer = lower(graph, BASE)[1]
    assert isinstance(layer, ConvLayer)
    assert layer_times(graph, layer, BASE, 1).busy[MAC] == bound
