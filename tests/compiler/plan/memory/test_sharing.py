"""Tensors that share a buffer: concatenation and sums in place."""

import pytest

from compiler import ir
from compiler.plan.layers.lower import lower
from compiler.plan.layers.step import ModelStep
from compiler.plan.memory.sharing import BufferSharing
from hw.contract.params import KIB, preset
from tests.support.graphs import GraphBuilder, check

TINY, BASE = preset("tiny"), preset("base")
both = pytest.mark.parametrize("params", [TINY, BASE], ids=lambda p: p.name)


@both
def test_concat_in_place(params):
    """Producers of many kinds write into the concatenation, consumers read parts of it with gaps."""
    build = GraphBuilder(5)
    x = build.conv(build.input((1, 9, 9, 6)), 11)
    a = build.conv(x, 13, (1, 1))
    b = build.pool("max", x, (3, 3), (1, 1), (1, 1, 1, 1))
    c = build.table(a)
    d = build.pool("avg", x, (3, 3), (1, 1), (1, 1, 1, 1))
    e = build.eltwise("add", a, c)
    joined = build.concat([a, b, c, d, e, x], 3)
    build.output(build.conv(joined, 9, (3, 3), (2, 2)))
    build.output(build.eltwise("mul", a, e))
    for observe in (False, True):
        check(build.graph, params, observe)


def test_who_looks_at_a_sum_sees_its_operand_too():
    """The sum would take the place of its operand, which lies in DRAM because it does not fit on chip."""
    build = GraphBuilder(6)
    x = build.conv(build.input((1, 24, 24, 8)), 48, (1, 1))
    x = build.eltwise("add", build.conv(x, 48, (1, 1)), x)
    build.output(build.conv(x, 8, (1, 1)))
    for observe in (False, True):
        check(build.graph, TINY.replace(lv2_bytes=32 * KIB), observe)


@both
def test_a_slice_of_a_tensor_under_another_shape_is_read_in_place(params):
    """As of the columns of a pixel whose channels are shuffled."""
    build = GraphBuilder(7)
    wide = build.reshape(build.conv(build.input((1, 5, 6, 8)), 24, (1, 1)), (1, 5, 12, 12))
    part = build.tensor((1, 5, 12, 7))
    build.graph.ops.append(ir.Slice(part, [wide], part, axis=3, first=4))
    build.output(build.conv(part, 9, (1, 2), (1, 2)))
    steps = [ModelStep.alone(layer) for layer in lower(build.graph, params)]
    assert BufferSharing(build.graph, steps, params).inside == {part: (wide, (0, 0, 4))}
    for observe in (False, True):
        check(build.graph, params, observe)
