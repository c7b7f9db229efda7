"""The layer scheduler: candidates, progress, passed-over counts; its forecast; corrected estimates."""

import random
from dataclasses import replace

import pytest

from sw.runtime.forecast import Estimates, Forecast
from sw.runtime.policies import LayerCost, OrderPolicy, placement_for
from sw.runtime.policies.idle_time import IdleTime
from sw.runtime.policies.request_order import Fcfs
from sw.runtime.scheduler import LayerChain, LayerGraph, LayerScheduler

MODELS = {"a": [LayerCost(10, 20, 40), LayerCost(5, 8, 40)], "b": [LayerCost(30, 5, 10)] * 3}


class Recording(OrderPolicy):
    window = 2

    def __init__(self):
        self.seen = []

    def choose(self, state, candidates):
        self.seen.append([(c.model, c.layer, c.passed_over, len(c.following)) for c in candidates])
        return candidates[0]


def scheduler(order=None, engines=1, **options):
    forecast = Forecast(engines, 100)
    return LayerScheduler(
        order or Fcfs(), placement_for("queue_time", [0.0] * engines), forecast, Estimates(MODELS), **options
    ), forecast


def test_candidates_are_the_next_layers_of_open_requests_and_arrivals_take_part_at_once():
    order = Recording()
    subject, _ = scheduler(order)
    subject.open(LayerChain(0, "a"))
    subject.decide(0)
    subject.open(LayerChain(1, "b"))
    assert [d.layer for d in (subject.decide(0), subject.decide(0))] == [1, 0]
    assert order.seen == [[("a", 0, 0, 1)], [("a", 1, 0, 0), ("b", 0, 0, 1)], [("b", 0, 1, 1)]]
    subject.cancel(1)
    assert subject.decide(0) is None


def test_a_policy_does_not_say_how_often_a_layer_was_passed_over():
    class Boasting(OrderPolicy):
        def choose(self, state, candidates):
            return replace(candidates[0], passed_over=99)

    subject, _ = scheduler(Boasting())
    subject.open(LayerChain(0, "a"))
    assert subject.decide(0).passed_over == 0


def test_idle_times_are_those_of_the_engine_and_of_all_jobs_of_a_layer():
    subject, _ = scheduler(engines=2)
    subject.open(LayerChain(0, "a"))
    subject.decide(0)
    subject.cancel(0)
    subject.open(LayerChain(1, "b"))
    subject.decide(0)
    later = subject.decide(0)
    assert (later.engine, later.idle.compute) == (1, 25)  # it loads from 40 to 70, and computes to 45; the other to 30
    forecast = Forecast(1, 100, slots=2)
    jobs = Estimates({"c": [LayerCost(10, 20, jobs=2)] * 2})
    subject = LayerScheduler(Fcfs(), placement_for("queue_time", [0.0]), forecast, jobs)
    subject.open(LayerChain(0, "c"))
    subject.decide(0)
    assert subject.decide(0).idle == (5, 15)  # slots are free at 20 and 30, while its first half has loaded by 25


def test_most_urgent_requests_only():
    subject, _ = scheduler(by_priority=True)
    subject.open(LayerChain(0, "a"))
    subject.open(LayerChain(1, "b", arrival=5, priority=1))
    assert subject.decide(5).chain.model == "b"


def test_forecast_of_one_layer_after_the_other():
    subject, forecast = scheduler()
    subject.open(LayerChain(0, "a"))
    first, second = subject.decide(0), subject.decide(0)
    assert (first.start, second.start) == (10, 30)
    assert (first.idle, second.idle) == ((10, 0), (0, 0))
    state = forecast.state(0)
    assert (state.compute_end, state.access_free, state.memory_used) == (38, 15, 80)
    assert state.releases == ((30, 40), (38, 40))


def test_forecast_follows_what_happened():
    subject, forecast = scheduler()
    subject.open(LayerChain(0, "a"))
    subject.decide(0)
    forecast.load_started((0, 0), 2)
    assert forecast.state(4).access_free == 12
    forecast.load_ended((0, 0), 15)
    forecast.started((0, 0), 16)
    assert forecast.state(20).compute_end == 36
    assert forecast.state(50).compute_end == 50  # overdue: it may end any moment
    forecast.ended((0, 0), 51)
    state = forecast.state(60)
    assert (state.compute_end, state.access_free, state.memory_used) == (51, 15, 0)


def test_forecast_waits_for_memory():
    forecast = Forecast(1, 100)
    for number in range(3):
        forecast.add((number, 0), [0], LayerCost(10, 50, 50))
    assert forecast.state(0).access_free == 70  # the third load begins when the first has computed, at 60


