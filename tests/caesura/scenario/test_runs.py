"""Scenarios on the synthetic machine: what each policy is for shows in the metrics."""

import json
from pathlib import Path

import pytest

from benchmarks.scenarios import pairs
from benchmarks.scheduling import check_random
from caesura import UsageError
from caesura.scenario import Policies, ScenarioError, load_scenario, parse_scenario, run_scenario
from caesura.scenario.schema import PreemptionSpec
from caesura.scenario.synthetic import SyntheticRunner
from sw.runtime.metrics import makespan_bound
from sw.runtime.policies import ORDER, PLACEMENT
from tests.support.sampled import sampled
from tests.system.command import caesura_command

SCENARIOS = Path("examples/scenarios")
HERE = Path()


def run(content, policy="fcfs", **options):
    return SyntheticRunner().run(parse_scenario(content, "test"), Policies.named(policy, options=options), HERE)


def scenario(layers, arrivals, **machine):
    return {
        "name": "test",
        "machine": machine,
        "models": {name: {"layers": each} for name, each in layers.items()},
        "streams": [{"name": name, "stages": [{"model": name}], "arrivals": arrivals} for name in layers],
    }


def test_one_long_operator_delays_others_less_than_with_the_shortest_queue():
    waits = {p: run_scenario(SCENARIOS / "long_operator.toml", p)["wait"] for p in ("queue_time", "shortest_queue")}
    assert waits["queue_time"]["mean"] <= 0.8 * waits["shortest_queue"]["mean"]
    assert waits["queue_time"]["p99"] <= 0.6 * waits["shortest_queue"]["p99"]


def test_opposing_models_keep_both_resources_busy():
    one, both = (run_scenario(SCENARIOS / "opposing_pair.toml", policy) for policy in ("fcfs", "idle_time"))
    assert both["compute_utilisation"] >= 1.44 * one["compute_utilisation"]
    assert min(both["compute_utilisation"], both["access_utilisation"]) > 99


def test_makespans_of_16_pairs_are_near_the_bound():
    ratios = []
    for names in pairs.NAMES:
        pair = pairs.pair(*names, count=2)
        outcome = SyntheticRunner().run(pair, Policies.named("idle_time"), HERE)
        ratios.append(outcome.makespan / makespan_bound(*pairs.demand(pair)))
    assert min(ratios) >= 1
    assert sum(ratios) / len(ratios) <= 1.03


def driving(policy="idle_time", **changes):
    """Latencies of all frames, from the start of their perception, and the outcome. ``changes``: of the machine."""
    scenario = load_scenario(SCENARIOS / "driving.toml")
    scenario = scenario.model_copy(update={"machine": scenario.machine.model_copy(update=changes)})
    outcome = SyntheticRunner().run(scenario, Policies.named(policy), SCENARIOS)
    starts = [run.start - 0.5 for run in outcome.layers if (run.model, run.layer) == ("perception", 0)]  # with its load
    return [frame.end - start for frame, start in zip(outcome.frames, starts, strict=True)], outcome


def test_driving_is_the_worked_example():
    latencies, outcome = driving()
    assert latencies[0] == 55 and latencies[1:-1] == pytest.approx([67] * 38)
    assert outcome.preemptions == 39 and outcome.switch_time == 39 * 2
    parsed = [run.decided + 1.5 for run in outcome.layers if (run.model, run.layer) == ("plan", 0)]  # decided ahead
    planned = [run.load_start for run in outcome.layers if (run.model, run.layer) == ("plan", 0)]
    assert planned[:39] == pytest.approx(parsed[:39])  # every dump had ended when parsing did


def test_driving_without_preemption():
    latencies, outcome = driving("fcfs", preemption=None)
    assert latencies[:-1] == pytest.approx([70] + [80] * 38, abs=1.5)  # first loads of models are hidden
    assert outcome.preemptions == 0


def test_driving_with_dumps_that_are_not_worth_it():
    """Perception takes 30, so a wait is never longer."""
    assert driving(preemption=PreemptionSpec(dump=1.0, restore=7.0, interval=1.0))[1].preemptions == 39
    assert driving(preemption=PreemptionSpec(dump=1.0, restore=30.0, interval=1.0))[1].preemptions == 0


