"""What timed programs tell: regions that ran take what they took, prices of others are corrected by the errors seen."""

import pytest

from compiler.plan.lowered_model import LoweredModel
from compiler.plan.options import Options
from compiler.plan.regions.region_knowledge import RegionKnowledge
from compiler.plan.regions.regions import Study
from hw.contract.params import preset
from tests.support.placed import branchy

TINY = preset("tiny")


@pytest.fixture(scope="module")
def priced():
    """A graph of layers with the price of its orders."""
    made = LoweredModel.of(branchy(3, operators=9, channels=24), TINY, Options())
    (run,) = Study.of(made.graph, made.layers, TINY, 1).runs
    return run.operators, run.price


def test_without_programs_prices_stay(priced):
    _, price = priced
    assert RegionKnowledge().believed(price._rules, (0, 1), 1234.0) == 1234.0


def test_a_region_takes_what_it_took_and_others_what_regions_take_more(priced):
    rules, knowledge = priced[1]._rules, RegionKnowledge()
    regions = [(number, number + 1) for number in range(6)]
    for members in regions[:-1]:
        knowledge.learn(rules, members, 20_000.0, 22_000.0)
    assert knowledge.believed(rules, regions[0], 20_000.0) == 22_000.0
    assert 21_000 < knowledge.believed(rules, regions[-1], 20_000.0) < 23_000
    knowledge.learn(rules, regions[0], 20_000.0, 5_000.0)
    assert knowledge.believed(rules, regions[0], 20_000.0) == 5_000.0


def test_nothing_is_believed_to_take_a_small_part_of_its_price(priced):
    rules, knowledge = priced[1]._rules, RegionKnowledge()
    knowledge.learn(rules, (0, 1), 100_000.0, 10.0)
    assert knowledge.believed(rules, (1, 2), 100_000.0) == 80_000.0
    assert knowledge.believed(rules, (1, 2), float("inf")) == float("inf")


def test_an_order_costs_what_its_regions_took_and_one_that_knows_goes_by_it(priced):
    operators, price = priced
    order, before = operators.source, price(operators.source)
    groups = price.groups(order)
    assert [number for group in groups for number in group] == list(order) and any(len(group) > 1 for group in groups)
    price.learn(order, [10.0 * len(group) for group in groups])
    assert price.groups(order) == groups and price(order) <= 10.0 * len(order) < before
    price.learn(order, [1e6 if len(group) > 1 else 10.0 for group in groups])
    assert not {group for group in groups if len(group) > 1} & set(price.groups(order))
