"""Layers joined to regions: which, in which order, and that what comes out is exact and free of races."""

import networkx as nx
import numpy as np
import pytest

from compiler import ir
from compiler.emission.objects.desk import Desk
from compiler.ir import CompileError
from compiler.pipeline import blank, build, emit, fill, lowered, settle
from compiler.plan.layers.fuse import fuse
from compiler.plan.layers.lower import lower
from compiler.plan.layers.step import ModelStep, flattened
from compiler.plan.options import Options
from compiler.plan.order.search import SearchLimits
from compiler.plan.regions.regions import Study
from hw.contract.params import KIB, SocParams, preset
from tests.support.check.preemption import check_points
from tests.support.graphs import GraphBuilder, check, random_inputs
from tests.support.placed import branchy

TINY, BASE = preset("tiny"), preset("base")


def pooled(seed: int = 1, channels: int = 64) -> ir.Graph:
    """A convolution, and the maximum over windows of it."""
    make = GraphBuilder(seed)
    x = make.conv(make.input((1, 24, 26, 3)), 16, (1, 1))
    y = make.conv(x, channels, pads=(1, 1, 1, 1))
    make.output(make.pool("max", y, (3, 3), (2, 2), (0, 0, 1, 1)))
    return make.graph


def module(seed: int = 1) -> ir.Graph:
    """Two branches that read one tensor: a small convolution and a pool, then what is read of the pool."""
    make = GraphBuilder(seed)
    x = make.conv(make.input((1, 16, 16, 8)), 64, (1, 1))
    left = make.conv(x, 64, pads=(1, 1, 1, 1))
    right = make.conv(make.pool("max", x, (3, 3), (1, 1), (1, 1, 1, 1)), 64, (1, 1))
    make.output(make.conv(make.concat([left, right], 3), 16, (1, 1)))
    return make.graph


def regions_of(graph: ir.Graph, params: SocParams, engines: int) -> list[list[str]]:
    layers = fuse(graph, lower(graph, params))
    study = Study.of(graph, layers, params, engines)
    joined = study.joined(study.search(SearchLimits(few=200, tries=200))[0])
    assert set(flattened(joined)) == set(layers)
    return [[member.kind for member in step.members] for step in joined if step.places]


def test_a_pool_joins_the_convolution_ahead():
    assert regions_of(pooled(), TINY, 1)[-1][-2:] == ["conv", "maxpool"]
    assert regions_of(pooled(), BASE, 2) == [["conv", "maxpool"]]


def test_what_lies_in_dram_takes_no_room_of_a_region():
    """Together a convolution and its pool read and write more than may be, but not where what it reads is in DRAM."""
    graph = pooled()
    layers = fuse(graph, lower(graph, TINY))
    study = Study.of(graph, layers, TINY, 1, 90 * KIB)
    wider = study.passing({layers[1].inputs[0]})
    for one, joined in ((study, False), (wider, True), (study, False)):
        last = one.joined(study.source)[-1]
        assert ([layer.kind for layer in last.members[-2:]] == ["conv", "maxpool"]) is joined


def test_engines_do_not_share_what_a_window_over_channels_reads():
    """One engine may run everything side by side; two may not read each other's results, so a pool or a convolution
    with a kernel does not follow one that is shared by rows."""
    for engines, params in ((1, TINY), (2, BASE)):
        graph = module()
        layers = fuse(graph, lower(graph, params))
        study = Study.of(graph, layers, params, engines)
        joined = study.joined(study.search(SearchLimits())[0])
        for step in joined:
            inside = {name for member in step.members for name in member.outputs}
            readers = [m for m in step.members if m.kind == "conv" and inside.intersection(m.inputs)]
            assert engines == 1 or all(reader.flat for reader in readers)
        assert any(step.places for step in joined)


def separable(seed: int = 1, height: int = 24) -> ir.Graph:
    """A depthwise convolution between two 1x1 convolutions, the second with a sum, and a 1x1 one behind it."""
    make = GraphBuilder(seed)
    x = make.conv(make.input((1, height, 20, 8)), 64, (1, 1))
    y = make.conv(make.conv(x, 96, (1, 1)), 96, pads=(1, 1, 1, 1), groups=96)
    total = make.eltwise("add", x, make.conv(y, 64, (1, 1)))
    make.output(make.conv(total, 40, (1, 1)))
    return make.graph


