"""Placed models: layers of one network on any engines, in any order that their edges allow."""

from itertools import combinations

import numpy as np
import pytest

from compiler.ir import CompileError
from compiler.pipeline import build
from compiler.plan.layers.fuse import fuse
from compiler.plan.layers.layer import EltwiseLayer
from compiler.plan.layers.lower import lower
from compiler.plan.layers.step import ModelStep
from compiler.plan.options import Options
from compiler.plan.regions.layer_order import Chain, Edges
from compiler.plan.regions.side_by_side import side_by_side
from hw.contract.params import KIB, preset
from hw.image.image import ImageError
from tests.support.graphs import GraphBuilder, check
from tests.support.placed import branchy, check_placed, compiled, two_branches
from tests.support.sampled import sampled

TINY = preset("tiny")
TWO, FOUR = TINY.replace(engines=2), TINY.replace(engines=4)


def buffer(*users):
    return type("Buffer", (), {"users": frozenset(users)})()


def test_the_order_of_two_branches():
    """0 → {1 → 3, 2 → 4} → 5: what the branches use lives side by side."""
    graph = two_branches(1, depth=2)
    layers = side_by_side(graph, lower(graph, TWO), TWO, 2)
    edges, chain = Edges(graph, [*map(ModelStep.alone, layers)]), Chain()
    assert edges.before[0].tolist() == [False, *[True] * 5]
    assert edges.before[:, 5].tolist() == [*[True] * 5, False]
    assert not edges.before[1, 2] and not edges.before[1, 4] and edges.before[1, 3]
    first, second = buffer(1, 3), buffer(2, 4)
    assert edges.alive(second, 1) and edges.alive(first, 4) and not edges.alive(first, 0) and not edges.alive(first, 5)
    assert edges.first(first, 1) and edges.last(first, 3) and not edges.last(buffer(0, 1, 2), 2)
    assert not edges.apart(first, buffer(4, 5)) and chain.apart(buffer(1, 2), buffer(4, 5))
    assert edges.apart(buffer(0, 1), buffer(3, 5)) and not edges.apart(buffer(0, 1, 2), buffer(3, 5))
    buffers = [buffer(*users) for count in (1, 2, 3) for users in combinations(range(6), count)]
    for order in (edges, chain):  # of many at once, the same
        assert order.together(buffers).tolist() == [[not order.apart(a, b) for b in buffers] for a in buffers]


def test_branches_are_queued_in_turn():
    graph = two_branches(1, depth=3)
    layers = side_by_side(graph, lower(graph, TWO), TWO, 2)
    tensors = [layer.output for layer in layers]
    left, right = branches(graph)
    places = [[tensors.index(name) for name in branch] for branch in (left, right)]
    assert places in ([[1, 3, 5], [2, 4, 6]], [[2, 4, 6], [1, 3, 5]])


def branches(graph):
    """Tensors of the two branches, in order."""
    stem = graph.ops[0].output
    result = []
    for op in [op for op in graph.ops if op.inputs == [stem]]:
        branch = [op.output]
        while readers := [other for other in graph.ops if other.inputs == [branch[-1]]]:
            branch.append(readers[0].output)
        result.append(branch)
    return result


def test_a_sum_of_branches_is_not_fused_into_one_of_them():
    graph = two_branches(1, depth=2)
    assert len(fuse(graph, lower(graph, TWO))) == 5
    kept = fuse(graph, lower(graph, TWO), placed=True)
    assert len(kept) == 6 and isinstance(kept[-1], EltwiseLayer)


def test_a_shortcut_is_fused_as_its_other_operand_is_older_anyway():
    make = GraphBuilder(4)
    x = make.conv(make.input((1, 6, 6, 8)), 8)
    y = make.conv(make.conv(x, 8, (1, 1)), 8, (1, 1))
    make.output(make.eltwise("add", y, x))
    assert len(fuse(make.graph, lower(make.graph, TWO), placed=True)) == 3


def test_jobs_wait_for_the_layers_that_they_read():
    image = compiled(two_branches(1, depth=2), TWO, regions=False, split=False, order="source")
    jobs = image.meta.jobs
    assert [job.after for job in jobs] == [[], [0], [0], [1], [2], [3, 4]]
    assert {job.engine for job in jobs} == {0} and image.meta.parts == 2 and image.meta.events == 0


@pytest.mark.parametrize("seed", sampled(range(8), 4))
@pytest.mark.parametrize("limit", [0, 12 * KIB], ids=["all of LV2", "little of LV2"])
def test_random_graphs_in_random_orders_on_random_engines(seed, limit):
    print("seed", seed)
    params = (TWO, FOUR)[seed % 2]
    check_placed(branchy(seed), params, 3, lv2_limit=limit * params.engines)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_random_graphs(seed):
    print("seed", seed)
    params = (TWO, FOUR)[seed % 2]
    limit = int(np.random.default_rng(seed).choice([0, 12, 20])) * KIB
    check_placed(branchy(seed, 16), params, 6, lv2_limit=limit * params.engines)


def test_one_after_the_other_on_one_engine_without_races():
    """As the functional model runs any image, with the race checker."""
    check(branchy(3), TWO, engines=2)
    image, _ = build(branchy(3), TWO, Options(engines=2, placed=True))
    assert image.meta.parts == 2


def test_one_engine_is_nothing_to_choose_from():
    with pytest.raises(CompileError, match="at least two engines to choose from, not 1"):
        build(branchy(0), TINY, Options(placed=True))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda meta: meta.jobs[1].after.append(1), "not all before it"),
        (lambda meta: setattr(meta, "parts", 0), "the image is not placed"),
        (lambda meta: setattr(meta, "parts", 3), "3 parts of segment 7 for 2 engines"),
        (lambda meta: setattr(meta.jobs[0], "engine", 1), "neither engines nor events"),
    ],
)
def test_inconsistent_images_are_refused(change, message):
    image = compiled(two_branches(1, depth=2), TWO)
    change(image.meta)
    with pytest.raises(ImageError, match=message):
        image.validate("x")
