"""What the forecast makes of slots, of when loads begin, and of an engine's turnaround."""

import random

import pytest

from sw.runtime.forecast import Forecast
from sw.runtime.policies import AcceleratorState, Candidate, LayerCost, Release, idle_times


def forecast(*costs, slots=4):
    result = Forecast(1, 1000, slots)
    for number, cost in enumerate(costs):
        result.add((number, 0), [0], cost)
    return result


def test_a_load_waits_until_a_job_that_holds_a_slot_has_ended():
    three = LayerCost(30, 30, jobs=3)
    some = forecast(LayerCost(10, 100), three)
    state = some.state(0)
    assert state.access_free == 40 and some.expected_start((1, 0)) == 110
    assert some.slot(state.access_start) == 110  # the first job holds the fourth slot
    assert some.room([0], LayerCost(9, 1, jobs=1), 40) == 110
    assert some.room([0], LayerCost(9, 1, jobs=3), 40) == pytest.approx(130 - 6)  # the third waits until 130
    assert some.room([0], LayerCost(0, 1, jobs=3), 40) == 40  # nothing to load
    assert forecast(LayerCost(10, 100), three, slots=None).slot(40) == 40


def test_scheduled_loads_wait_for_slots_too():
    some = forecast(LayerCost(10, 100), LayerCost(30, 30, jobs=3), LayerCost(5, 5))
    assert some.state(0).access_free == 115


def test_loads_end_when_forecast_if_that_is_known_no_better():
    some = forecast(LayerCost(10, 100), LayerCost(50, 30))
    some.state(0)
    some.load_noticed((0, 0), 5, 20)
    assert some.state(20).access_free == 60
    assert some.state(70).access_free == 70
    late = forecast(LayerCost(10, 100), LayerCost(50, 30))
    late.state(0)
    late.load_noticed((0, 0), 15, 20)
    assert late.state(20).access_free == 65


def test_engines_take_a_moment_from_job_to_job():
    some = forecast(LayerCost(0, 100), LayerCost(0, 30, jobs=3), LayerCost(0, 1))
    some.turnaround = 2
    some.state(0)
    assert [some.expected_start((number, 0)) for number in range(3)] == [2, 104, 140]


STREAMS = LayerCost(load=50, compute=40, bytes=10, overlap=40, streamed=40)


def test_what_a_layer_streams_keeps_memory_access_busy():
    forecast = Forecast(1, 100)
    forecast.add((0, 0), [0], STREAMS)
    state = forecast.state(0)
    assert (state.compute_end, state.access_free) == (50, 50)  # computes from 10 on
    assert idle_times(state, Candidate(1, "m", 0, LayerCost(30, 5))) == (30, 0)
    forecast.load_started((0, 0), 0)
    forecast.load_ended((0, 0), 10)
    assert forecast.state(10).access_free == 50
    forecast.started((0, 0), 10)
    assert forecast.state(30).access_free == 50  # half of it is left
    forecast.ended((0, 0), 50)
    assert forecast.state(50).access_start == 50


def test_homes_of_tensors_are_used_memory():
    forecast = Forecast(1, 100)
    forecast.resident = 60
    forecast.add((0, 0), [0], LayerCost(10, 40, 30))
    state = forecast.state(0)
    assert (state.memory_total, state.memory_used, state.memory_free) == (100, 90, 10)
    assert state.room_at(10) == 0 and state.room_at(30) == 50


def test_durations_scale_but_what_is_streamed_stays_a_part_of_the_load():
    scaled = LayerCost(50, 40, 10, overlap=45, streamed=40).scaled(100, 20)
    assert scaled == LayerCost(100, 20, 10, overlap=82.5, streamed=80)
    assert scaled.ahead == 20


def test_partial_loads_begin_where_there_is_some_room():
    whole, partial = (Forecast(1, 100, partial=partial) for partial in (False, True))
    for some in (whole, partial):
        some.add((0, 0), [0], LayerCost(12, 20, 60))
    candidate = Candidate(1, "m", 0, LayerCost(12, 20, 60))
    assert idle_times(whole.state(0), candidate) == (12, 20)  # from 12 to 32 nothing loads
    assert idle_times(partial.state(0), candidate) == (4, 12)  # from 20 to 32
    for some, end in ((whole, 44), (partial, 36)):
        some.add((1, 0), [0], candidate.cost)
        assert some.state(0).access_free == end


@pytest.mark.parametrize("seed", range(20))
def test_partial_loads_take_no_longer_than_whole_ones_and_no_less_than_the_load(seed):
    rng = random.Random(seed)
    releases = tuple(Release(float(time), rng.randint(1, 30)) for time in sorted(rng.sample(range(100), 5)))
    used = sum(release.bytes for release in releases)
    whole, partial = (AcceleratorState(0.0, 100.0, 0.0, used + 20, used, releases, each) for each in (False, True))
    for size in (0, 10, 20, 30, used + 20):
        begin, load = rng.uniform(0, 100), rng.uniform(1, 50)
        ends = [state.load_end(begin, load, size) for state in (partial, whole)]
        assert begin + load <= ends[0] + 1e-9 and ends[0] <= ends[1] + 1e-9