@pytest.mark.parametrize(("arrival", "stops", "start"), [(24.9, 1, 27), (25.1, 0, 30), (28, 0, 30)])
def test_a_dump_never_costs_more_than_the_wait_that_it_saves(arrival, stops, start):
    """Dump and restore take 3. Of 30, a wait of 5.1 or 4.9 is left; half an interval and the dump are waited for in
    any case."""
    layers = {"long": [{"compute": 6}] * 5, "short": [{"compute": 4}]}
    content = scenario(layers, None, preemption={"dump": 1.5, "restore": 1.5, "interval": 1})
    for stream, time in zip(content["streams"], (0, arrival), strict=True):
        stream["arrivals"] = {"kind": "trace", "times": [time]}
    content["streams"][1]["priority"] = 1
    outcome = run(content)
    (short,) = [layer for layer in outcome.layers if layer.model == "short"]
    assert (outcome.preemptions, short.start) == (stops, pytest.approx(start, abs=0.5))


@pytest.mark.parametrize("policy", [*ORDER, *PLACEMENT])
def test_every_policy_serves_every_request_at_the_same_switch_cost(policy):
    layers = {"long": [{"load": 1, "compute": 50, "bytes": 10}], "short": [{"load": 2, "compute": 4, "bytes": 10}] * 2}
    content = scenario(
        layers, {"kind": "periodic", "period": 30, "count": 4}, memory=100,
        preemption={"dump": 2, "restore": 3, "interval": 1},
    )  # fmt: skip
    content["streams"][1]["priority"] = 1
    outcome = run(content, policy)
    assert len(outcome.frames) == 8 and len(outcome.layers) == 12
    assert outcome.preemptions > 0 and outcome.switch_time == 5 * outcome.preemptions


BRANCHES = [
    {"load": 2, "compute": 2, "bytes": 10},
    {"load": 30, "compute": 4, "bytes": 10, "after": [0], "block": "left"},
    {"load": 30, "compute": 4, "bytes": 10, "after": [1], "block": "left"},
    {"load": 4, "compute": 30, "bytes": 10, "after": [0], "block": "right"},
    {"load": 4, "compute": 30, "bytes": 10, "after": [3], "block": "right"},
    {"load": 2, "compute": 2, "bytes": 10, "after": [2, 4]},
]


def test_branches_of_one_model_overlap_each_other():
    """One loads, the other computes: in the order of the file neither hides the other."""
    content = scenario({"m": [{k: v for k, v in layer.items() if k != "block"} for layer in BRANCHES]},
                       {"kind": "closed", "count": 1}, memory=1000)  # fmt: skip
    spans = {policy: run(content, policy).makespan for policy in ("fcfs", "idle_time")}
    assert spans["idle_time"] < 0.75 * spans["fcfs"]


def test_blocks_stay_together_and_several_layers_can_be_decided_on_at_once():
    arrivals = {"kind": "trace", "times": [0]}
    content = scenario({"a": BRANCHES, "b": BRANCHES}, arrivals, memory=1000)
    layers = sorted(run(content, "round_robin").layers, key=lambda layer: layer.start)
    order = [(layer.model, layer.layer) for layer in layers]
    for model in "ab":
        for first in (1, 3):
            assert order[order.index((model, first)) + 1] == (model, first + 1)
    content["machine"]["layers_per_decision"] = 3
    content["models"] = {name: {"layers": [{"compute": 5}] * 6} for name in "ab"}
    decided = [layer.decided for layer in run(content, "round_robin").layers]
    assert len(set(decided)) <= 12 / 3 + 1


def test_cascade_waits_for_the_cpu():
    content = scenario({"m": [{"compute": 10}]}, {"kind": "trace", "times": [5, 5]})
    content["streams"][0]["stages"] = [{"model": "m"}, {"cpu": "parse", "duration": 7}, {"model": "m"}]
    outcome = run(content)
    assert [frame.end for frame in outcome.frames] == [5 + 10 + 7 + 3 + 10, 5 + 10 + 10 + 7 + 3 + 10]


def test_closed_loop_sends_the_next_request_when_one_has_ended():
    arrivals = {"kind": "closed", "count": 3, "think": 4}
    outcome = run(scenario({"m": [{"load": 5, "compute": 10}]}, arrivals))
    assert [frame.arrival for frame in outcome.frames] == [0, 19, 38]


