"""The simpler order policies, the deadline mode, PREMA-like tokens, and the registry."""

import pytest

from sw.runtime.policies import ORDER, AcceleratorState, Candidate, LayerCost, by_name

STATE = AcceleratorState(100.0, 100.0, 100.0, 1000)


def candidate(request, load=10, compute=10, **more):
    return Candidate(request, f"model {request}", 0, LayerCost(load, compute), **more)


def chosen(policy, *candidates, state=STATE, **options):
    return by_name(policy, **options).choose(state, candidates).request


def test_fcfs_takes_the_oldest():
    assert chosen("fcfs", candidate(0, arrival=5), candidate(1, arrival=3)) == 1


def test_round_robin_takes_turns_by_layer():
    policy, models = by_name("round_robin"), [candidate(0), candidate(3), candidate(7)]
    assert [policy.choose(STATE, models).request for _ in range(4)] == [0, 3, 7, 0]
    assert policy.choose(STATE, models[2:]).request == 7


def test_shortest_job_first_compares_whole_requests():
    assert chosen("sjf", candidate(0, alone=50, remaining=1), candidate(1, alone=20, remaining=20)) == 1


def test_deadline_takes_the_earliest_when_slack_is_short():
    late = candidate(0, load=500, deadline=150.0, remaining=40.0)
    later = candidate(1, load=500, deadline=160.0, remaining=45.0)
    cheap = candidate(2, load=1)
    assert chosen("deadline", later, late, cheap) == 0


def test_deadline_takes_least_idle_time_when_there_is_slack():
    assert chosen("deadline", candidate(0, load=500, deadline=1000.0, remaining=40.0), candidate(1, load=1)) == 1


def test_prema_takes_the_shortest_of_those_with_most_tokens():
    low = candidate(0, arrival=100, alone=10, remaining=10)
    high = candidate(1, arrival=100, alone=90, remaining=90, priority=2)
    assert chosen("prema", low, high) == 1
    assert chosen("prema", low, candidate(2, arrival=100, alone=5, remaining=5)) == 2


def test_prema_lets_those_who_waited_catch_up():
    waited = candidate(0, arrival=0, alone=10, remaining=10)  # slowdown 10: above the level of priority 2
    high = candidate(1, arrival=100, alone=90, remaining=90, priority=2)
    assert chosen("prema", waited, high) == 0


@pytest.mark.parametrize("name", ORDER)
def test_every_order_policy_chooses_a_candidate(name):
    models = [candidate(number) for number in range(5)]
    assert by_name(name).choose(STATE, models) in models


def test_unknown_names_and_options():
    with pytest.raises(ValueError, match="no policy named 'fifo' for the order of layers; there are fcfs, round_robin"):
        by_name("fifo")
    with pytest.raises(ValueError, match="policy 'idle_time' has no option 'size'; it takes window, starvation_limit"):
        by_name("idle_time", size=3)