@pytest.fixture
def eager(monkeypatch):
    """Layers join wherever engines can share them."""
    monkeypatch.setattr("compiler.plan.regions.region_rules.LAYER_TO_LOAD", 4000.0)


@pytest.mark.parametrize(("engines", "height"), [(2, 24), (2, 11), (3, 10), (4, 24)])
def test_engines_share_the_rows_of_a_chain_of_sums_over_channels(eager, engines, height):
    """The last convolution follows the sum in one region, if not the depthwise convolution too."""
    image = check(separable(height=height), BASE.replace(engines=engines), engines=engines)
    kinds = [layer.kind for layer in image.meta.layers]
    assert any(kind.endswith("+conv") for kind in kinds), kinds


def chain(seed: int) -> ir.Graph:
    """Convolutions of all kinds, pools and sums, each of one of the last two results."""
    rng, make = np.random.default_rng(seed), GraphBuilder(seed)
    height, width = rng.integers(5, 24, 2)
    made = [make.conv(make.input((1 + seed % 2, height, width, 8)), int(rng.choice([16, 40, 64])), (1, 1))]
    for _ in range(rng.integers(4, 9)):
        x = made[-1 - int(rng.integers(min(2, len(made))))]
        channels, like = (
            make.shape(x)[3],
            [other for other in made if other != x and make.shape(other) == make.shape(x)],
        )
        kind = rng.choice(["depthwise", "pool", "sum", "kernel", "flat", "flat"])
        if kind == "depthwise":
            made.append(make.conv(x, channels, pads=(1, 1, 1, 1), groups=channels))
        elif kind == "pool":
            made.append(make.pool("max", x, (3, 3), (1, 1), (1, 1, 1, 1)))
        elif kind == "sum" and like:
            made.append(make.eltwise("add", x, like[-1]))
        elif kind == "kernel":
            made.append(make.conv(x, 32, pads=(1, 1, 1, 1)))
        else:
            made.append(make.conv(x, int(rng.choice([16, 40, channels])), (1, 1)))
    read = {name for op in make.graph.ops for name in op.inputs}
    for name in made:
        if name not in read:
            make.output(name)
    return make.graph


@pytest.mark.parametrize("seed", [1, 2, 3, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 4, 5, 6, 7))])
def test_random_chains_are_exact_on_several_engines(eager, seed):
    image = check(chain(seed), BASE.replace(engines=2 + seed % 3), engines=2 + seed % 3)
    assert any(" + " in layer.name for layer in image.meta.layers), f"seed {seed}: no region in it"


def test_a_region_stands_for_its_members():
    graph = pooled()
    layers = lower(graph, TINY)
    region = ModelStep.region(graph, layers[:2])
    assert region.inputs == layers[0].inputs and region.output == layers[1].output
    assert region.name == f"{layers[0].name} + {layers[1].name}"


def test_what_cannot_be_a_region_is_cut_otherwise():
    """All layers stay, in the same order, and no region holds what was refused; others may."""
    graph = branchy(3, operators=9, channels=24)
    study = Study.of(graph, fuse(graph, lower(graph, TINY)), TINY, 1)
    orders, _ = study.search(None)
    before = study.joined(orders)
    refused = max((step for step in before if step.places), key=lambda region: len(region.members))
    study.forbid(refused)
    after = study.joined(orders)
    members = [flattened(steps) for steps in (before, after)]
    regions = [{frozenset(step.members) for step in steps if step.places} for steps in (before, after)]
    assert members[0] == members[1]
    assert regions[1] and regions[0] != regions[1] and not any(one >= frozenset(refused.members) for one in regions[1])


def test_an_order_can_be_given():
    graph = branchy(3, operators=9, channels=24)
    free = blank(graph, TINY, Options(regions=True))
    net = lowered(graph, free)
    study = net.study()
    (run,) = study.runs
    order = tuple(nx.lexicographical_topological_sort(run.operators.flow(), key=lambda n: -n))
    assert order != tuple(sorted(order)) and run.price(order) > 0 and run.price(run.operators.source) > 0
    with Desk(1) as desk:
        image = emit(settle(free, net, desk, study, (order,)), graph, desk)
    assert image.code != build(graph, TINY, Options(order="source"))[0].code


