"""Shares of the path to memory among models on engines of their own."""

from types import SimpleNamespace

import pytest

from sw.runtime.forecast import Estimates
from sw.runtime.memory_share import LOST_BY_STREAM, MemoryShares, MemoryUser, fair_speeds, may_join
from sw.runtime.policies.contract import LayerCost
from sw.runtime.scheduler import LayerChain


@pytest.mark.parametrize(
    ("demands", "speeds"),
    [
        ([1.0], [1.0]), ([], []), ([0.02, 0.01, 0.9], [1, 1, 1]),
        ([1.0, 1.0], [0.5 / (1 + LOST_BY_STREAM)] * 2),
        ([0.2, 1.0], [1.0, 1 / (1 + LOST_BY_STREAM) - 0.2]),
        ([0.3, 0.4, 0.2], [1, 1, 1]),
    ],
)  # fmt: skip
def test_the_bandwidth_is_shared_evenly(demands, speeds):
    assert fair_speeds(demands) == pytest.approx(speeds)
    assert sum(speed * demand for speed, demand in zip(speeds, demands, strict=True)) <= 1


def test_the_longest_may_always_run():
    assert may_join(MemoryUser(1.0, 1000), [MemoryUser(1.0, 900), MemoryUser(1.0, 1000)])
    assert may_join(MemoryUser(1.0, 1000), [MemoryUser(1.0, 900)], ready=False)


def test_a_short_one_waits_where_it_would_slow_the_longest():
    assert not may_join(MemoryUser(1.0, 100), [MemoryUser(0.8, 1000)])
    assert may_join(MemoryUser(0.1, 100), [MemoryUser(0.8, 1000)])
    assert not may_join(MemoryUser(0.1, 100), [MemoryUser(0.8, 1000)], ready=False)


def test_one_with_time_to_spare_gives_way():
    """The longest computes; the one that loads has twice the time that it needs."""
    assert may_join(MemoryUser(1.0, 400), [MemoryUser(0.0, 1000), MemoryUser(1.0, 450)])
    assert not may_join(MemoryUser(1.0, 400), [MemoryUser(0.0, 1000), MemoryUser(1.0, 500)])


def test_a_deadline_is_time_to_spare():
    """Who has to end sooner needs its speed sooner, and may run whatever others do if it has least time."""
    assert may_join(MemoryUser(1.0, 100, due=100), [MemoryUser(1.0, 1000)])
    assert not may_join(MemoryUser(1.0, 400), [MemoryUser(0.0, 1000), MemoryUser(1.0, 450, due=500)])


def test_a_more_urgent_one_waits_for_nobody_less_urgent():
    assert may_join(MemoryUser(1.0, 100, priority=1), [MemoryUser(1.0, 1000)])
    assert not may_join(MemoryUser(1.0, 100), [MemoryUser(1.0, 1000, priority=1)])


def chain_of(number, engines, **more):
    chain = LayerChain(number, f"m{number}", engines=frozenset(engines), **more)
    chain.candidates = {0: 0}
    return chain


def test_chains_by_their_engines():
    costs = {"m1": [LayerCost(90, 100)] * 10, "m2": [LayerCost(90, 100)] * 2, "m3": [LayerCost(90, 100)]}
    shares, chains = MemoryShares(Estimates(costs)), [chain_of(1, {0}), chain_of(2, {1}), chain_of(3, {1, 2})]
    begun = set()

    def run(chain):
        decision = SimpleNamespace(chain=chain, key=(chain.number, 0))
        return SimpleNamespace(decision=decision, group=SimpleNamespace(cost=LayerCost(90, 100)))

    running = [run(chains[0])]
    assert shares.may_join(chains[0], chains, running, begun, 16, 0)
    assert not shares.may_join(chains[1], chains, running, begun, 16, 0)
    assert shares.may_join(chains[1], chains[1:], [run(chains[2])], begun, 16, 0)  # they share an engine
    chains[1].yielded = 16  # two sets of engines are there, so one other
    assert shares.may_join(chains[1], chains, running, begun, 16, 0)
    chains[1].yielded, chains[0].parked = 0, True
    assert shares.may_join(chains[1], chains, running, begun, 16, 0)
