"""The layer scheduler: candidates, progress, passed-over counts; its forecast; corrected estimates."""

import pytest

from sw.runtime.estimates import Estimates
from sw.runtime.forecast import Forecast
from sw.runtime.policies import LayerCost, OrderPolicy, placement_for
from sw.runtime.policies.fcfs import Fcfs
from sw.runtime.scheduler import LayerChain, LayerScheduler

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


def test_most_urgent_requests_only():
    subject, _ = scheduler(by_priority=True)
    subject.open(LayerChain(0, "a"))
    subject.open(LayerChain(1, "b", arrival=5, priority=1))
    assert subject.decide(5).request.model == "b"


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
        forecast.add((number, 0), 0, LayerCost(10, 50, 50))
    assert forecast.state(0).access_free == 70  # the third load begins when the first has computed, at 60


def test_forecast_after_a_rollback():
    forecast = Forecast(1, 100)
    forecast.add((0, 0), 0, LayerCost(10, 50, 50))
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
