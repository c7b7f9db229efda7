"""Permutations that follow each other become one."""

import numpy as np
import pytest

from compiler import ir, reference
from compiler.frontend.importer import merge_permutes
from tests.support.graphs import GraphBuilder, random_inputs


def shuffle(groups: int, channels: int) -> ir.Graph:
    """A channel shuffle as the importer sees it: to channels first, joined, and back."""
    make = GraphBuilder(1)
    x = make.reshape(make.input((1, 5, 6, groups * channels)), (1, 5, 6, groups, channels))
    first = make.permute(x, (0, 4, 3, 1, 2))
    make.output(make.permute(make.reshape(first, (1, groups * channels, 5, 6)), (0, 2, 3, 1)))
    return make.graph


def permutes(graph: ir.Graph) -> list[ir.Permute]:
    needed = {graph.outputs[0].tensor}
    found = []
    for op in reversed(graph.ops):
        if op.output in needed:
            needed.update(op.inputs)
            found += [op] if isinstance(op, ir.Permute) else []
    return found


@pytest.mark.parametrize(("groups", "channels"), [(2, 3), (4, 12), (1, 7), (5, 1)])
def test_a_shuffle_of_channels_is_one_permutation(groups, channels):
    graph, name = shuffle(groups, channels), "t4"
    values = random_inputs(graph, 3)
    before = reference.run_all(graph, values)[name]
    assert len(permutes(graph)) == 2
    merge_permutes(graph)
    assert len(permutes(graph)) == 1
    assert np.array_equal(reference.run_all(graph, values)[name], before)


def test_a_reshape_that_splits_an_axis_keeps_them_apart():
    make = GraphBuilder(1)
    first = make.permute(make.input((1, 4, 6, 3)), (0, 3, 1, 2))
    make.output(make.permute(make.reshape(first, (1, 3, 2, 2, 6)), (0, 2, 1, 3, 4)))
    merge_permutes(make.graph)
    assert len(permutes(make.graph)) == 2
