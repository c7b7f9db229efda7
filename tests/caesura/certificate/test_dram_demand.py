"""What streams on other engines ask of the DRAM: by how often they come, or all the time if nothing says."""

from dataclasses import replace

import pytest

import caesura
from caesura.certificate.dram_demand import DramUser, demand_beside
from caesura.certificate.image_costs import ImageCosts, Neighbours
from caesura.certificate.image_stream import image_terms, lesser_terms
from caesura.samples import random_samples
from hw.contract.params import preset
from sim.cost import Others, dram_service, whole_bodies
from sw.runtime import Runtime
from tests.caesura.certificate.two_digits import DIGITS, scenario

BASE = preset("base")


@pytest.fixture(scope="module")
def image():
    return caesura.compile(DIGITS, BASE, engines=1)


@pytest.fixture(scope="module")
def terms(image):
    return {
        name: image_terms(image, 1, neighbours)
        for name, neighbours in {
            "alone": Neighbours(),
            "always": Neighbours(1),
            "counted": Neighbours(1, counted=True),
        }.items()
    }


def user(terms, name="other", engine=1, **more):
    found = DramUser(name, 1, frozenset({engine}), terms["alone"], 100_000, 1, 100_000)
    return replace(found, **more)


def test_requests_under_way_within_some_cycles(terms):
    one = user(terms, deadline=30_000)
    assert [one.requests(cycles) for cycles in (1, 70_000, 70_001, 170_000)] == [1, 1, 2, 2]
    assert replace(one, burst=3).requests(1) == 3


def test_who_interrupts_others_moves_their_state_too(terms):
    one, low = user(terms), user(terms, "low", priority=0)
    alone = one.service([one])
    assert alone == min(terms["alone"].service, terms["alone"].execution)
    assert one.service([one, low]) == alone + terms["alone"].switch == low.service([one, low]) + terms["alone"].switch


def test_only_streams_on_other_engines_count(terms):
    mine, beside, other = user(terms, "mine", 0), user(terms, "beside", 0), user(terms)
    assert demand_beside("mine", {"mine": mine, "beside": beside})(10**6) == 0
    everyone = {"mine": mine, "beside": beside, "other": other}
    assert demand_beside("mine", everyone)(1) == 2 * other.service(everyone.values())


@pytest.mark.parametrize("unknown", ["period", "deadline"])
def test_without_a_rate_or_an_end_they_are_busy_all_the_time(terms, unknown):
    everyone = {"mine": user(terms, "mine", 0), "other": user(terms, **{unknown: None})}
    assert demand_beside("mine", everyone) is None


def test_each_term_is_the_lesser_of_both_bounds(terms):
    always, counted = terms["always"], terms["counted"]
    assert terms["alone"].execution <= counted.execution < always.execution
    assert lesser_terms(always, counted, lambda cycles: 0).execution == counted.execution
    assert lesser_terms(always, counted, lambda cycles: 10**9) == always
    some = lesser_terms(always, counted, lambda cycles: 1_000 * -(-cycles // counted.execution))
    assert counted.execution < some.execution == counted.execution + 2_000


def test_service_is_no_more_than_a_body_takes_on_a_slow_path(image):
    """And at least what the bus needs for the bytes that the bodies move."""
    bodies = ImageCosts(image, 1, Neighbours()).programs.bodies()
    service = dram_service(bodies, BASE)
    assert service > 0 and service < 20 * sum(whole_bodies(bodies, BASE, Others(1)))


def test_requests_beside_a_neighbour_take_no_longer_than_their_own_time(image):
    """A neighbour on the second engine of ``base``, which begins again as soon as it has ended."""
    wanted = scenario(
        machine__preset="base", models__short__engines=[1], models__long__options={},
        arrivals={"kind": "periodic", "period": 150_000, "count": 5}, deadline=150_000,
    )  # fmt: skip
    found = caesura.admit(wanted)
    with caesura.open(BASE, "model") as device:
        models = [device.load(image) for _ in range(2)]
        sample = random_samples(image, 1, 0)[0]
        runtime = Runtime(device, "round_robin")
        requests = [runtime.submit(model, sample, engines=[at]) for _ in range(4) for at, model in enumerate(models)]
        runtime.run_until_done()
    assert found.accepted
    spans = [request.ended - max(request.arrival, request.started) for request in requests]
    assert max(spans) <= min(response.own for response in found.responses)
