"""The worked example of cancellation points: its numbers as a schedule, and two real models on the RTL."""

import contextlib
import io
import itertools
import json

import numpy as np
import pytest

from benchmarks.driving import WAYS, FrameSchedule, Slot, Times, latencies, models, schedule
from examples.driving import demo
from examples.driving.chart import chart
from hw.contract.params import preset
from sim.model.bus import ModelBus
from sw.driver import Device
from tests.support.documented import check_documented, documented

FREE = Times(dump=0, restore=0)
DOCUMENTED_WIDTH = "105"  #: columns of the terminal of the documented timelines


@pytest.mark.parametrize(
    ("way", "times", "first", "steady"),
    [
        ("alone", Times(), 55, 55),
        ("without preemption", Times(), 70, 80),
        ("with preemption", Times(), 55, 67),
        ("with preemption", FREE, 55, 65),
    ],
)
def test_latencies_of_the_worked_example(way, times, first, steady):
    latencies = schedule(way, times, frames=6).latencies
    assert latencies[0] == first
    assert len(latencies) >= 5 and latencies[1:] == [steady] * (len(latencies) - 1)


@pytest.mark.parametrize("way", WAYS)
def test_the_accelerator_does_one_thing_at_a_time_and_no_work_is_lost(way):
    slots = [slot for slot in schedule(way, frames=5).slots if slot.what != "parsing"]
    for before, after in itertools.pairwise(slots):
        assert before.end <= after.start
    for frame in range(5):
        assert sum(s.end - s.start for s in slots if (s.what, s.frame) == ("perception", frame)) == 30
    planned = {slot.frame for slot in slots if slot.what == "planning"}
    assert planned >= set(range(4))
    for frame in planned:
        assert sum(s.end - s.start for s in slots if (s.what, s.frame) == ("planning", frame)) == 10


def test_the_dump_overlaps_parsing_and_planning_starts_when_parsing_ends():
    slots = schedule("with preemption").slots
    (parsed,) = [slot.end for slot in slots if (slot.what, slot.frame) == ("parsing", 0)]
    (planning,) = [slot for slot in slots if (slot.what, slot.frame) == ("planning", 0)]
    assert planning.start == parsed == 45
    assert next((slot.start, slot.end) for slot in slots if slot.what == "dump") == (44, 45)


def test_parsing_marks_the_best_class_of_each_cell():
    scores = np.zeros((1, 3, 1, 2), np.float32)
    scores[0, 2, 0, 0] = scores[0, 1, 0, 1] = 1
    cells = models.parse(scores)
    assert cells.dtype == np.float32
    np.testing.assert_array_equal(cells[0, :, 0, :], [[0, 0], [0, 1], [1, 0]])


def test_networks_are_in_the_ratio_of_the_example():
    ratio = models.perception(24).macs / models.planning(24).macs
    assert 2.7 < ratio < 3.3


def test_models_are_wider_for_larger_machines():
    names = {path.name for name in ("tiny", "base") for path in models.models(preset(name))}
    assert len(names) == 4


def test_chart_shows_a_dump_that_is_shorter_than_a_column():
    slots = [Slot("perception", 0, 0, 10), Slot("dump", 0, 10, 10.1), Slot("parsing", 0, 4, 8)]
    accelerator, cpu, _ = chart(FrameSchedule(slots), 1.0)
    assert accelerator.plain.split() == ["accelerator", "PPPPPPPPPPd"]
    assert cpu.plain.split() == ["CPU", "····cccc"]


def test_latencies_of_the_three_ways_on_a_device():
    measured = latencies(Device(ModelBus(preset("tiny"))), frames=2)
    assert tuple(measured) == WAYS
    assert [len(measured[way]) for way in WAYS] == [2, 1, 1]
    assert measured["with preemption"][0] < measured["without preemption"][0]


@pytest.fixture(scope="module")
def demo_run(tmp_path_factory):
    """Exit code of the demo on ``tiny``, what it measured, its trace, and what it printed at a console's width."""
    trace = tmp_path_factory.mktemp("driving") / "trace.json"
    seen, show = {}, demo.show

    def show_and_keep(console, workload, runs):
        seen.update(workload=workload, runs=runs)
        show(console, workload, runs)

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CAESURA_MODELS", raising=False)
        patch.setattr("sys.argv", ["demo", "--trace", str(trace)])
        patch.setenv("COLUMNS", DOCUMENTED_WIDTH)
        patch.setattr(demo, "show", show_and_keep)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            code = demo.main()
    return code, seen["workload"], seen["runs"], json.loads(trace.read_text()), printed.getvalue()


def test_the_demo_succeeds_with_outputs_of_undisturbed_runs(demo_run):
    code, _, runs, _, _ = demo_run
    assert code == 0
    assert all(run.equal for run in runs.values())
    assert sum(request.preempted for request in runs["with preemption"].requests) == 2
    assert not any(request.preempted for request in runs["without preemption"].requests)


def test_planning_takes_a_third_of_perception(demo_run):
    _, workload, _, _, _ = demo_run
    assert 9.5 < workload.planning_units < 10.5


def test_measured_latencies_are_those_of_the_worked_example(demo_run):
    _, _, runs, _, _ = demo_run
    alone, without, preempted = (runs[way].schedule.latencies for way in WAYS)
    assert alone == pytest.approx([55, 55], abs=0.5)
    assert without == pytest.approx([70, 80], abs=0.5)
    assert preempted[0] <= 56
    assert 65 <= preempted[1] <= 67.5


def test_the_demo_writes_a_trace_with_every_kind(demo_run):
    _, _, _, trace, _ = demo_run
    names = [event["name"] for event in trace["traceEvents"] if event["ph"] == "X"]
    for start in ("pause", "drain", "dump", "restore", "resume", "suspended", "running"):
        assert any(name.startswith(start) for name in names), start
    assert not any(name.startswith("waiting") for name in names)  # planning was announced


def test_the_demo_prints_its_tables(demo_run):
    out = demo_run[-1]
    assert "latency of a frame" in out and "what each preemption cost" in out
    assert out.count("accelerator") == 3


@pytest.mark.parametrize("page", ["README.md", "examples/driving/README.md"])
def test_the_demo_prints_what_is_documented(demo_run, page):
    check_documented(documented(page, "with preemption"), _without_trace(demo_run[-1]))


def _without_trace(printed):
    """The documented run writes none."""
    return "\n".join(line for line in printed.splitlines() if "perfetto" not in line)
