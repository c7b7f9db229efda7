from dataclasses import replace

import pytest

from sw.runtime.preemption_mechanism import Mechanism, Situation, choose, costs

LONG = Situation(
    remaining=1_000_000, elapsed=900_000, halt=5000, dump_bytes=64_000, restore_bytes=64_000, bandwidth=16, switch=3000
)


@pytest.mark.parametrize(
    "change, choice",
    [
        ({}, Mechanism.DUMP),
        ({"remaining": 2000}, Mechanism.WAIT),
        ({"elapsed": 100}, Mechanism.KILL),
        ({"elapsed": 100, "killable": False}, Mechanism.DUMP),
        ({"dump_bytes": 64_000_000}, Mechanism.KILL),
        ({"dump_bytes": 64_000_000, "restore_bytes": 64_000_000, "elapsed": 9_000_000}, Mechanism.WAIT),
    ],
)
def test_cheapest(change, choice):
    assert choose(replace(LONG, **change)) is choice


def test_urgency_weighs_delay_against_work():
    busy = replace(LONG, remaining=30_000, elapsed=10_000_000)
    assert choose(busy, urgency=0.5) is Mechanism.WAIT
    assert choose(busy, urgency=100) is Mechanism.DUMP
    assert costs(busy, 1)[Mechanism.DUMP] == 5000 + 3000 + 4000 + 4000 + 4000 + 6000


def test_a_dump_never_costs_more_than_the_wait_that_it_saves():
    work, until_free = 4000 + 4000 + 6000, 5000 + 3000 + 4000
    enough = replace(LONG, killable=False, remaining=until_free + work)
    assert choose(enough, urgency=1e6) is Mechanism.DUMP
    assert choose(replace(enough, remaining=enough.remaining - 1), urgency=1e6) is Mechanism.WAIT
    announced = replace(enough, notice=until_free)  # the dump is hidden: what follows the notice is saved
    assert choose(announced, urgency=1e6) is Mechanism.DUMP
    assert choose(replace(announced, remaining=announced.remaining - 1), urgency=1e6) is Mechanism.WAIT


def test_a_tie_disturbs_least():
    nothing = Situation(0, 0, 0, 0, 0, 1, 0)
    assert choose(nothing) is Mechanism.WAIT


def test_notice_makes_waiting_and_dumping_cheaper():
    now = replace(LONG, notice=LONG.remaining)
    assert costs(now, 4)[Mechanism.WAIT] == 0
    assert choose(now) is Mechanism.WAIT
    ahead = replace(LONG, notice=LONG.halt + LONG.switch + LONG.dump_bytes / LONG.bandwidth)
    assert costs(ahead, 4)[Mechanism.DUMP] == costs(ahead, 0)[Mechanism.DUMP]


def test_only_what_is_allowed_is_chosen():
    """The cheapest of all is a dump here."""
    assert choose(LONG) is Mechanism.DUMP
    for one in Mechanism:
        assert choose(LONG, allowed=[one]) is one
    priced = costs(LONG, 4.0)
    cheaper = min(Mechanism.WAIT, Mechanism.KILL, key=priced.__getitem__)
    assert choose(LONG, allowed=[Mechanism.WAIT, Mechanism.KILL]) is cheaper
    assert choose(replace(LONG, killable=False), allowed=[Mechanism.KILL]) is Mechanism.KILL  # nothing else is allowed
