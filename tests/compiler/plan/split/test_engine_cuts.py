"""Placed models are cut so that each engine computes a part of an image, where the queues of all engines end sooner."""

import pytest

from compiler.pipeline import build
from compiler.plan.options import Options
from compiler.plan.split.engine_cuts import cuts_for_engines
from compiler.plan.split.parts import with_cuts
from compiler.plan.split.price import queued_cycles
from hw.contract.params import preset
from tests.support.graphs import GraphBuilder
from tests.support.placed import branchy, check_placed

BASE = preset("base")
TWO = Options(engines=2, placed=True)


def chain(depth: int, size: int, channels: int = 32, kernel: int = 3):
    make = GraphBuilder(2)
    x = make.input((1, size, size, channels))
    for _ in range(depth):
        x = make.conv(x, channels, (kernel, kernel), pads=(kernel // 2,) * 4)
    make.output(x)
    return make.graph


def test_a_chain_is_cut_into_a_part_for_each_engine():
    graph = chain(3, 32)
    cuts = cuts_for_engines(graph, BASE, TWO)
    assert cuts and {one.pieces for one in cuts} == {2}
    cut = {name for one in cuts for name in one.operators}
    assert cut == {op.name for op in graph.ops}
    four = cuts_for_engines(graph, BASE.replace(engines=4), Options(engines=4, placed=True))
    assert {one.pieces for one in four} == {4}


def test_cuts_end_sooner_by_the_price():
    graph = chain(3, 32)
    cuts = cuts_for_engines(graph, BASE, TWO)
    assert queued_cycles(with_cuts(graph, cuts), BASE, TWO) < 0.65 * queued_cycles(graph, BASE, TWO)


def test_branches_that_keep_all_engines_busy_are_left_whole():
    """Two equal branches: to cut them would load all weights twice."""
    make = GraphBuilder(3)
    x = make.input((1, 12, 12, 64))
    ends = [make.conv(x, 64, pads=(1,) * 4) for _ in range(2)]
    make.output(make.concat(ends, 3))
    assert cuts_for_engines(make.graph, BASE, TWO) == []


def test_one_branch_of_two_is_cut_if_it_is_much_longer():
    make = GraphBuilder(4)
    x = make.conv(make.input((1, 28, 28, 16)), 32, (1, 1))
    short, long = make.conv(x, 32, (1, 1)), make.conv(x, 64, (5, 5), pads=(2,) * 4)
    make.output(make.conv(make.concat([short, long], 3), 16, (1, 1)))
    operators = {name for one in cuts_for_engines(make.graph, BASE, TWO) for name in one.operators}
    assert next(op.name for op in make.graph.ops if op.output == long) in operators


def test_a_single_row_and_column_is_not_cut():
    make = GraphBuilder(5)
    make.output(make.conv(make.input((1, 1, 1, 64)), 64, (1, 1)))
    assert cuts_for_engines(make.graph, BASE, TWO) == []


def test_a_maximum_is_cut_with_the_convolution_before_it():
    """The vector unit then works on one while the arrays work on the other, on each engine."""
    make = GraphBuilder(6)
    x = make.conv(make.input((1, 48, 48, 16)), 64, pads=(1,) * 4)
    make.output(make.conv(make.pool("max", x, (3, 3), (2, 2), (1,) * 4), 16, (1, 1)))
    together = [one.operators for one in cuts_for_engines(make.graph, BASE, TWO)]
    conv, pool = make.graph.ops[0].name, make.graph.ops[1].name
    assert any({conv, pool} <= operators for operators in together)
    image = check_placed(make.graph, BASE, 2)
    assert sum("part" in layer.name and " + " in layer.name for layer in image.meta.layers) >= 2


def test_cuts_are_in_the_plan_and_can_be_refused():
    graph = chain(2, 24)
    _, plan = build(graph, BASE, TWO)
    assert plan.cuts
    _, whole = build(graph, BASE, Options(engines=2, placed=True, split=False))
    assert not whole.cuts


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 12))])
def test_random_graphs_in_parts_are_exact(seed):
    print("seed", seed)
    check_placed(branchy(seed, 8, channels=24), BASE.replace(engines=2 + seed % 3), 3)
