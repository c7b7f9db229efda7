"""No storm on the abstract machine exceeds the analysis, and one kills each analysis that forgets a term."""

import random
from dataclasses import replace

import pytest

from sw.admission import (
    AbstractMachine,
    Arrival,
    Delays,
    RequestStream,
    TokenBucket,
    WorkPiece,
    responses,
    worst_phases,
)
from tests.sw.admission.random_sets import some_streams, storms
from tests.sw.admission.test_response_time import example, stream

ALIKE = [frozenset({0})]
APART = [frozenset({0}), frozenset({1}), frozenset({2}), frozenset({0, 1}), frozenset({1, 2})]


def exceeded(streams, arrivals, section=0, delays=Delays):
    """Names of streams of which a request took longer than its bound."""
    bounds = {found.stream.name: found.response for found in responses(streams, section, delays=delays)}
    served = AbstractMachine(streams, arrivals, section).run()
    return {one.stream for one in served if bounds.get(one.stream) is not None and one.response > bounds[one.stream]}


@pytest.mark.parametrize("engines", [ALIKE, APART], ids=["alike", "apart"])
def test_storms_of_random_sets_never_exceed_their_bounds(engines):
    for seed in range(40):
        rng = random.Random(seed)
        streams, section = some_streams(rng, engines), rng.choice([0, 2])
        for arrivals in storms(rng, streams, 12):
            assert not exceeded(streams, arrivals, section), f"seed {seed}"


@pytest.mark.slow
@pytest.mark.parametrize("engines", [ALIKE, APART], ids=["alike", "apart"])
def test_many_storms_of_random_sets_never_exceed_their_bounds(engines):
    for seed in range(1000, 1600):
        rng = random.Random(seed)
        streams, section = some_streams(rng, engines), rng.choice([0, 2])
        for arrivals in storms(rng, streams, 40):
            assert not exceeded(streams, arrivals, section), f"seed {seed}"


def test_every_request_is_served():
    rng = random.Random(5)
    for engines in (ALIKE, APART):
        streams = some_streams(rng, engines)
        for arrivals in storms(rng, streams, 5):
            served = AbstractMachine(streams, arrivals).run()
            assert sorted((s.stream, s.due) for s in served) == sorted(
                (name, one.due) for name, many in arrivals.items() for one in many
            )


def test_a_request_alone_takes_its_own_time():
    for one in some_streams(random.Random(1), ALIKE):
        served = AbstractMachine([one], {one.name: [Arrival(3, 5)]}).run()
        assert served[0].end == 5 + one.start + one.computing


@pytest.mark.parametrize(("number", "rounds", "least"), [(0, 400, 1.05), (1, 150, 1.05), (2, 60, 1.01)])
def test_a_search_comes_near_to_the_bounds_of_the_example(number, rounds, least):
    streams = example()
    bound = responses(streams)[number].response
    found = worst_phases(streams, streams[number], rounds=rounds, seed=3)
    assert bound / least <= found.response <= bound and found.requests > 100


def test_a_search_is_repeatable():
    streams = example()
    assert worst_phases(streams, streams[0], rounds=20, seed=1) == worst_phases(streams, streams[0], rounds=20, seed=1)


# -- analyses that forget something ------------------------------------------------------------------------------------
def at(*cycles, jitter=0):
    return [Arrival(cycle, cycle + jitter) for cycle in cycles]


class NoBlocking(Delays):
    def blocking(self, stream):
        return 0


class NoRestoreUnderWay(Delays):
    def under_way(self, stream):
        return 0


class NoSwitch(Delays):
    def switch(self, stream, urgent):
        return 0


class NoRefill(Delays):
    def switch(self, stream, urgent):
        victims = [k for k in self.streams if stream.priority <= k.priority < urgent.priority]
        return max((k.dump + k.restore for k in victims), default=0)


class NoSection(Delays):
    def __init__(self, streams, section=0):
        super().__init__(streams, 0)


class NoWaitForTheCpu(Delays):
    def on_cpu(self, stream):
        return 0


class NoJitter(Delays):
    def lateness(self, stream, urgent, response):
        return 0


class JitterAlone(Delays):
    def lateness(self, stream, urgent, response):
        return urgent.jitter


class NoGang(Delays):
    def gang(self, stream, urgent):
        return 0


class NoReturns(Delays):
    def _returns(self, stream, urgent):
        return {urgent: 1}


#: An urgent stream, and one below, with all costs of a switch.
URGENT = stream("urgent", 2, 200, 10)
LOW = RequestStream("low", 1, 1_000, (WorkPiece(20, 7), WorkPiece(20, 7), WorkPiece(5)), restore=9, refill=4, start=3)


def on(engines, *args, **more):
    return stream(*args, engines=frozenset(engines), **more)


