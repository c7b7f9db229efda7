"""Placement: distances, preferences, spills."""

from itertools import pairwise

import numpy as np
from hypothesis import given, strategies as st

from compiler.emission.preempt.points import PointLimits, Timeline, choose
from compiler.emission.program.schedule import TaskSchedule
from compiler.emission.program.task import BufferFill, Task
from compiler.plan.options import STRATEGIES, Options
from hw.contract.isa import Op, Segment
from hw.contract.params import preset

TINY = preset("tiny")


def _schedule(durations: list[int], op: Op = Op.MAC) -> TaskSchedule:
    ends = np.cumsum(durations).tolist()
    return TaskSchedule([Task(op, {}) for _ in durations], ends[-1], [0, *ends[:-1]], ends)


def _choose(schedule: TaskSchedule, wanted: PointLimits, dirty=None, spills=None, barred=(), tensors=None):
    cuts = len(schedule.tasks) + 1
    zeros = np.zeros(cuts, np.int64)
    mask = np.isin(np.arange(cuts), list(barred))
    dirty, spills, tensors = (zeros if given is None else np.array(given) for given in (dirty, spills, tensors))
    return choose(Timeline(schedule, TINY), schedule.tasks, dirty, tensors, spills, wanted, mask, TINY.dram_word)


@given(st.lists(st.integers(1, 100), min_size=1, max_size=200), st.integers(1000, 5000))
def test_points_are_at_most_a_spacing_apart_and_at_least_half_of_one(durations, interval):
    schedule, wanted = _schedule(durations), PointLimits(interval)
    cuts = [point.cut for point in _choose(schedule, wanted)]
    starts = [*schedule.starts, schedule.cycles]
    apart = np.diff([starts[cut] for cut in [0, *cuts]])
    assert all(0.5 * wanted.spacing <= distance <= wanted.spacing for distance in apart)
    assert schedule.cycles - starts[cuts[-1] if cuts else 0] <= wanted.spacing + durations[-1]


@given(st.lists(st.integers(1, 100), min_size=1, max_size=200), st.integers(1000, 5000))
def test_no_pause_waits_longer_than_the_interval(durations, interval):
    schedule = _schedule(durations)
    points = _choose(schedule, PointLimits(interval))
    assert all(point.interval <= interval for point in points)
    last = points[-1].cut if points else 0
    assert schedule.cycles - Timeline(schedule, TINY).passed[last] <= interval


def test_a_short_job_needs_no_point():
    assert _choose(_schedule([100] * 10), PointLimits(5000)) == []


def test_a_model_has_no_more_points_than_its_length_allows():
    wanted = PointLimits(1000)
    assert wanted.limited(1_000_000).spacing == wanted.spacing == 200
    assert wanted.limited(1 << 24).spacing == 1024
    assert wanted.limited(1 << 24).longest == wanted.longest


def test_loads_count_as_long_as_they_take_beside_other_engines():
    """Twenty loads of two bursts: points lie closer where another engine's bursts come in between."""
    load = {"len": 512, "hi": 512, "n0": 1, "n1": 1, "n2": 1}
    ends = [60 * (i + 1) for i in range(20)]
    schedule = TaskSchedule([Task(Op.LD2, load) for _ in ends], ends[-1], [0, *ends[:-1]], ends)
    zeros, mask = np.zeros(21, np.int64), np.zeros(21, np.bool_)
    counts = []
    for params in (TINY, preset("base")):
        timeline = Timeline(schedule, params)
        points = choose(timeline, schedule.tasks, zeros, zeros, zeros, PointLimits(2400), mask, params.dram_word)
        cuts = [0, *(point.cut for point in points)]
        counted = timeline.starts + 2 * timeline.dram
        assert len(points) > 1 and all(counted[b] - counted[a] <= 1.3 * 480 for a, b in pairwise(cuts))
        counts.append(len(points))
    assert counts[0] < counts[1]


def test_the_position_with_the_fewest_dirty_bytes_nearby_is_taken():
    dirty = [5000] * 21
    dirty[9] = 10
    assert next(point.cut for point in _choose(_schedule([100] * 20), PointLimits(6000), dirty)) == 9


