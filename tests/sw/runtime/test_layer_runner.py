"""Layers run on whatever has room for them: one loop of decisions serves a device and the synthetic machine."""

import pytest

from sw.runtime.forecast import Estimates, Forecast
from sw.runtime.layer_runner import LayerRunner, StepScheduler
from sw.runtime.policies import LayerCost, by_name, placement_for
from sw.runtime.scheduler import LayerChain, LayerScheduler

COSTS = [LayerCost(10.0, 10.0)] * 4


class Paper:
    """An executor that notes what it is asked to do. It has room for so many layers."""

    def __init__(self, places):
        self.places, self.did, self.taken = places, [], []

    def now(self):
        return 100.0

    def room(self, chain):
        return len(self.taken) < self.places

    def think(self):
        self.did.append("think")

    def take(self, decision):
        self.taken.append(decision)
        self.did.append((decision.chain.number, decision.layer))

    def push(self):
        self.did.append("push")


def runner(per_decision=1, seconds=None):
    estimates = Estimates({"m": COSTS})
    scheduler = LayerScheduler(by_name("round_robin"), placement_for("queue_time", [0.0]), Forecast(3, 1000), estimates)
    return LayerRunner(scheduler, [] if seconds is None else seconds, per_decision)


def test_it_decides_as_long_as_there_is_room():
    seconds, paper = [], Paper(3)
    layers = runner(2, seconds)
    for number in (1, 2):
        layers.open(LayerChain(number, "m"), f"owner {number}", COSTS)
    layers.turn(paper)
    first, second = ["think", (1, 0), (2, 0), "push"], ["think", (1, 1), (2, 1), "push"]
    assert paper.did == [*first, *second] and len(seconds) == 4
    layers.turn(paper)
    assert paper.did == [*first, *second]


def test_an_interrupted_host_decides_later():
    paper, layers = Paper(9), runner()
    layers.open(LayerChain(1, "m"), "owner", COSTS)
    layers.turn(paper, lambda: bool(paper.taken))
    assert paper.did == [(1, 0), "push"]


def test_where_one_layer_could_be_next_nothing_is_decided():
    """On the engines of its chain; others have a chain of their own, or two that use one engine."""
    paper, layers = Paper(3), runner()
    for number, engines in ((1, {0}), (2, {1, 2}), (3, {2})):
        layers.open(LayerChain(number, "m", engines=frozenset(engines)), number, COSTS)
    paper.room = lambda chain: sum(decision.chain is chain for decision in paper.taken) < 1
    layers.turn(paper)
    assert paper.did == [(1, 0), "push", "think", (2, 0), "push", "think", (3, 0), "push"]


def test_a_step_is_over_with_its_last_layer():
    paper, layers = Paper(4), runner()
    layers.open(LayerChain(1, "m"), "owner", COSTS)
    layers.turn(paper)
    assert [layers.ended(decision, 200.0) for decision in paper.taken] == [False, False, False, True]
    assert not layers.steps


@pytest.mark.parametrize("running", [0, 1, 2])
def test_a_step_that_is_closed_ends_with_what_runs(running):
    paper, layers = Paper(running), runner()
    layers.open(LayerChain(1, "m"), "owner", COSTS)
    layers.turn(paper)
    layers.close(1)
    assert sum(step.left for step in layers.steps.values()) == running
    for decision in paper.taken:
        layers.dropped(decision)
    assert not layers.steps
    paper.places += 1
    layers.turn(paper)
    assert len(paper.taken) == running


def test_whole_steps_go_in_order():
    paper, layers = Paper(9), LayerRunner(StepScheduler(), [])
    for number in (5, 3):
        layers.open(LayerChain(number, "m"), number, ["all of it"])
    layers.turn(paper)
    assert [decision.key for decision in paper.taken] == [(5, 0), (3, 0)]
    assert [layers.ended(decision, 200.0) for decision in paper.taken] == [True, True]