def test_engines_that_share_too_few_channels_do_not_join():
    """32 channels are one block, which one engine would compute alone; 64 are two."""
    for channels, joined in ((32, False), (64, True)):
        assert any("maxpool" in kinds for kinds in regions_of(pooled(channels=channels), BASE, 2)) == joined


@pytest.mark.parametrize(("params", "engines"), [(TINY, 1), (BASE, 2)])
def test_a_region_takes_fewer_cycles_than_its_layers(params, engines):
    alone, _ = build(pooled(), params, Options(engines=engines, regions=False))
    together, _ = build(pooled(), params, Options(engines=engines))
    assert together.meta.layers[-1].kind == "conv+maxpool"
    before, after = (sum(layer.estimated_compute for layer in image.meta.layers) for image in (alone, together))
    pool = alone.meta.layers[-1].estimated_compute
    assert after < before - 0.5 * pool


@pytest.mark.parametrize("seed", [*range(5), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(5, 10))])
def test_branchy_graphs_are_exact_and_free_of_races(seed):
    params, engines = [
        (TINY, 1), (TINY.replace(engines=2), 2), (BASE, 2), (TINY.replace(lv2_bytes=32 * KIB), 1), (TINY, 1),
    ][seed % 5]  # fmt: skip
    graph = branchy(seed, operators=7, channels=[24, 40, 64][seed % 3])
    image = check(graph, params, engines=engines)
    regions = sum(" + " in layer.name for layer in image.meta.layers)
    assert regions or seed not in (0, 1, 2), f"seed {seed}: no region in it"


@pytest.mark.parametrize(
    ("params", "engines", "lagging"), [pytest.param(TINY, 1, None, marks=pytest.mark.slow), (BASE, 2, 1)]
)
def test_every_point_inside_a_region(params, engines, lagging):
    graph = pooled()
    image, _ = build(graph, params, Options(engines=engines, cancel_interval=1200))
    inside = {
        p.point for p in image.meta.cancel_points if " + " in image.meta.layers[image.meta.jobs[p.job].layer].name
    }
    assert len(inside) > 3
    report = check_points(image, random_inputs(graph, 7), inside, lagging_engine=lagging)
    assert report.ok and len(report.points) == len(inside), report


def test_order_search_changes_nothing_but_the_order():
    graph = branchy(3, operators=9, channels=24)
    images = [build(graph, TINY, Options(order=order, regions=order != "source"))[0] for order in ("source", "search")]
    macs = [sum(layer.macs for layer in image.meta.layers) for image in images]
    nodes = [sorted(node for layer in image.meta.layers for node in layer.nodes) for image in images]
    assert macs[0] == macs[1] and nodes[0] == nodes[1]
    again = Desk(1)
    plan, reports = fill(blank(graph, TINY, Options()), graph, again)
    code = emit(plan, graph, again).code
    assert np.array_equal(np.frombuffer(code, np.uint8), np.frombuffer(images[1].code, np.uint8))
    assert reports and all(part.best <= part.source for order in reports for part in order.subgraphs)


def test_an_unknown_order_is_refused():
    with pytest.raises(
        CompileError, match="order must be one of search, source, exhaustive, timed, measured, not 'best'"
    ):
        build(pooled(), TINY, Options(order="best"))


def test_a_maximum_over_all_points_joins_a_convolution_that_is_most_of_the_network():
    """It adds nothing to the unit that is busiest, and its window is cut so that it fits beside a convolution."""
    make = GraphBuilder(3)
    x = make.conv(make.input((1, 32, 32, 16)), 64, (1, 1))
    make.output(make.pool("max", make.conv(x, 512, (1, 1)), (32, 32), (1, 1)))
    assert regions_of(make.graph, BASE, 2)[-1] == ["conv", "maxpool", "maxpool"]
    check(make.graph, BASE, engines=2)