def test_a_cap_outweighs_the_wait_for_the_units():
    schedule = _schedule([100] * 20)
    dirty = np.full(21, 600)
    dirty[8] = 500
    schedule.ends[7] += 300  # cheap in bytes, but its last instruction ends late
    free = _choose(schedule, PointLimits(6000), dirty)
    assert 8 not in [point.cut for point in free]
    assert next(point.cut for point in _choose(schedule, PointLimits(6000, max_live=500), dirty)) == 8


def test_the_cap_counts_tensors_in_lv2_too():
    schedule = _schedule([100] * 20)
    tensors = np.full(21, 600)
    tensors[8] = 500
    schedule.ends[7] += 300
    assert 8 not in [point.cut for point in _choose(schedule, PointLimits(6000), tensors=tensors)]
    assert next(point.cut for point in _choose(schedule, PointLimits(6000, max_live=500), tensors=tensors)) == 8


def test_a_position_behind_which_a_pause_waits_too_long_is_not_taken():
    schedule = _schedule([100] * 20)
    dirty = np.full(21, 5000)
    dirty[12] = 10
    assert next(point.cut for point in _choose(schedule, PointLimits(6000), dirty)) == 12
    schedule.ends[9] += 9000
    assert next(point.cut for point in _choose(schedule, PointLimits(6000), dirty)) < 10


def test_a_barred_position_is_not_taken():
    dirty = [5000] * 21
    dirty[9] = 10
    assert 9 not in [point.cut for point in _choose(_schedule([100] * 20), PointLimits(6000), dirty, barred=[9])]


def test_instructions_longer_than_the_interval_are_cut_between():
    points = _choose(_schedule([4000] * 5), PointLimits(1000))
    assert [point.cut for point in points] == [1, 2, 3, 4]


def test_points_at_spills_stand_behind_the_store_that_empties_the_last_buffer():
    schedule = _schedule([100] * 30)
    for number in (5, 6, 9):
        task = schedule.tasks[number] = Task(Op.ST2, {"len": 640, "dst_seg": Segment.SCRATCH})
        task.reads.append(BufferFill(None, 0, 0))
    spills = [int(cut in (5, 6)) for cut in range(31)]
    firsts = [
        _choose(schedule, PointLimits(7000, spill_bound=bound), spills=spills)[0].cut for bound in (0, 1000, 1500)
    ]
    assert firsts[0] not in (7, 10) and firsts[1:] == [7, 10]


def test_results_that_go_to_dram_in_any_case_are_no_spills():
    schedule = _schedule([100] * 30)
    schedule.tasks[6] = Task(Op.ST2, {"len": 5000, "dst_seg": Segment.OUTPUTS})
    schedule.tasks[6].reads.append(BufferFill(None, 0, 0))
    assert _choose(schedule, PointLimits(7000, spill_bound=1000)) == _choose(schedule, PointLimits(7000))


def test_strategies_work_together_or_alone():
    schedule = _schedule([100] * 60)
    schedule.tasks[8] = Task(Op.ST2, {"len": 5000, "dst_seg": Segment.SCRATCH})
    schedule.tasks[8].reads.append(BufferFill(None, 0, 0))
    cuts = {
        at: [point.cut for point in _choose(schedule, PointLimits.of(Options(cancel_interval=5600, cancel_at=at)))]
        for at in STRATEGIES
    }
    bound = Options(cancel_interval=5600, cancel_at="spills", cancel_spill_bound=1000)
    assert [point.cut for point in _choose(schedule, PointLimits.of(bound))] == [9]
    assert cuts["spills"] == [] and cuts["intervals"] == cuts["both"] != []


def test_the_executor_runs_ahead_as_far_as_a_queue_holds():
    timeline = Timeline(_schedule([1000] * 10), TINY)
    ahead = TINY.unit_queue_depth
    assert timeline.passed[ahead] < 100
    assert timeline.passed[ahead + 2] == 1000
    assert timeline.halted[3] == 3000
