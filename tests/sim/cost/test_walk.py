"""The walk over units and semaphores that program order and the bound share."""

from hw.contract.isa import Unit
from sim.cost.walk import Walk


def test_a_unit_starts_when_it_is_free_and_the_oldest_signals_are_there():
    walk = Walk[str]({"free": 2})
    assert walk.occupy(Unit.LD1, walk.take(["free"]), 10) == 10
    walk.signal(["full"], 10)
    assert walk.occupy(Unit.LD1, walk.take(["free"]), 10) == 20  # the buffer is free at 0, the unit at 10
    walk.signal(["full"], 20)
    assert walk.ready(Unit.LD0, ["full"]) == 10
    assert walk.ready(Unit.LD0, ["full", "free"]) is None
    assert walk.occupy(Unit.LD0, walk.take(["full"]), 3) == 13
    assert walk.ready(Unit.LD0, ["full"]) == 20


def test_counts_that_nothing_took_are_left():
    walk = Walk[int]({4: 1, 5: 1})
    walk.signal([6], 7)
    assert walk.take([4]) == 0
    assert walk.left() == [5, 6]