STORMS = {
    "arrives as a piece below begins": (NoBlocking, [URGENT, LOW], {"low": at(0), "urgent": at(3)}),
    "arrives as a restore begins": (
        NoRestoreUnderWay,
        [URGENT, replace(URGENT, name="other", priority=3), replace(LOW, pieces=(WorkPiece(20, 7),) * 9)],
        {"low": at(0), "urgent": at(4), "other": at(40)},
    ),
    "suspends the one below": (NoSwitch, [URGENT, LOW], {"low": at(0), "urgent": at(4)}),
    "loses its prologues": (NoRefill, [URGENT, LOW], {"low": at(0), "urgent": at(4)}),
    "arrives as the host begins something": (NoSection, [URGENT], {"urgent": at(0)}),
    "comes late, and the next in time": (
        NoJitter,
        [replace(URGENT, period=40, jitter=25), stream("low", 1, 1_000, *[1] * 25)],
        {"urgent": [Arrival(0, 25), Arrival(40, 40), Arrival(80, 80)], "low": at(25)},
    ),
    "waits for the CPU": (
        NoWaitForTheCpu,
        [
            RequestStream("urgent", 2, 500, (WorkPiece(5), WorkPiece(9, 0, on_cpu=True), WorkPiece(5))),
            RequestStream(
                "low", 1, 500, (WorkPiece(5), WorkPiece(50, 0, on_cpu=True), WorkPiece(5)), engines=frozenset({1})
            ),
        ],
        {"urgent": at(1), "low": at(0)},
    ),
    "was held up on another engine": (
        JitterAlone,
        [on({1}, "high", 3, 100, 50), on({0, 1}, "middle", 2, 100, 10), on({0}, "low", 1, 500, *[1] * 45)],
        {"high": at(0), "middle": at(0, 100), "low": at(50)},
    ),
    "is kept from a second engine again": (
        NoGang,
        [on({0}, "high", 3, 500, 10), on({0, 1}, "middle", 2, 500, 10), on({1}, "low", 1, 500, *[30] * 4)],
        {"high": at(29), "middle": at(1), "low": at(0)},
    ),
    "comes back once what had suspended it has ended": (
        NoReturns,
        [
            on({1}, "high", 3, 500, 20),
            RequestStream("middle", 2, 500, (WorkPiece(10, 7),) * 5, engines=frozenset({0, 1}), restore=9, refill=4),
            RequestStream("low", 1, 900, (WorkPiece(10, 7),) * 10, restore=9, refill=4),
        ],
        {"high": at(5), "middle": at(0), "low": at(1)},
    ),
}
"""By what happens in it: what the analysis forgets, streams, arrivals."""


@pytest.mark.parametrize("name", STORMS)
def test_a_storm_kills_an_analysis_that_forgets_a_term(name):
    forgetful, streams, arrivals = STORMS[name]
    section = 6 if forgetful is NoSection else 0
    assert not exceeded(streams, arrivals, section)
    assert exceeded(streams, arrivals, section, forgetful)


def test_a_storm_kills_an_analysis_of_the_first_request_alone(monkeypatch):
    from tests.sw.admission.test_response_time import BRIL

    arrivals = {"first": at(*range(0, 700, 50)), "second": at(*range(0, 700, 70))}
    assert not exceeded(BRIL, arrivals)
    monkeypatch.setattr("sw.admission.response_time._Recurrence._requests", lambda self: 1)
    assert exceeded(BRIL, arrivals) == {"second"}


def test_a_storm_kills_an_analysis_that_takes_more_for_the_tail_than_is_one():
    streams = [stream("urgent", 2, 30, 10), stream("low", 1, 500, 20, 20, 20)]
    wrong = [streams[0], replace(streams[1], tail=60)]
    arrivals = {"urgent": at(*range(0, 300, 30)), "low": at(0)}
    assert not exceeded(streams, arrivals)
    took = [one.response for one in AbstractMachine(streams, arrivals).run() if one.stream == "low"]
    assert max(took) > responses(wrong)[1].response


# -- clients that send more than they may ------------------------------------------------------------------------------
def let_in(streams, sent, *, policing=True):
    """Arrivals of requests that come as they like: when the bucket of their stream lets them in, or at once."""
    buckets = {one.name: TokenBucket(one.period, one.burst, one.jitter) for one in streams}
    return {
        name: at(*(buckets[name].admit(cycle) if policing else cycle for cycle in cycles))
        for name, cycles in sent.items()
    }


def test_a_storm_of_an_urgent_client_kills_a_machine_without_policing():
    streams, sent = [URGENT, LOW], {"urgent": range(1, 400, 20), "low": [0]}
    assert not exceeded(streams, let_in(streams, sent))
    assert "low" in exceeded(streams, let_in(streams, sent, policing=False))


@pytest.mark.parametrize("engines", [ALIKE, APART], ids=["alike", "apart"])
def test_clients_that_send_as_they_like_never_exceed_bounds_if_they_are_policed(engines):
    unpoliced = 0
    for seed in range(40):
        rng = random.Random(seed)
        streams = some_streams(rng, engines)
        until = 6 * max(one.period for one in streams)
        sent = {one.name: sorted(rng.randrange(until) for _ in range(rng.choice([3, 40]))) for one in streams}
        assert not exceeded(streams, let_in(streams, sent)), f"seed {seed}"
        unpoliced += bool(exceeded(streams, let_in(streams, sent, policing=False)))
    assert unpoliced > 10
