"""Compiled concatenations and permutations on the functional model equal the NumPy reference."""

import pytest

from compiler.pipeline import build as compile_graph
from compiler.plan.options import Options
from hw.contract.isa import Op, Segment
from hw.contract.params import preset
from tests.support.graphs import GraphBuilder, check
from tests.support.images import decoded

TINY, BASE = preset("tiny"), preset("base")
both = pytest.mark.parametrize("params", [TINY, BASE], ids=lambda p: p.name)


@both
@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_concat_of_inputs(axis, params):
    build = GraphBuilder(axis)
    shapes = [[2, 3, 5, 7] for _ in range(3)]
    for i, shape in enumerate(shapes):
        shape[axis] += i
    build.output(build.concat([build.input(tuple(s)) for s in shapes], axis))
    check(build.graph, params)


@both
@pytest.mark.parametrize("perm", [(0, 3, 1, 2), (0, 2, 1, 3), (3, 2, 1, 0), (1, 0, 2, 3)])
def test_permute(perm, params):
    build = GraphBuilder(sum(perm))
    x = build.table(build.input((2, 7, 9, 11)))
    y = build.permute(x, perm)
    build.output(build.permute(build.table(y), (2, 0, 3, 1)))
    check(build.graph, params)


def test_large_permute_passes_through_dram():
    build = GraphBuilder(6)
    build.output(build.permute(build.input((1, 50, 60, 9)), (0, 3, 2, 1)))
    check(build.graph, TINY.replace(lv2_bytes=16 * 1024))


@both
@pytest.mark.parametrize("perm", [(0, 2, 3, 1), (0, 3, 2, 1), (0, 2, 1, 3)])
def test_an_input_comes_from_dram_in_runs_in_whatever_order_it_is_wanted(perm, params):
    """Byte by byte each would be a burst."""
    build = GraphBuilder(7)
    build.output(build.table(build.permute(build.input((1, 3, 40, 24)), perm)))
    check(build.graph, params)
    image = compile_graph(build.graph, params, Options())[0]
    code = decoded(image.code)
    own = [insn.fields["len"] for insn in code if insn.op is Op.LD2 and insn.fields["src_seg"] == Segment.INPUTS]
    assert own and min(own) >= 24
