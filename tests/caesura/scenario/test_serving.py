"""The scenario runner: arrivals, CPUs and closed loops, on the simplest model executor and on both real ones."""

from pathlib import Path

import pytest
import simpy

from caesura.scenario import Outcome, Policies, parse_scenario
from caesura.scenario.rtl import RtlRunner
from caesura.scenario.serving import serve
from caesura.scenario.synthetic import SyntheticRunner

HERE = Path()


class Unlimited:
    """Runs any number of models at a time, each for 100 ticks; notes what it is told."""

    def __init__(self, ticks=10):
        self.env, self.ticks = simpy.Environment(), ticks
        self.announced, self.submitted = [], []

    def announce(self, run, delay):
        self.announced.append((run, self.env.now + delay))

    def submit(self, run):
        self.submitted.append((run, self.env.now))
        return self.env.timeout(100)

    def run(self, served):
        self.env.run(until=served)

    def outcome(self, frames):
        return Outcome(1, 1, list(frames))


def scenario(*streams, **machine):
    """Streams of (stages, arrivals, other keys)."""
    return parse_scenario(
        {
            "name": "test",
            "time_unit": "cycles",
            "machine": machine,
            "models": {"m": {"workload": "gemm_1x64x64", "layers": [{"compute": 2000}]}},
            "streams": [
                {"name": f"s{i}", "stages": stages, "arrivals": arrivals, **keys}
                for i, (stages, arrivals, keys) in enumerate(streams)
            ],
        },
        "test",
    )


def served(*streams, **machine):
    executor = Unlimited()
    outcome = serve(scenario(*streams, **machine), executor, HERE)
    return executor, [(frame.stream, frame.number, frame.arrival, frame.end) for frame in outcome.frames]


MODEL, CPU = {"model": "m"}, {"cpu": "c", "duration": 5}


def at(*times):
    return {"kind": "trace", "times": list(times)}


def test_stages_follow_each_other_in_ticks_of_the_executor():
    executor, frames = served(([MODEL, CPU, {"model": "m", "priority": 3}], at(2), {"priority": 1, "deadline": 50}))
    assert frames == [("s0", 0, 2, 2 + 10 + 5 + 10)]
    assert [(run.priority, time) for run, time in executor.submitted] == [(1, 20), (3, 20 + 100 + 50)]
    assert executor.submitted[0][0].frame.deadline == 52


def test_the_end_of_cpu_work_is_announced_when_it_begins():
    work = [{**CPU, "announced": True}, MODEL]
    executor, _ = served((work, at(0, 0), {}))
    assert [time for _, time in executor.announced] == [50, 100]  # the second one waits for the CPU
    assert executor.announced == executor.submitted


def test_a_closed_loop_goes_on_when_a_stage_has_ended():
    loop = {"kind": "closed", "count": 3, "think": 4}
    _, frames = served(([CPU, MODEL], loop, {}))
    assert [arrival for _, _, arrival, _ in frames] == [0, 19, 38]
    _, frames = served(([CPU, MODEL], {**loop, "after": "c"}, {}))
    assert [arrival for _, _, arrival, _ in frames] == [0, 9, 18]
    _, frames = served(([MODEL], {**loop, "concurrency": 2}, {}))
    assert [arrival for _, _, arrival, _ in frames] == [0, 0, 14]


def test_a_closed_loop_without_a_count_ends_with_the_others():
    _, frames = served(([MODEL], {"kind": "closed"}, {}), ([MODEL], at(5, 31), {}))
    mine = [frame for frame in frames if frame[0] == "s0"]
    assert [arrival for _, _, arrival, _ in mine] == [0, 10, 20, 30, 40]
    assert mine[-1][-1] == 50 > frames[-1][-1] - 10  # one that was under way when the last of the others ended
    _, frames = served(([MODEL], {"kind": "closed", "concurrency": 2}, {}), ([MODEL], at(5), {}))
    assert sorted(arrival for name, _, arrival, _ in frames if name == "s0") == [0, 0, 10, 10]


LATE = ([{"cpu": "late", "duration": 3000}, MODEL], at(50_000), {})
EARLY = ([{"cpu": "early", "duration": 4000}, MODEL], at(0), {})
BESIDE = ([{"cpu": "beside", "duration": 5000}, MODEL], at(49_000), {})


@pytest.mark.parametrize("runner", [SyntheticRunner, RtlRunner])
def test_cpus_work_in_the_order_of_simulated_time(runner):
    """Whatever the order of streams in the file: work that arrives later takes no CPU from work before it."""
    outcome = runner().run(scenario(LATE, EARLY, BESIDE), Policies.named("fcfs"), HERE)
    ends = {frame.stream: frame.end for frame in outcome.frames}
    assert 4000 < ends["s1"] < 4000 + 5000
    assert 54_000 < ends["s2"] < 54_000 + 5000
    assert 57_000 < ends["s0"] < 57_000 + 5000  # the CPU was busy until 54,000