def test_estimates_are_corrected_by_measurements():
    content = scenario({"m": [{"compute": 100}]}, {"kind": "closed", "count": 20}, estimate_error=0.5)
    layers = run(content, "idle_time").layers
    idle_of = [abs(layer.expected_start - layer.start) for layer in layers]
    assert max(idle_of[10:]) < 0.1
    content = scenario({"m": [{"load": 100, "compute": 100}]}, {"kind": "closed", "count": 20}, estimate_error=0.5)
    errors = [abs(layer.expected_start - layer.start) for layer in run(content, "idle_time").layers]
    assert errors[0] > 1 and errors[-1] < 0.01


def test_arrivals_from_a_file(tmp_path):
    content = scenario({"m": [{"compute": 1}]}, {"kind": "trace", "file": "times.txt"})
    (tmp_path / "times.txt").write_text("10\n3\n\n")
    parsed = parse_scenario(content, "test")
    outcome = SyntheticRunner().run(parsed, Policies.named("fcfs"), tmp_path)
    assert [frame.arrival for frame in outcome.frames] == [3, 10]
    (tmp_path / "times.txt").write_text("10\nsoon\n")
    with pytest.raises(ScenarioError, match=r"times\.txt: line 2: 'soon' is not a time"):
        SyntheticRunner().run(parsed, Policies.named("fcfs"), tmp_path)


def test_the_same_scenario_twice_is_the_same():
    first, second = (run_scenario(SCENARIOS / "mixed_reality.toml", "deadline") for _ in range(2))
    for result in (first, second):
        del result["decision_us"]
    assert first == second


@pytest.mark.parametrize("seed", sampled(range(200), 60))
def test_random_scenarios(seed):
    assert check_random(seed) is None


@pytest.mark.slow
def test_ten_thousand_random_scenarios():
    assert [problem for seed in range(10_000) if (problem := check_random(seed))] == []


def test_unknown_policy_and_backend():
    with pytest.raises(UsageError, match="no policy named 'best'; there are fcfs"):
        run_scenario(SCENARIOS / "driving.toml", "best")
    with pytest.raises(UsageError, match=r"backend 'icarus' cannot run scenarios; use .*synthetic"):
        run_scenario(SCENARIOS / "driving.toml", "fcfs", "icarus")
    with pytest.raises(
        UsageError, match="model 'perception' has only layers with durations, which backend 'synthetic' runs"
    ):
        run_scenario(SCENARIOS / "driving.toml", "fcfs", "pysim")
    with pytest.raises(UsageError, match="policy 'queue_time' has no options, window given"):
        run_scenario(SCENARIOS / "driving.toml", "queue_time", options={"window": 2})


@pytest.mark.parametrize(
    ("policy", "engines", "noted"), [("queue_time", 1, True), ("queue_time", 2, False), ("fcfs", 1, False)]
)
def test_placement_in_one_queue_is_told_to_be_fcfs(tmp_path, policy, engines, noted):
    text = (SCENARIOS / "driving.toml").read_text().replace("engines = 1", f"engines = {engines}")
    (tmp_path / "s.toml").write_text(text)
    code, out, err = caesura_command("scenario", str(tmp_path / "s.toml"), "--policy", policy)
    assert code == 0, err
    assert ("this is fcfs; raise machine.engines" in " ".join(out.split())) == noted


def test_command_line(tmp_path):
    file, trace = str(SCENARIOS / "opposing_pair.toml"), tmp_path / "trace.json"
    options = ("--policy", "idle_time", "--option", "window=2", "--json", "--trace", trace)
    code, out, err = caesura_command("scenario", file, *options)
    assert code == 0, err
    assert json.loads(out)["requests"] == 40
    assert json.loads(trace.read_text())["traceEvents"]
    code, _, err = caesura_command("scenario", file, "--option", "window=wide")
    assert code == 2 and "must be name=number, such as window=3" in err


def test_a_stream_without_requests_is_refused():
    content = scenario({"m": [{"compute": 1}]}, {"kind": "trace", "times": []})
    with pytest.raises(ScenarioError, match=r"stream 'm': arrivals: no request arrives: give times, or remove it"):
        run(content)
