"""How engines share the layers of a region: never so that one sees what another makes."""

import itertools

import pytest

from compiler.plan.layers.lower import lower
from compiler.plan.layers.region_share import Share, first_row, region_shares
from hw.contract.params import preset
from tests.support.graphs import GraphBuilder

ANY, CHANNELS, ROWS, MATRICES = Share


@pytest.fixture(scope="module")
def layers():
    """One of each kind by name."""
    make = GraphBuilder(1)
    x = make.conv(make.input((1, 8, 8, 64)), 64, (1, 1))
    make.conv(x, 64)
    make.conv(x, 64, (1, 1), strides=(2, 2))
    make.conv(x, 64, groups=64)
    make.pool("max", x, (3, 3), (1, 1), (1, 1, 1, 1))
    make.conv(x, 64, groups=8)
    make.conv(x, 32, groups=8)
    make.eltwise("mul", x, make.input((1, 1, 1, 64)))
    make.eltwise("mul", x, make.input((1, 1, 1, 1)))
    make.conv(x, 64, (1, 3), pads=(0, 1, 0, 1))
    make.conv(x, 64, (1, 2), strides=(1, 2))
    make.conv(x, 64, (3, 1), pads=(1, 0, 1, 0))
    make.conv(x, 64, (1, 1), strides=(2, 1))
    make.output(make.eltwise("add", x, x))
    names = ["flat", "kernel", "strided", "depthwise", "pool", "packed", "narrowing", "scaled", "times"]
    names += ["row", "halved_row", "column", "every_second_row", "sum"]
    return dict(zip(names, lower(make.graph, preset("base")), strict=True))


CASES = [
    ("kernel pool", [(0, 1)], [CHANNELS, CHANNELS]),
    ("kernel packed", [(0, 1)], [CHANNELS, CHANNELS]),
    ("kernel narrowing", [(0, 1)], None),  # packed too, but its engines read channels that another makes
    ("kernel flat", [(0, 1)], [ROWS, ROWS]),
    ("depthwise flat flat", [(0, 1), (1, 2)], [ROWS] * 3),
    ("kernel pool flat", [(0, 1), (1, 2)], None),  # the pool sees rows that another engine makes
    ("flat kernel", [(0, 1)], None),
    ("flat strided", [(0, 1)], None),
    ("flat row halved_row flat", [(0, 1), (1, 2), (2, 3)], [ROWS] * 4),
    ("kernel row sum", [(0, 1), (1, 2)], [ROWS] * 3),
    ("flat column", [(0, 1)], None),
    ("flat every_second_row", [(0, 1)], None),
    ("kernel pool", [], [ANY, ANY]),
    ("flat sum", [(0, 1)], [ANY, ANY]),
    ("flat scaled", [(0, 1)], [CHANNELS, CHANNELS]),
    ("flat scaled flat", [(0, 1), (1, 2)], None),  # the last sees channels that another engine scales
    ("flat times", [(0, 1)], None),
    ("flat kernel sum", [(0, 2), (1, 2)], [CHANNELS] * 3),
    ("flat sum pool", [(0, 1), (1, 2)], [CHANNELS] * 3),
    ("kernel depthwise sum flat", [(0, 2), (1, 2), (2, 3)], [ROWS] * 4),
    ("kernel sum pool flat", [(0, 1), (1, 2), (1, 3)], None),
]


@pytest.mark.parametrize(("kinds", "edges", "shares"), CASES)
def test_shares(layers, kinds, edges, shares):
    members = [layers[kind] for kind in kinds.split()]
    for order in itertools.permutations(edges):
        assert region_shares(members, order) == shares


def test_a_concatenation_in_place_only_passes_on(layers):
    members = [layers["flat"], layers["strided"], layers["flat"]]
    assert region_shares(members, [(0, 1), (1, 2)]) is None
    assert region_shares(members, [(0, 1), (1, 2)], idle=[1]) == [ROWS] * 3


def test_all_rows_have_one_engine():
    for height, engines in itertools.product(range(1, 30), range(1, 9)):
        bounds = [first_row(height, engine, engines) for engine in range(engines + 1)]
        assert bounds[0] == 0 and bounds[-1] == height and bounds == sorted(bounds)
