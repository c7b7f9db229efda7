"""Placed models have regions and an order: layers of one step run side by side on one engine, beside others."""

import networkx as nx
import pytest

from compiler.emission.objects.desk import Desk
from compiler.pipeline import build, emit
from compiler.plan.options import Options
from compiler.plan.order.dimensions import HEIGHT
from compiler.plan.plan import ImageCut
from compiler.plan.regions.placed_regions import LayerGrouping
from compiler.plan.split.parts import cut
from hw.contract.params import preset
from hw.image.image import Image
from tests.support.graphs import GraphBuilder
from tests.support.placed import branchy, check_placed, compiled

BASE, TINY = preset("base"), preset("tiny")


def convolution_and_pool(seed: int = 1, branches: int = 2, size: int = 24):
    """Branches of a convolution, which keeps the arrays busy, and a maximum behind it, which does the vector unit."""
    make = GraphBuilder(seed)
    x = make.conv(make.input((1, size, size, 8)), 32, (1, 1))
    ends = [make.pool("max", make.conv(x, 32, pads=(1,) * 4), (3, 3), (1, 1), (1,) * 4) for _ in range(branches)]
    make.output(make.conv(make.concat(ends, 3), 8, (1, 1)))
    return make.graph


def busy(image: Image) -> int:
    return sum(layer.estimated_compute for layer in image.meta.layers)


def test_a_maximum_joins_the_convolution_before_it_on_its_engine():
    graph = convolution_and_pool()
    image = check_placed(graph, BASE, 3, split=False)
    names = [layer.name for layer in image.meta.layers]
    assert sum(" + " in name for name in names) >= 2
    apart = compiled(graph, BASE, split=False, regions=False)
    assert not any(" + " in layer.name for layer in apart.meta.layers)
    assert busy(image) < 0.9 * busy(apart)


def test_branches_stay_apart():
    """One region of both would leave the other engine idle."""
    image = compiled(convolution_and_pool(), BASE, split=False)
    jobs = image.meta.jobs
    middle = [job for job in jobs if " + " in image.meta.layers[job.layer].name]
    assert len({job.layer for job in middle}) == 2 and middle[0].after == middle[1].after


def test_what_waits_for_a_region_waits_for_all_of_its_job():
    image = compiled(convolution_and_pool(), BASE, split=False)
    regions = {i for i, job in enumerate(image.meta.jobs) if " + " in image.meta.layers[job.layer].name}
    behind = [job for job in image.meta.jobs if regions & {*job.after}]
    assert behind and all(regions <= {*job.after} for job in behind)


def test_a_plan_gives_the_regions_again():
    graph = convolution_and_pool()
    image, plan = build(graph, BASE, Options(engines=2, placed=True))
    assert any(len(step.layers) > 1 for step in plan.steps)
    with Desk(1) as desk:
        assert emit(plan, graph, desk).to_bytes() == image.to_bytes()


def test_the_search_is_reproducible_and_the_source_order_is_that_of_list_scheduling():
    graph = branchy(3)
    for options in (Options(engines=2, placed=True), Options(engines=2, placed=True, order="source")):
        first, again = (build(graph, TINY.replace(engines=2), options)[0].to_bytes() for _ in range(2))
        assert first == again


def test_pieces_of_one_tensor_on_several_engines_are_exact():
    """Convolutions in a chain are cut, so that engines compute rows of each side by side."""
    make = GraphBuilder(5)
    x = make.input((1, 20, 20, 8))
    for _ in range(3):
        x = make.conv(x, 32, pads=(1,) * 4)
    make.output(x)
    image = check_placed(make.graph, BASE, 4)
    assert any("/part1" in layer.name for layer in image.meta.layers)
    whole = compiled(make.graph, BASE, split=False)
    assert max(layer.estimated_compute for layer in image.meta.layers) < max(
        layer.estimated_compute for layer in whole.meta.layers
    )


def test_a_concatenation_of_concatenations_is_in_place():
    """The parts of a run that ends in a concatenation are joined, and nothing is copied for either."""
    make = GraphBuilder(6)
    x = make.conv(make.input((1, 24, 24, 8)), 32, (1, 1))
    x = make.concat([make.conv(x, 32, (1, 1)), make.conv(x, 32, pads=(1,) * 4)], 3)
    make.output(make.conv(x, 8, (1, 1)))
    run = frozenset(op.name for op in make.graph.ops[1:4])
    graph = cut(make.graph, ImageCut(run, HEIGHT, 2))
    assert graph is not None
    image = check_placed(graph, BASE, 3, split=False, regions=False)
    joins = {number for number, layer in enumerate(image.meta.layers) if "concat" in layer.kind}
    assert len(joins) == 3 and not {job.layer for job in image.meta.jobs} & joins


# -- joining steps ------------------------------------------------------------------------------------------------
def cycles_of(alone, gain):
    """A step of several layers takes ``gain`` less than its layers."""
    return lambda members: sum(alone[layer] for layer in members) - gain * (sum(alone[n] > 0 for n in members) - 1)


def test_a_chain_becomes_one_step_and_two_chains_do_not():
    chain = LayerGrouping(3, {(0, 1), (1, 2)}, cycles_of([10, 10, 10], 4), 2)
    chain.merge(8, lambda: False)
    assert chain.steps == [(0, 1, 2)]
    two = LayerGrouping(4, {(0, 1), (2, 3)}, cycles_of([10, 10, 10, 10], 4), 2)
    two.merge(8, lambda: False)
    assert sorted(two.steps) == [(0, 1), (2, 3)]


def test_what_lies_between_comes_along_and_no_circle_is_made():
    """0 → 1 → 2 where 1 has no work; 0 → 3 → 2: without 3, a step of 0, 1 and 2 would wait for itself."""
    grouping = LayerGrouping(4, {(0, 1), (1, 2), (0, 3), (3, 2)}, cycles_of([10, 0, 10, 1], 4), 2)
    grouping.merge(8, lambda: False)
    assert nx.is_directed_acyclic_graph(grouping.flow())
    assert (0, 1, 2) not in grouping.steps
    grouping.dissolve(grouping.steps[-1])
    assert sorted(layer for step in grouping.steps for layer in step) == [0, 1, 2, 3]


def test_a_step_has_no_more_layers_than_it_may():
    grouping = LayerGrouping(6, {(i, i + 1) for i in range(5)}, cycles_of([10] * 6, 4), 2)
    grouping.merge(3, lambda: False)
    assert 1 < max(map(len, grouping.steps)) <= 3
    whole = LayerGrouping(6, {(i, i + 1) for i in range(5)}, cycles_of([10] * 6, 4), 2)
    whole.merge(8, lambda: True)
    assert len(whole.steps) == 6


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 230))
def test_many_random_graphs_on_base(seed):
    print("seed", seed)
    check_placed(branchy(seed, 14), BASE.replace(engines=2 + seed % 3), 4)
