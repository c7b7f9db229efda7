"""A convolution and depthwise ones in groups of channels: the same bytes and multiplications, and nothing copied."""

import random

import numpy as np
import pytest

from compiler import ir, reference
from compiler.plan.layers.lower import lower
from compiler.plan.layers.origin import is_in_place
from compiler.plan.options import Options
from compiler.plan.order.dimensions import CHANNELS
from compiler.plan.plan import ImageCut
from compiler.plan.split.channels import can_be_cut_by_channels, channel_groups
from compiler.plan.split.choose import cuts_that_pay
from compiler.plan.split.parts import cut
from hw.contract.params import KIB, preset
from tests.support.graphs import GraphBuilder, check, random_inputs

TINY, BASE = preset("tiny"), preset("base")
TWO = TINY.replace(name="two", engines=2)


def expanded(seed: int) -> ir.Graph:
    """A convolution, one or two depthwise ones and a convolution behind them."""
    draw, make = random.Random(seed), GraphBuilder(seed)
    kernel, channels = draw.choice([3, 5]), draw.randint(33, 80)
    pads = (kernel // 2,) * 4
    x = make.conv(make.input((1, draw.randint(8, 14), draw.randint(8, 14), draw.randint(3, 20))), channels, (1, 1))
    for _ in range(draw.randint(1, 2)):
        x = make.conv(x, channels, (kernel, kernel), draw.choice([(1, 1), (2, 2)]), pads, groups=channels)
    make.output(make.conv(x, 24, (1, 1)))
    return make.graph


def in_groups(graph: ir.Graph, pieces: int) -> ir.Graph:
    assert can_be_cut_by_channels(graph, graph.ops[:-1])
    split = cut(graph, ImageCut(frozenset(op.name for op in graph.ops[:-1]), CHANNELS, pieces))
    assert split is not None
    return split


@pytest.mark.parametrize("seed", range(12))
def test_the_same_bytes(seed):
    graph = expanded(seed)
    split, inputs = in_groups(graph, 2 + seed % 2), random_inputs(graph, seed)
    for name, value in reference.run(graph, inputs).items():
        np.testing.assert_array_equal(reference.run(split, inputs)[name], value)
    macs = [sum(layer.macs(one) for layer in lower(one, TINY)) for one in (graph, split)]
    assert macs[0] == macs[1]
    assert all(is_in_place(split, op) for op in split.ops if isinstance(op, ir.Concat))


@pytest.mark.parametrize("seed", [0, 1])
def test_compiled(seed):
    for engines in (1, 2):
        check(in_groups(expanded(seed), 2), TWO, engines=engines)


def test_groups_are_whole_units():
    assert channel_groups(72, 2) == [(0, 48), (48, 72)]


def test_what_mixes_channels_is_not_cut_so():
    graph = expanded(1)
    assert not can_be_cut_by_channels(graph, graph.ops) and not can_be_cut_by_channels(graph, graph.ops[1:])
    make = GraphBuilder(1)
    x = make.conv(make.conv(make.input((1, 8, 8, 8)), 96, (1, 1)), 48, groups=48)  # each channel of two
    make.output(x)
    assert not can_be_cut_by_channels(make.graph, make.graph.ops)


def test_it_is_chosen_where_it_pays():
    """Rows of small images under wide kernels are computed twice; channels are not."""
    make = GraphBuilder(3)
    x = make.conv(make.input((1, 14, 14, 8)), 96, pads=(1,) * 4)
    x = make.conv(make.conv(x, 576, (1, 1)), 576, pads=(1,) * 4, groups=576)
    make.output(make.conv(x, 96, (1, 1)))
    cuts = cuts_that_pay(make.graph, BASE.replace(lv2_bytes=256 * KIB), Options(engines=2))
    assert [one.dimension for one in cuts] == [CHANNELS]
