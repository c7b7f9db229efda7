"""Idle-time layer scheduling: both idle times, ties, the starvation guard, windows."""

import itertools
import random
from dataclasses import replace

import pytest

from sw.runtime.policies import AcceleratorState, Candidate, LayerCost, Release, idle_times
from sw.runtime.policies.idle_time import IdleTime
from sw.runtime.policies.starvation import guarded

IDLE = AcceleratorState(0, 0, 0, 100)


def state(compute_end=0.0, access_free=0.0, used=0, releases=(), now=0.0, total=100):
    return AcceleratorState(now, compute_end, access_free, total, used, tuple(Release(*r) for r in releases))


def candidate(request, load, compute, size=0, **more):
    return Candidate(request, f"model {request}", 0, LayerCost(load, compute, size), **more)


def chosen(current, *candidates, **options):
    return IdleTime(**options).choose(current, candidates).request


def test_compute_idles_for_the_memory_access_beyond_the_lead():
    assert idle_times(state(compute_end=50, access_free=20), candidate(0, 45, 5)) == (15, 0)
    assert idle_times(state(compute_end=50, access_free=20), candidate(0, 30, 5)) == (0, 0)


def test_memory_access_that_was_free_before_now_starts_now():
    assert idle_times(state(compute_end=50, access_free=20, now=30), candidate(0, 30, 5)).compute == 10


def test_compute_that_ended_before_now_idles_from_now_on():
    assert idle_times(state(compute_end=20, access_free=5, now=30), candidate(0, 12, 5)) == (12, 0)
    assert idle_times(state(compute_end=50, access_free=5, now=30), candidate(0, 12, 5, free=20.0)) == (12, 0)


def test_memory_access_idles_until_memory_is_freed():
    full = state(compute_end=90, access_free=20, used=100, releases=[(60, 50), (90, 50)])
    assert idle_times(full, candidate(0, 10, 5, size=50)).access == 40
    assert idle_times(full, candidate(0, 10, 5, size=51)).access == 70
    assert idle_times(full, candidate(0, 10, 5, size=51)).compute == 10  # the load begins when compute has ended
    assert idle_times(state(compute_end=90, access_free=20, used=50, releases=[(60, 50)]), candidate(0, 10, 5, 50)) == (
        0,
        0,
    )


def test_inputs_that_come_late_leave_compute_idle():
    assert idle_times(state(compute_end=50), candidate(0, 10, 5, ready=70)).compute == 20


def test_smallest_sum_of_idle_times():
    now = state(compute_end=50, access_free=20)
    assert chosen(now, candidate(0, 60, 100), candidate(1, 35, 1)) == 1


def test_tie_goes_to_less_memory_access_idle_time():
    full = state(compute_end=40, access_free=0, used=90, releases=[(10, 50)])
    waits, slow = candidate(0, 5, 99, size=50), candidate(1, 50, 1)
    assert [sum(idle_times(full, c)) for c in (waits, slow)] == [10, 10]
    assert chosen(full, waits, slow) == 1


def test_full_tie_goes_to_the_layer_that_uses_the_lead_then_to_the_oldest_request():
    heavy, light = candidate(0, 100, 10), candidate(1, 5, 20)
    assert chosen(state(compute_end=200), light, heavy) == 0
    assert chosen(IDLE, candidate(4, 5, 5, arrival=3.0), candidate(2, 5, 5, arrival=7.0)) == 4


@pytest.mark.parametrize("window", [1, 2])
def test_a_layer_that_has_waited_goes_before_its_equals(window):
    heavy = candidate(0, 100, 10, following=(LayerCost(5, 20),))
    light = candidate(1, 5, 20, passed_over=4, following=(LayerCost(100, 10),))
    assert chosen(state(compute_end=300), light, heavy, window=window) == 1
    assert chosen(state(compute_end=300), replace(light, passed_over=3), heavy, window=window) == 0


def test_the_smaller_sum_wins_however_close():
    assert chosen(state(compute_end=96), candidate(0, 97, 10), candidate(1, 96, 20)) == 1


def run(models, decisions, policy, total=1000):
    """Schedule by hand on an accelerator with two resources; returns the order and the idle time of both."""
    t1 = t2 = 0.0
    passed, order, idle = dict.fromkeys(models, 0), [], []
    for _ in range(decisions):
        current = state(compute_end=t2, access_free=t1, total=total)
        open_models = [candidate(number, *models[number], passed_over=passed[number]) for number in models]
        picked = policy.choose(current, open_models)
        idle.append(idle_times(current, picked))
        t1 += picked.cost.load
        t2 = max(t1, t2) + picked.cost.compute
        passed = {number: 0 if number == picked.request else count + 1 for number, count in passed.items()}
        order.append(picked.request)
    return order, idle


