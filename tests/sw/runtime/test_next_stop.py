from types import SimpleNamespace

import pytest

from hw.contract.spaces import Space
from hw.image import CancelPoint, LiveRange
from sw.runtime.next_stop import NextStop, displaced, next_stop, usual_stop


def live(size, space=Space.LV2, dirty=True):
    return LiveRange(space, 6 if space == Space.LV2 else 0, 0, size, dirty)


POINTS = [
    CancelPoint(0, 0, 5, 100, [live(10)]),
    CancelPoint(1, 0, 9, 300, [live(20), live(7, Space.LV1), live(5, dirty=False)]),
    CancelPoint(2, 1, 15, 50, [live(30, Space.LV0_ACC)]),
]  # fmt: skip
META = SimpleNamespace(cancel_points=POINTS, jobs=[SimpleNamespace(live=[]), SimpleNamespace(live=[live(40)])])
MODEL, OTHER = (SimpleNamespace(name=name, image=SimpleNamespace(meta=META)) for name in "ab")


def queue(age, *jobs):
    return SimpleNamespace(number=3, age=age, unfinished=list(jobs))


def job(index, point=None, model=MODEL):
    return SimpleNamespace(of_image=True, model=model, index=index, point=point)


@pytest.mark.parametrize(
    ("age", "cycles", "bytes_there"), [(0, 100, 10), (100, 0, 10), (101, 299, 27), (400, 0, 27), (401, 0, 40)]
)
def test_the_next_point_of_the_body_that_runs(age, cycles, bytes_there):
    """Behind the last one, the next body of the model finds in LV2 what it needs."""
    found = next_stop(queue(age, job(0), job(1)), [MODEL])
    assert found is not None and (found.engine, found.cycles) == (3, cycles)
    assert found.dirty(Space.LV2, Space.LV1) == bytes_there


def test_a_body_that_was_resumed_counts_from_its_point():
    assert next_stop(queue(10, job(0, POINTS[0]), job(1)), [MODEL]).cycles == 290


def test_nothing_is_foreseen_of_others_and_of_empty_queues():
    assert next_stop(queue(0), [MODEL]) is None
    assert next_stop(queue(0, job(0, model=OTHER), job(0)), [MODEL]) is None
    assert next_stop(queue(500, job(0), job(1, model=OTHER)), [MODEL]).live == []


def test_a_pause_that_is_sent_later_may_meet_any_point():
    """The mean of 100, 300 and 50 cycles, and the point with most bytes that are nowhere else."""
    found = usual_stop(queue(250, job(0), job(1)), [MODEL])
    assert found is not None and found.cycles == 75 and found.live is POINTS[2].live
    assert usual_stop(queue(0, job(0, model=OTHER)), [MODEL]) is None and usual_stop(queue(0), [MODEL]) is None


def test_what_is_displaced():
    """Memories of an engine are overwritten whole; in LV2 there may be room for both."""
    stops = [NextStop(0, 9, [live(100), live(8, Space.LV1)]), NextStop(1, 9, [live(50), live(4, Space.LV0_ACC)])]
    incoming = SimpleNamespace(engines=(1,), windows=lambda: [(0, 600), (600, 700)])
    assert displaced(stops, incoming, 1000) == 4
    assert displaced(stops, incoming, 800) == 4 + 50
    assert displaced(stops, incoming, 700) == 4 + 150
