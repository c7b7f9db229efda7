"""Permutations that follow each other become one."""

import numpy as np
import pytest

from compiler import ir, reference
from compiler.frontend.joined_permutes import merge_permutes
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
def test_a_shuffle_of_channels_is_one_permutation_or_none(groups, channels):
    graph, name = shuffle(groups, channels), "t4"
    values = random_inputs(graph, 3)
    before = reference.run_all(graph, values)[name]
    assert len(permutes(graph)) == 2
    merge_permutes(graph)
    assert len(permutes(graph)) == (0 if 1 in (groups, channels) else 1)
    assert np.array_equal(reference.run_all(graph, values)[name], before)


APART = {"split": ((1, 3, 2, 2, 6), (0, 2, 1, 3, 4), 1), "across": ((1, 2, 6, 6), (0, 2, 1, 3), 2)}


@pytest.mark.parametrize("case", APART)
def test_a_reshape_may_split_an_axis_but_not_take_from_two(case):
    shape, perm, count = APART[case]
    make = GraphBuilder(1)
    first = make.permute(make.input((1, 4, 6, 3)), (0, 3, 1, 2))
    make.output(name := make.permute(make.reshape(first, shape), perm))
    values = random_inputs(make.graph, 3)
    before = reference.run_all(make.graph, values)[name]
    merge_permutes(make.graph)
    assert len(permutes(make.graph)) == count
    assert np.array_equal(reference.run_all(make.graph, values)[name], before)


@pytest.mark.parametrize("patch", [1, 2])
def test_patches_of_an_image_are_taken_pixel_by_pixel_and_put_back(patch):
    """As an exporter writes it: four permutations there, and as many back, of which one each stays; none of patches of
    one pixel."""
    size, channels = 6, 5
    make, cut = GraphBuilder(1), size // patch
    x = make.permute(make.input((1, size, size, channels)), (0, 3, 1, 2))
    x = make.permute(make.reshape(x, (channels * cut, patch, cut, patch)), (0, 2, 1, 3))
    x = make.permute(make.reshape(x, (1, channels, cut * cut, patch * patch)), (0, 3, 2, 1))
    x = make.table(x)
    x = make.permute(make.reshape(x, (1, patch * patch, cut * cut, channels)), (0, 3, 2, 1))
    x = make.permute(make.reshape(x, (channels * cut, cut, patch, patch)), (0, 2, 1, 3))
    make.output(name := make.permute(make.reshape(x, (1, channels, size, size)), (0, 2, 3, 1)))
    values = random_inputs(make.graph, 3)
    before = reference.run_all(make.graph, values)[name]
    merge_permutes(make.graph)
    found = permutes(make.graph)
    assert len(found) == (2 if patch > 1 else 0)
    assert all(move.perm[-1] == len(move.perm) - 1 for move in found)
    assert np.array_equal(reference.run_all(make.graph, values)[name], before)
