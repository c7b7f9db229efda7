"""Rows on what is expected of layers that were never seen, with small networks."""

from statistics import median

import pytest

import caesura
from benchmarks import first_runs
from benchmarks.first_runs import Errors, family, first_run
from benchmarks.workloads import workload
from sw.runtime import Durations
from sw.runtime.policies import LayerCost


def test_errors_are_shares_of_what_was_measured():
    assert Errors.of(LayerCost(150, 80), Durations(60, 100, 40)) == (20, 50, pytest.approx(35))
    assert Errors.of(LayerCost(0, 90), Durations(0, 100, 0)) == (10, 0, 10)


def test_versions_of_a_network_teach_each_other_nothing():
    assert family("squeezenet1_0") == family("squeezenet") != family("resnet50")
    assert len({family(name) for name in first_runs.NETWORKS}) == len(first_runs.NETWORKS) - 1


@pytest.mark.slow
def test_a_network_is_expected_better_after_another_one():
    images = {name: caesura.compile(workload(name), "tiny") for name in ("inception_small", "densenet_small")}
    blind = {name: first_run(image, name) for name, image in images.items()}
    assert all(run.correct for run in blind.values())
    taught = first_run(images["densenet_small"], "densenet_small", blind["inception_small"].layers)
    unknown = blind["densenet_small"].errors
    assert len(taught.errors) == len(unknown)
    assert median(e.both for e in taught.errors) < median(e.both for e in unknown)
    # What the compiler expects of compute is near enough for layers so small: what is learnt is memory access.
    assert median(e.access for e in taught.errors) < 0.85 * median(e.access for e in unknown)
