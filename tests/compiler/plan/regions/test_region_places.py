"""Parts of regions, and the engines that compute them."""

import itertools

import numpy as np
import pytest

from compiler import ir
from compiler.pipeline import build
from compiler.plan.layers.fuse import fuse
from compiler.plan.layers.layer import ConvLayer
from compiler.plan.layers.lower import lower
from compiler.plan.layers.region_share import Share
from compiler.plan.layers.step import ModelStep
from compiler.plan.options import Options
from compiler.plan.order.search import SearchLimits
from compiler.plan.regions.region_places import parts_of, place_parts
from compiler.plan.regions.regions import Study
from hw.contract.params import SocParams, preset
from tests.support.check.preemption import check_points
from tests.support.graphs import check, random_inputs
from tests.support.placed import branches

BASE = preset("base")
LIMITS = SearchLimits(few=200, tries=200)


def mixed(graph: ir.Graph, params: SocParams) -> list[ModelStep]:
    """Regions of which some members are computed by one engine."""
    layers = fuse(graph, lower(graph, params))
    study = Study.of(graph, layers, params, params.engines)
    joined = study.joined(study.search(LIMITS)[0])
    regions = [step for step in joined if step.places]
    return [one for one in regions if any(not isinstance(place, Share) for place in one.places)]


def test_members_that_read_each_other_are_a_part():
    assert parts_of(5, [(0, 2), (2, 4)], []) == [[0, 2, 4], [1], [3]]
    # Nobody computes member 3, a concatenation: where nobody reads it, what it joins stays apart.
    assert parts_of(4, [(0, 3), (1, 3)], [3]) == [[0], [1], [2]]
    assert parts_of(5, [(0, 3), (1, 3), (3, 4)], [3]) == [[0, 1, 3, 4], [2]]


@pytest.mark.parametrize(("parts", "engines"), [(1, 2), (2, 2), (3, 2), (4, 2), (2, 3), (3, 3)])
def test_all_ways_but_for_the_names_of_engines(parts, engines):
    found = place_parts([1.0] * parts, [1] * parts, engines)
    assert found.shared[0] and found.shared.sum() == 1
    named = set()
    for way in found.chosen.T.tolist():
        names = {engine: i for i, engine in enumerate(dict.fromkeys(one for one in way if one))}
        named.add(tuple(names[one] + 1 if one else 0 for one in way))
        assert len(set(way) - {0}) != 1
    assert len(named) == found.chosen.shape[1]
    every = itertools.product(range(engines + 1 if parts > 1 else 1), repeat=parts)
    firsts = {
        tuple(list(dict.fromkeys(one for one in way if one)).index(one) + 1 if one else 0 for one in way)
        for way in every
    }
    assert named == {way for way in firsts if len(set(way) - {0}) != 1}


def test_of_many_parts_the_smaller_ones_are_dealt_out():
    work = [float(number) for number in range(1, 9)]
    found = place_parts(work, [1] * 7 + [0], 2)
    ways = found.chosen.T.tolist()
    assert not found.shared.any()  # the largest part cannot be shared
    (way,) = ways
    held = [
        sum(size for size, one, count in zip(work, way, [1] * 7 + [0], strict=True) if one - count == e) for e in (0, 1)
    ]
    assert sum(held) == sum(work) and abs(held[0] - held[1]) <= 4


@pytest.mark.parametrize("engines", [2, 3])
def test_branches_of_one_block_each_go_to_an_engine_each(engines):
    """A block of channels cannot be shared, rows would be, but not between the convolutions of a branch."""
    (region,) = mixed(branches(1, engines), BASE.replace(engines=engines))
    engine = dict(zip(region.members, region.places, strict=True))
    for member in region.members:
        for other in region.members:
            if isinstance(other, ConvLayer) and member.output in other.inputs:
                assert engine[member] == engine[other]
    assert {place for place in region.places if not isinstance(place, Share)} == set(range(engines))


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 6))])
def test_mixed_regions_are_exact_and_free_of_races(seed):
    params = BASE.replace(engines=2 + seed % 3)
    graph = branches(seed, 2 + seed % 3, [32, 48, 24][seed % 3], [12, 9, 14][seed % 2])
    assert mixed(graph, params), f"seed {seed}"
    check(graph, params, engines=params.engines)


def test_a_mixed_region_takes_fewer_cycles():
    graph = branches(3)
    with_regions, alone = (build(graph, BASE, Options(engines=2, regions=regions))[0] for regions in (True, False))
    cycles = [sum(layer.estimated_compute for layer in image.meta.layers) for image in (with_regions, alone)]
    assert cycles[0] < cycles[1], cycles


@pytest.mark.parametrize("lagging", [0, 1])
def test_every_point_of_a_mixed_region(lagging):
    graph = branches(5)
    assert mixed(graph, BASE)
    image, _ = build(graph, BASE, Options(engines=2, cancel_interval=800))
    jobs = image.meta.jobs
    inside = {p.point for p in image.meta.cancel_points if " + " in image.meta.layers[jobs[p.job].layer].name}
    assert {jobs[p.job].engine for p in image.meta.cancel_points if p.point in inside} == {0, 1}
    report = check_points(image, random_inputs(graph, 7), inside, lagging_engine=lagging)
    assert report.ok and len(report.points) == len(inside) > 3, report


def test_the_image_does_not_depend_on_processes():
    graph = branches(2, 3)
    images = [build(graph, BASE, Options(engines=2), jobs=jobs)[0].to_bytes() for jobs in (1, 2)]
    assert np.array_equal(*(np.frombuffer(image, np.uint8) for image in images))
