"""The synthetic machine: overlap, memory, dependencies, preemption."""

import pytest
import simpy

from sim.synthetic import SwitchCost, SyntheticJob, SyntheticMachine

SWITCH = SwitchCost(dump=1.0, restore=1.0, interval=1.0)


class Silent:
    def load_started(self, job): ...
    def load_ended(self, job): ...
    def rolled_back(self, job): ...
    def started(self, job): ...
    def ended(self, job): ...


def run(jobs, engines=1, memory=100, switch=None, at=None, partial=False):
    """Submit ``jobs``, those in ``at`` at the given times."""
    env = simpy.Environment()
    machine = SyntheticMachine(env, engines, memory, Silent(), switch, partial)

    def submit():
        for job in sorted(jobs, key=lambda j: (at or {}).get(j.number, 0)):
            yield env.timeout((at or {}).get(job.number, 0) - env.now)
            machine.submit(job)

    env.process(submit())
    env.run()
    assert all(job.end is not None for job in jobs) and machine.used == 0
    return machine


def test_loads_overlap_compute():
    jobs = [SyntheticJob(n, n, 0, 0, load=10, compute=20) for n in range(3)]
    machine = run(jobs)
    assert [(j.load_start, j.start, j.end) for j in jobs] == [(0, 10, 30), (10, 30, 50), (20, 50, 70)]
    assert (machine.access_busy, machine.compute_busy) == (30, [60])


def test_loads_wait_for_memory():
    jobs = [SyntheticJob(n, n, 0, 0, load=10, compute=20, bytes=60) for n in range(2)]
    run(jobs)
    assert [(j.load_start, j.start) for j in jobs] == [(0, 10), (30, 40)]


def test_partial_loads_pause_while_memory_is_full():
    jobs = [SyntheticJob(n, n, 0, 0, load=12, compute=20, bytes=60) for n in range(2)]
    machine = run(jobs, partial=True)
    # 40 of 60 bytes until 20; the rest when the first has ended, at 32.
    assert [(j.load_start, j.load_end, j.start) for j in jobs] == [(0, 12, 12), (12, 36, 36)]
    assert machine.access_busy == 24


def test_engines_compute_side_by_side_but_share_memory_access():
    jobs = [SyntheticJob(n, n, 0, engine=n, load=10, compute=50) for n in range(2)]
    run(jobs, engines=2)
    assert [j.start for j in jobs] == [10, 20]


def test_dependencies_across_engines():
    first = SyntheticJob(0, 0, 0, 0, load=0, compute=30)
    second = SyntheticJob(1, 0, 1, 1, load=5, compute=10, after=[first])
    other = SyntheticJob(2, 1, 0, 1, load=0, compute=1)
    run([first, second, other], engines=2)
    assert (second.start, other.start) == (30, 40)  # queues are in order


def test_a_layer_that_cannot_fit():
    with pytest.raises(ValueError, match="needs 101 bytes on chip, there are 100: split"):
        run([SyntheticJob(0, 0, 0, 0, 1, 1, bytes=101)])


def test_preemption_at_the_next_cancellation_point():
    long = SyntheticJob(0, 0, 0, 0, load=0, compute=30)
    urgent = SyntheticJob(1, 1, 0, 0, load=0, compute=10, priority=1)
    machine = run([long, urgent], switch=SWITCH, at={1: 14.5})
    assert (urgent.start, urgent.end) == (16, 26)  # to the point at 15, then the dump
    assert (long.end, long.preempted) == (30 + 12, 1)
    assert machine.switch_time == [2]


def test_without_preemption_it_waits():
    long = SyntheticJob(0, 0, 0, 0, load=0, compute=30)
    urgent = SyntheticJob(1, 1, 0, 0, load=0, compute=10, priority=1)
    run([long, urgent], at={1: 14.5})
    assert urgent.start == 30


def test_between_jobs_a_dump_costs_the_same():
    long = [SyntheticJob(n, 0, n, 0, load=0, compute=2, jobs=10) for n in range(10)]
    urgent = SyntheticJob(10, 1, 0, 0, load=0, compute=10, priority=1)
    machine = run([*long, urgent], switch=SWITCH, at={10: 5.5})
    assert long[2].end == 6 and (urgent.start, urgent.end) == (7, 17)
    assert long[3].start == 18 and long[9].end == 20 + 12
    assert (machine.switches, machine.switch_time, [job.preempted for job in long]) == (1, [2], [0] * 10)


def test_what_has_ended_is_not_dumped():
    long = [SyntheticJob(n, 0, n, 0, load=0, compute=2, jobs=2) for n in range(2)]
    urgent = SyntheticJob(2, 1, 0, 0, load=0, compute=10, priority=1)
    machine = run([*long, urgent], switch=SWITCH, at={2: 3.5})
    assert (urgent.start, machine.switches) == (4, 0)


def test_an_announced_job_finds_the_engine_free():
    long = [SyntheticJob(n, 0, n, 0, load=0, compute=2, jobs=10) for n in range(10)]
    urgent = [SyntheticJob(10 + n, 1, n, 0, load=1, compute=4, priority=1, jobs=2, earliest=9) for n in range(2)]
    run([*long, *urgent], switch=SWITCH, at={10: 8, 11: 8})
    assert [(job.load_start, job.start, job.end) for job in urgent] == [(9, 10, 14), (10, 14, 18)]
    assert long[3].end == 8 and long[4].start == 19


def test_requests_that_were_dumped_together_are_restored_together():
    two = [SyntheticJob(n, n % 2, n // 2, 0, load=0, compute=2, jobs=3) for n in range(6)]
    urgent = SyntheticJob(6, 2, 0, 0, load=0, compute=10, priority=1)
    machine = run([*two, urgent], switch=SWITCH, at={6: 3.5})
    assert (urgent.start, two[2].start, two[5].end, machine.switch_time) == (5, 16, 24, [2])


def test_nested_preemption():
    jobs = [SyntheticJob(n, n, 0, 0, load=0, compute=20, priority=n) for n in range(3)]
    run(jobs, switch=SWITCH, at={1: 5, 2: 10})
    assert [j.start for j in jobs] == [0, 6, 11]
    assert [j.end for j in jobs] == [20 + 22 + 22, 6 + 20 + 22, 31]


def test_the_dump_and_rollback_make_room():
    running = SyntheticJob(0, 0, 0, 0, load=0, compute=30, bytes=60)
    loaded = SyntheticJob(1, 1, 0, 0, load=5, compute=5, bytes=40)
    urgent = SyntheticJob(2, 2, 0, 0, load=5, compute=5, bytes=90, priority=1)
    run([running, loaded, urgent], switch=SWITCH, at={2: 10})
    assert (urgent.load_start, urgent.end) == (11, 21)
    assert running.end == 30 + 12
    # It was rolled back, and loaded again while the other one ran on.
    assert (loaded.load_start, loaded.end) == (21, 47)
