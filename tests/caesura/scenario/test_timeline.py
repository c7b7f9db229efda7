"""Times of a scenario in the trace, in microseconds as viewers of traces want them."""

import json
from pathlib import Path

import pytest

from caesura.scenario.outcome import LayerRun, Outcome, spans
from caesura.scenario.runner import run_scenario
from sim.synthetic.machine import StateMove
from sim.trace import trace_events

SCENARIOS = Path(__file__).parents[3] / "examples" / "scenarios"


@pytest.mark.parametrize(("unit", "microseconds"), [("s", 1e6), ("ms", 1e3), ("us", 1.0), ("cycles", 1e-3)])
def test_a_unit_of_time_is_as_long_as_it_says(unit, microseconds):
    run = LayerRun("stream", "model", 0, 0, 0.0, 0.0, 0, 1, 0.0, (0.0, 0.0), 1.0, 2.0, 2.0, 5.0)
    events = trace_events(spans(Outcome(1, 1, layers=[run]), unit))["traceEvents"]
    found = sorted((e["ts"], e["dur"]) for e in events if e["ph"] == "X")
    wanted = [1 * microseconds, 1 * microseconds, 2 * microseconds, 3 * microseconds]
    assert [*found[0], *found[1]] == pytest.approx(wanted)


def test_dumps_and_restores_have_a_line():
    moves = [StateMove("dump", 0, 3.0, 4.0, models=("a", "b")), StateMove("restore", 0, 9.0, 11.0, models=("a",))]
    found = spans(Outcome(1, 1, moves=moves), "us")
    wanted = [("dump: a, b", 3000, 4000), ("restore: a", 9000, 11000)]
    assert [(span.name, span.start, span.end) for span in found] == wanted
    assert {span.track for span in found} == {("accelerator", "engine 0 switches")}


def test_preemptions_of_a_scenario_are_in_its_trace(tmp_path):
    result = run_scenario(SCENARIOS / "driving.toml", "fcfs", trace=tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert result["preemptions"] > 0
    assert {"dump", "restore"} <= {event["cat"] for event in events if event["ph"] == "X"}
    assert {"dump: perception", "restore: perception"} <= {event["name"] for event in events}


def test_who_is_suspended_and_whose_data_are_dumped_is_in_the_trace_of_real_models(tmp_path):
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(PREEMPTED)
    result = run_scenario(scenario, "fcfs", trace=tmp_path / "trace.json")
    assert result["preemptions"] > 0
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    wanted = {"dump: long", "restore: long", "suspended: long", "running: long", "running: short", "pause: long"}
    assert wanted <= {event["name"] for event in events}


#: On preset tiny; both use all of LV2, so that what the long one has there is dumped.
PREEMPTED = """
name = "two"
time_unit = "cycles"
[machine.preemption]
dump = 1
restore = 1
interval = 1
[models.long]
workload = "conv_32x14x14_32_k3_s1_p1"
lv2_limit = 131072
[models.short]
workload = "conv_16x8x8_16_k3_s1_p1"
lv2_limit = 131072
[[streams]]
name = "a"
stages = [{ model = "long" }]
arrivals = { kind = "trace", times = [0] }
[[streams]]
name = "b"
stages = [{ model = "short", priority = 1 }]
arrivals = { kind = "trace", times = [20000] }
"""
