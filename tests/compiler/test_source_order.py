"""The order that is searched for by default takes no longer than the model's own."""

import random

import pytest

from compiler import ir
from compiler.emission.objects.desk import Desk
from compiler.pipeline import blank, fill, lowered, planned_cycles
from compiler.plan.options import Options
from compiler.plan.order.orders import random_order
from compiler.plan.regions.regions import Study
from hw.contract.params import preset
from tests.support.placed import branchy

TINY = preset("tiny")


def planned(graph: ir.Graph, order: str) -> tuple[list[str], float]:
    """The layers of a plan in their order, and the cycles of its jobs as they are scheduled."""
    with Desk(1) as desk:
        plan, _ = fill(blank(graph, TINY, Options(order=order)), graph, desk)
        steps = [name for step in plan.steps or () for name in step.layers]
        return steps, planned_cycles(plan, lowered(graph, plan), desk)


@pytest.mark.parametrize("seed", [2, 5])
def test_no_slower(seed):
    graph = branchy(seed, 12, 16)
    assert planned(graph, "search")[1] <= planned(graph, "source")[1]


def test_what_a_price_favours_wrongly_is_not_taken(monkeypatch):
    """A search ends in the dearest of many orders, which its price likes a little."""
    graph = branchy(3, 12, 16)
    own, least = planned(graph, "source")
    dear, priced = {}, Study.price

    def misled(self, *_):
        for run in self.runs:
            draw = random.Random(1)
            dear[id(run)] = max((random_order(run.operators, draw) for _ in range(30)), key=run.price)
        return tuple(dear[id(run)] for run in self.runs), ()

    monkeypatch.setattr(Study, "search", misled)
    monkeypatch.setattr(
        Study, "price", lambda self, orders: priced(self, self.source) * (0.98 if orders != self.source else 1)
    )
    found, cycles = planned(graph, "search")
    assert dear and (found, cycles) == (own, least)