@pytest.mark.parametrize("window", [1, 2])
def test_a_compute_heavy_and_a_memory_heavy_model_alternate_and_neither_resource_idles(window):
    order, idle = run({0: (10, 100), 1: (100, 10)}, 40, IdleTime(window))
    steady = order[2:]
    assert all(a != b for a, b in itertools.pairwise(steady))
    assert all(each == (0, 0) for each in idle[2:])


def test_a_short_layer_waits_for_its_equals_twice_each_at_most():
    order, _ = run({0: (10, 100), 1: (100, 10), 2: (1, 1)}, 60, IdleTime(starvation_limit=1000))
    gaps = [b - a for a, b in itertools.pairwise([place for place, number in enumerate(order) if number == 2])]
    assert gaps and max(gaps) <= 7


def test_a_model_that_arrives_takes_part_from_the_next_decision():
    seen = []

    class Watching(IdleTime):
        def choose(self, current, candidates):
            seen.append({c.request for c in candidates})
            return super().choose(current, candidates)

    policy = Watching()
    policy.choose(IDLE, [candidate(0, 10, 100), candidate(1, 100, 10)])
    arrived = policy.choose(state(120, 20), [candidate(0, 10, 100), candidate(1, 100, 10), candidate(2, 100, 1)])
    assert seen == [{0, 1}, {0, 1, 2}]
    assert arrived.request == 2


def test_a_layer_at_the_limit_goes_next_regardless():
    now = state(compute_end=50)
    bad, good = candidate(0, 500, 1, passed_over=8), candidate(1, 10, 10)
    assert chosen(now, bad, good, starvation_limit=8) == 0
    assert chosen(now, replace(bad, passed_over=7), good, starvation_limit=8) == 1


def test_the_guard_acts_early_where_two_near_the_limit():
    one, two = candidate(0, 500, 1, passed_over=7), candidate(1, 500, 1, passed_over=7)
    good = candidate(2, 1, 1)
    assert guarded(good, [one, two, good], 8) in (one, two)
    assert guarded(good, [one, replace(two, passed_over=6), good], 8) is good


@pytest.mark.parametrize("seed", range(100))
def test_no_layer_is_passed_over_more_often_than_its_limit(seed):
    rng = random.Random(seed)
    limit = rng.randint(1, 12)
    passed = dict.fromkeys(range(rng.randint(1, limit + 1)), 0)
    for _ in range(200):
        candidates = [candidate(number, 1, 1, passed_over=count) for number, count in passed.items()]
        picked = guarded(rng.choice(candidates[: rng.randint(1, 3)]), candidates, limit).request
        passed = {number: 0 if number == picked else count + 1 for number, count in passed.items()}
        assert max(passed.values()) <= limit, f"seed {seed}"


def price_by_hand(current, sequence):
    """Idle times of a sequence of costs, as the method states them, layer after layer."""
    t1, t2, used, releases = current.access_start, current.compute_end, current.memory_used, list(current.releases)
    total = access = 0.0
    for cost in sequence:
        now = replace(current, access_free=t1, compute_end=t2, memory_used=used, releases=tuple(releases))
        idle = idle_times(now, Candidate(0, "m", 0, cost))
        total, access = total + sum(idle), access + idle.access
        t1 += idle.access + cost.load
        t2 = max(t1, t2) + cost.compute
        used += cost.bytes
        releases.append(Release(t2, cost.bytes))
    return total, access, t2 - t1


@pytest.mark.parametrize("seed", range(60))
def test_combinations_are_priced_as_their_layers_one_by_one(seed):
    rng = random.Random(seed)
    window, models = rng.randint(2, 3), rng.randint(1, 4)
    releases = sorted((rng.randint(1, 99), 20) for _ in range(rng.randint(0, 4)))
    current = state(100, rng.randint(0, 99), 20 * len(releases), releases)
    costs = {
        m: [
            LayerCost(rng.randint(0, 60), rng.randint(0, 60), rng.randint(0, 60)) for _ in range(rng.randint(1, window))
        ]
        for m in range(models)
    }
    candidates = [Candidate(m, f"{m}", 0, layers[0], following=tuple(layers[1:])) for m, layers in costs.items()]
    picked = IdleTime(window, starvation_limit=1000).choose(current, candidates)
    length = min(window, sum(map(len, costs.values())))
    prices = {}
    for order in itertools.product(range(models), repeat=length):
        if all(order.count(m) <= len(costs[m]) for m in costs):
            taken = [costs[m][order[:place].count(m)] for place, m in enumerate(order)]
            prices[order] = price_by_hand(current, taken)
    best = min(prices.values())
    assert picked.request in {order[0] for order, price in prices.items() if price == best}, f"seed {seed}"


@pytest.mark.parametrize("options", [{"window": 0}, {"window": 9}, {"starvation_limit": 0}])
def test_options_out_of_range(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        IdleTime(**options)