def test_forecast_after_a_rollback():
    forecast = Forecast(1, 100)
    forecast.add((0, 0), [0], LayerCost(10, 50, 50))
    forecast.load_started((0, 0), 0)
    forecast.load_ended((0, 0), 10)
    forecast.rolled_back((0, 0))
    assert forecast.state(20).compute_end == 80


def test_inputs_on_another_engine():
    subject, _ = scheduler(engines=2)
    subject.open(LayerChain(0, "a"))
    first, second = subject.decide(0), subject.decide(0)
    assert (first.engine, second.engine) == (0, 1)
    assert (second.start, second.idle.compute) == (30, 30)


def test_measurements_move_estimates():
    estimates = Estimates(MODELS, gain=0.5)
    assert estimates.remaining("a", 0) == 28
    estimates.correct("a", 0, compute=40)
    assert estimates.layers("a")[0] == LayerCost(10, 30, 40)
    assert estimates.remaining("a", 0) == 38
    assert estimates.remaining("b", 1) == 60
    with pytest.raises(ValueError, match="gain must be 0 to 1, not 2"):
        Estimates(MODELS, gain=2)


FORK = LayerGraph([(), (0,), (0,), (1,), (2,), (3, 4)])  # two branches of two layers


def forked(order, blocks=(), **costs):
    layers = [costs.get(f"layer{number}", LayerCost(10, 10)) for number in range(6)]
    graph = LayerGraph([FORK.inputs(layer) for layer in range(6)], blocks)
    estimates = Estimates({"m": layers, "n": layers})
    options = {"graphs": {"m": graph, "n": graph}}
    subject = LayerScheduler(order, placement_for("queue_time", [0.0]), Forecast(1, 100), estimates, **options)
    subject.open(LayerChain(0, "m"))
    return subject


def decided(subject):
    found = []
    while (decision := subject.decide(0)) is not None:
        found.append(decision.layer)
    return found


def test_layers_of_parallel_branches_are_candidates_at_once():
    order = Recording()
    subject = forked(order)
    assert decided(subject) == [0, 1, 2, 3, 4, 5]
    seen = [[(layer, passed) for _, layer, passed, _ in candidates] for candidates in order.seen]
    assert seen == [[(0, 0)], [(1, 0), (2, 0)], [(2, 1), (3, 0)], [(3, 1), (4, 0)], [(4, 1)], [(5, 0)]]
    follow = [[count for _, _, _, count in candidates] for candidates in order.seen]
    assert follow == [[1], [1, 1], [1, 0], [0, 0], [1], [0]]  # what reads two branches follows when one is scheduled


def test_idle_time_alternates_between_branches_that_load_and_branches_that_compute():
    heavy, light = LayerCost(30, 2), LayerCost(2, 30)
    layers = {"layer1": heavy, "layer3": heavy, "layer2": light, "layer4": light}
    assert decided(forked(IdleTime(), **layers)) == [0, 2, 1, 4, 3, 5]
    assert decided(forked(Fcfs(), **layers)) == [0, 1, 2, 3, 4, 5]


def test_a_block_is_one_decision():
    order = Recording()
    subject = forked(order, blocks=[None, 7, 8, 7, 8, None])
    subject.open(LayerChain(1, "n"))
    first = [(d.chain.model, d.layer) for d in (subject.decide(0) for _ in range(4))]
    assert first == [("m", 0), ("m", 1), ("m", 3), ("m", 2)] and subject.committed
    assert [(d.layer, d.candidates) for d in (subject.decide(0), subject.decide(0))] == [(4, 1), (5, 2)]
    assert len(order.seen) == 4 and not subject.committed
    assert order.seen[1] == [("m", 1, 0, 0), ("m", 2, 0, 0), ("n", 0, 1, 1)]


@pytest.mark.parametrize("seed", range(30))
def test_random_graphs_are_scheduled_once_and_behind_their_inputs(seed):
    rng = random.Random(seed)
    inputs = [tuple(sorted(rng.sample(range(n), rng.randint(0, min(n, 3))))) for n in range(rng.randint(1, 12))]
    blocks = sorted(rng.randint(0, 5) for _ in inputs)
    costs = [LayerCost(rng.randint(0, 20), rng.randint(0, 20), rng.randint(0, 50)) for _ in inputs]
    window = 1 + seed % 3
    subject = LayerScheduler(
        IdleTime(window), placement_for("queue_time", [0.0]), Forecast(1, 100), Estimates({"m": costs}),
        graphs={"m": LayerGraph(inputs, blocks if seed % 2 else ())},
    )  # fmt: skip
    subject.open(LayerChain(0, "m"))
    order = decided(subject)
    assert sorted(order) == list(range(len(inputs)))
    for place, layer in enumerate(order):
        assert set(inputs[layer]) <= set(order[:place])
