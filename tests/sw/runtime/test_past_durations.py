"""Durations that are expected of layers that never ran."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from hw.contract.params import preset
from hw.image import LayerInfo
from sim.model.bus import ModelBus
from sw.driver import Device
from sw.runtime import Durations, MeasuredLayer, PastDurations, Runtime, Session, past_of
from sw.runtime.forecast import Estimates
from sw.runtime.policies.contract import LayerCost
from tests.support.preempt_images import walking_image

TINY = preset("tiny")
X = np.ones((1, 8, 8), np.float32)
TIME = st.integers(0, 1 << 40)


def layer(kind="conv", macs=1000, size=100, took=(10, 100, 20), measured=(12, 90, 30), engines=1):
    return MeasuredLayer(kind, macs, size, engines, Durations(*took), Durations(*measured))


def info(kind="conv", macs=1000, size=100, took=(10, 100, 20)):
    return LayerInfo("l", kind, [], "o", macs, size, 0, 0, *took)


def expected(past, info, engines=1):
    image = walking_image(TINY, jobs=1, engines=1)
    image.meta.layers = [info]
    image.meta.jobs = [replace(image.meta.jobs[0], engine=e) for e in range(engines)]
    return past.of(image)(info)


def past(*layers):
    found = PastDurations()
    found.add(layers)
    return found


def test_nothing_known_leaves_the_estimate():
    assert expected(PastDurations(), info()) == (10, 100, 20)
    assert expected(past(layer("softmax")), info()) == (10, 100, 20)  # no operator in common


def test_a_layer_is_off_as_far_as_those_like_it_were_and_few_count_for_less():
    one, many = past(layer(measured=(20, 200, 40))), past(*[layer(measured=(20, 200, 40))] * 7)
    assert expected(one, info()) == (14, 141, 28)  # half of the way, in logarithms
    assert expected(many, info()) == tuple(round(x * 2 ** (7 / 8)) for x in (10, 100, 20))


def test_one_that_is_wrong_among_several_does_not_count():
    right = [layer(measured=(10, 100, 20))] * 4
    assert expected(past(*right, layer(measured=(1 << 30, 1 << 30, 1 << 30))), info()) == (10, 100, 20)


def test_what_an_image_claims_is_bounded():
    liar = layer(took=(1, 1, 1), measured=(1 << 40, 1 << 40, 1 << 40))
    assert max(expected(past(*[liar] * 500), info(took=(100, 100, 100)))) <= 400


@pytest.mark.parametrize("other", [{"kind": "conv+pool"}, {"macs": 10**9}, {"size": 10**9}, {"engines": 8}])
def test_the_nearest_by_operators_size_and_engines_are_asked(other):
    near, far = [layer(measured=(10, 150, 20))] * 7, [layer(**other, measured=(10, 50, 20))] * 7
    for order in ([*near, *far], [*far, *near]):
        assert expected(past(*order), info()).compute == round(100 * 1.5 ** (7 / 8))
    engines = other.pop("engines", 1)
    assert expected(past(*near, *far), info(**other), engines).compute == round(100 * 0.5 ** (7 / 8))


def test_newer_ones_are_nearer_than_older_ones_and_the_oldest_are_forgotten():
    old, new = [layer(measured=(10, 50, 20))] * 500, [layer(measured=(10, 200, 20))] * 7
    found = past(*old)
    found.add(new)
    assert expected(found, info()).compute == round(100 * 2 ** (7 / 8)) and len(found) == 500


def test_what_was_measured_is_not_expected():
    known = info()
    known.measured_load, known.measured_compute, known.measured_stream = 1, 2, 3
    assert expected(past(layer()), known) == (1, 2, 3)


@given(st.lists(st.tuples(st.tuples(TIME, TIME, TIME), st.tuples(TIME, TIME, TIME), TIME, TIME), max_size=20))
def test_whatever_was_measured_the_expectation_is_a_bounded_number(seen):
    found = past(*(layer(macs=macs, size=size, took=took, measured=was) for took, was, macs, size in seen))
    for times in ((0, 0, 0), (7, 1 << 40, 3)):
        answer = expected(found, info(took=times))
        assert all(math.isfinite(a) and t / 4 - 1 <= a <= 4 * t + 1 for a, t in zip(answer, times, strict=True))


# -- on a device -----------------------------------------------------------------------------------------------


def models(device, *claims, tenant=None):
    """Walking images whose layers say that they take so long."""
    images = [walking_image(TINY, jobs=3, name=f"m{claim}", engines=1) for claim in claims]
    for image, claim in zip(images, claims, strict=True):
        for each in image.meta.layers:
            each.kind, each.estimated_load, each.estimated_compute = "walk", claim, claim
    return [device.load(image, tenant=tenant) for image in images]


def decided(device, model):
    runtime = Runtime(device)
    runtime.submit(model, X).result()
    return [run.decision.cost.compute for run in runtime.groups]


@pytest.mark.parametrize("run_alone", [lambda d, m: Session(d, m).run(X), decided])
def test_the_first_run_of_a_model_teaches_what_to_expect_of_the_next(run_alone):
    device = Device(ModelBus(TINY))
    first, second = models(device, 1000, 1000)
    run_alone(device, first)
    took = sum(each.measured_compute for each in first.image.meta.layers)
    claimed, costs = 1000 * len(second.image.meta.layers), sum(decided(device, second))
    assert min(took, claimed) < costs < max(took, claimed) and abs(costs - took) < 0.6 * abs(claimed - took)


def test_one_tenants_images_say_nothing_to_another():
    device = Device(ModelBus(TINY))
    (liar,) = models(device, 1 << 30, tenant="a")
    (plain,) = models(device, 1000, tenant="b")
    Session(device, liar).run(X)
    assert len(past_of(device, "a")) and not len(past_of(device, "b")) + len(past_of(device))
    assert sum(decided(device, plain)) == 1000 * len(plain.image.meta.layers)


# -- within a run ----------------------------------------------------------------------------------------------


def test_layers_alike_are_expected_to_take_what_one_of_them_took_until_they_have_run():
    cost, other = LayerCost(10, 100), LayerCost(10, 101)
    estimates = Estimates({}, gain=1)
    estimates.add("m", [cost, other, cost, cost], ["conv", "conv", "conv", "pool"])
    estimates.correct("m", 0, load=20, compute=50)
    assert [found[:2] for found in estimates.layers("m")] == [(20, 50), (10, 101), (20, 50), (10, 100)]
    estimates.correct("m", 2, compute=70)
    estimates.correct("m", 0, compute=60)
    assert [found.compute for found in estimates.layers("m")] == [60, 101, 70, 100]
