"""Operators to layers."""

import pytest

from compiler import ir
from compiler.plan.layers.lower import lower
from hw.contract.params import preset
from tests.support.graphs import GraphBuilder


def test_an_operator_the_back_end_does_not_know_is_named():
    class Strange(ir.Operation):
        pass

    builder = GraphBuilder(0)
    x = builder.input((1, 2, 2, 2))
    builder.graph.ops.append(Strange("odd one", [x], x))
    with pytest.raises(ir.CompileError, match="operator 'odd one': the back end has no strange"):
        lower(builder.graph, preset("tiny"))
