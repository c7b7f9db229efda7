"""Placement: distances, preferences, spills."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from compiler.backend.cancel_points import Timeline, Wanted, choose
from compiler.backend.schedule import Schedule
from compiler.backend.tasks import Fill, Task
from hw.isa import Op
from hw.params import preset

TINY = preset("tiny")


def _schedule(durations: list[int], op: Op = Op.MAC) -> Schedule:
    ends = np.cumsum(durations).tolist()
    return Schedule([Task(op, {}) for _ in durations], ends[-1], [0, *ends[:-1]], ends)


def _choose(schedule: Schedule, wanted: Wanted, dirty=None, spills=None, barred=()):
    cuts = len(schedule.tasks) + 1
    zeros = np.zeros(cuts, np.int64)
    mask = np.isin(np.arange(cuts), list(barred))
    dirty, spills = (zeros if given is None else np.array(given) for given in (dirty, spills))
    return choose(Timeline(schedule, TINY), schedule.tasks, dirty, spills, wanted, mask, TINY.dram_word)


@given(st.lists(st.integers(1, 100), min_size=1, max_size=200), st.integers(1000, 5000))
def test_no_distance_exceeds_the_wanted_one_by_more_than_a_quarter(durations, interval):
    schedule = _schedule(durations)
    points = _choose(schedule, Wanted(interval))
    assert all(point.interval <= 1.25 * interval for point in points)
    last = points[-1].cut if points else 0
    assert schedule.cycles - Timeline(schedule, TINY).passed[last] <= 1.25 * interval
    assert [point.cut for point in points] == sorted({point.cut for point in points})


def test_a_short_job_needs_no_point():
    assert _choose(_schedule([100] * 10), Wanted(1000)) == []


def test_the_position_with_the_fewest_dirty_bytes_nearby_is_taken():
    dirty = [5000] * 21
    dirty[9] = 10
    assert next(point.cut for point in _choose(_schedule([100] * 20), Wanted(1500), dirty)) == 9


def test_a_cap_outweighs_the_wait_for_the_units():
    schedule = _schedule([100] * 20)
    dirty = np.full(21, 600)
    dirty[8] = 500
    schedule.ends[7] += 300  # cheap in bytes, but its last instruction ends late
    free = _choose(schedule, Wanted(1500), dirty)
    assert 8 not in [point.cut for point in free]
    assert next(point.cut for point in _choose(schedule, Wanted(1500, max_live=500), dirty)) == 8


def test_a_barred_position_is_not_taken():
    dirty = [5000] * 21
    dirty[9] = 10
    assert 9 not in [point.cut for point in _choose(_schedule([100] * 20), Wanted(1500), dirty, barred=[9])]


def test_instructions_longer_than_the_interval_are_cut_between():
    points = _choose(_schedule([4000] * 5), Wanted(1000))
    assert [point.cut for point in points] == [1, 2, 3, 4]


def test_points_at_spills_stand_behind_the_store_that_empties_the_last_buffer():
    schedule = _schedule([100] * 20)
    for number in (5, 6, 12):
        task = schedule.tasks[number] = Task(Op.ST2, {"n0": 10, "len": 64})
        task.reads.append(Fill(None, 0, 0))
    spills = [int(cut in (5, 6)) for cut in range(21)]
    wanted = Wanted(10_000, spill_bound=1000)
    assert _choose(schedule, wanted, spills=spills) == []  # near the job's start and end
    wanted = Wanted(2500, spill_bound=1000)
    assert [point.cut for point in _choose(schedule, wanted, spills=spills)] == [7]
    wanted = Wanted(2500, spill_bound=1500)
    assert [point.cut for point in _choose(schedule, wanted, spills=spills)] == [13]


def test_the_executor_runs_ahead_as_far_as_a_queue_holds():
    timeline = Timeline(_schedule([1000] * 10), TINY)
    ahead = TINY.unit_queue_depth
    assert timeline.passed[ahead] < 100
    assert timeline.passed[ahead + 2] == 1000
    assert timeline.halted[3] == 3000
