"""Scenarios on the compiled RTL: every request ends with the outputs of its model alone."""

from pathlib import Path

import pytest

from benchmarks.scheduling_rtl import check_random
from caesura import api
from caesura.scenario import Policies, ScenarioError, load_scenario, parse_scenario
from caesura.scenario.rtl import RtlRunner
from hw.contract.params import ParamError
from sim.backends import MODEL
from sim.model import ModelBus
from sw.runtime.preemption_mechanism import Mechanism

SMALL = Path("examples/scenarios/small_models.toml")


@pytest.mark.parametrize("policy", ["idle_time", "queue_time"])
def test_small_models(policy):
    runner = RtlRunner()
    outcome = runner.run(load_scenario(SMALL), Policies.named(policy), SMALL.parent)
    assert runner.mismatches == []
    assert len(outcome.frames) == 9 and outcome.makespan < 1000
    assert {run.model for run in outcome.layers} == {"digits", "filter", "dense"}
    assert all(run.decided <= run.start < run.end for run in outcome.layers)


def test_a_device_of_ones_own():
    """One that has times, but no data, takes as long as one that has both."""
    scenario = load_scenario(SMALL)
    opened = []

    def timed(params, backend, progress):
        opened.append((params.name, backend))
        return api.Device(ModelBus(params, data=False, progress=progress))

    runners = RtlRunner(MODEL), RtlRunner(MODEL, open_device=timed)
    real, mine = (runner.run(scenario, Policies.named("idle_time"), SMALL.parent) for runner in runners)
    assert opened == [(scenario.machine.preset, MODEL)]
    assert [frame.end for frame in mine.frames] == [frame.end for frame in real.frames]


def test_driving_with_networks():
    path = Path("examples/scenarios/driving_networks.toml")
    runner = RtlRunner()
    outcome = runner.run(load_scenario(path), Policies.named("fcfs"), path.parent)
    assert runner.mismatches == []
    first, *later = [frame.turnaround for frame in outcome.frames]
    unit = first / 55  # nothing disturbs the first frame: 30 + 15 + 10
    assert all(64.5 <= turnaround / unit <= 67 for turnaround in later)  # each waits for the plan of the one before
    plans = [run for run in outcome.layers if run.model == "plan"]
    dumps = [span for span in outcome.timeline if span.kind == "dump"]
    # The dump may still run when the plan is decided on, which takes no time where nothing else could be next.
    free = [max([run.ready, *(dump.end for dump in dumps if dump.end <= run.start)]) for run in plans]
    waits = [run.start - begin for run, begin in zip(plans, free, strict=True)]
    assert len(waits) == 6 and max(waits) < 200 and all(dump.end - dump.start < 600 for dump in dumps)
    alone = 6 * sum(runner.alone[model].compute for model in ("perception", "plan"))
    assert alone == pytest.approx(sum(outcome.compute_busy), rel=0.01)  # preempted bodies count whole
    assert sum(run.preempted for run in outcome.layers if run.model == "perception") == 5
    assert {"pause", "resume", "dump", "restore", "suspended"} <= {span.kind for span in outcome.timeline}
    assert min(span.start for span in outcome.timeline) >= 0


@pytest.mark.parametrize("seed", [0, 3, 7])
def test_random_scenarios(seed):
    assert check_random(seed) is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(56))
def test_many_random_scenarios(seed):
    assert check_random(seed) is None


def test_the_preset_can_be_changed_and_copies_be_told():
    content = {
        "name": "x",
        "time_unit": "cycles",
        "machine": {"params": {"engins": 2}},
        "models": {"m": {"workload": "gemm_1x64x64", "copies": 3}},
        "streams": [{"name": "s", "stages": [{"model": "m"}], "arrivals": {"kind": "trace", "times": [0, 0, 0]}}],
    }
    with pytest.raises(ParamError, match="no parameter named 'engins'"):
        RtlRunner().run(parse_scenario(content, "test"), Policies.named("fcfs"), Path())
    content["machine"] = {}
    runner = RtlRunner()
    outcome = runner.run(parse_scenario(content, "test"), Policies.named("round_robin"), Path())
    begun = sorted(run.decided for run in outcome.layers if run.layer == 0)
    assert begun[1] < min(frame.end for frame in outcome.frames)  # they do not take turns
    assert runner.mismatches == []


def test_models_are_compiled_for_the_memory_they_run_on(monkeypatch):
    """Parameters with equal digests may have other estimates."""
    compiled = []

    def compile(path, params, **options):
        compiled.append(params.dram_latency)
        return api_compile(path, params, **options)

    api_compile = api.compile
    monkeypatch.setattr(api, "compile", compile)
    runner = RtlRunner()
    for latency in (40, 400, 40):
        content = {
            "name": "x",
            "machine": {"params": {"dram_latency": latency}},
            "models": {"m": {"workload": "gemm_1x64x64"}},
            "streams": [{"name": "s", "stages": [{"model": "m"}], "arrivals": {"kind": "trace", "times": [0]}}],
        }
        runner.run(parse_scenario(content | {"time_unit": "cycles"}, "test"), Policies.named("fcfs"), Path())
    assert compiled == [40, 400]


def test_the_end_of_work_on_the_cpu_can_be_announced():
    ends = {}
    for announced in (False, True):
        content = {
            "name": "x",
            "time_unit": "cycles",
            "machine": {"preemption": {"dump": 0, "restore": 0, "interval": 1}},
            "models": {"long": {"workload": "conv_32x28x28_32_k3_s1_p1"}, "short": {"workload": "gemm_1x64x64"}},
            "streams": [
                {"name": "background", "stages": [{"model": "long"}], "arrivals": {"kind": "trace", "times": [0]}},
                {
                    "name": "urgent",
                    "stages": [{"cpu": "parse", "duration": 50_000, "announced": announced}, {"model": "short"}],
                    "arrivals": {"kind": "trace", "times": [0]},
                    "priority": 1,
                },
            ],
        }
        runner = RtlRunner(rule=lambda situation: Mechanism.DUMP)
        outcome = runner.run(parse_scenario(content, "test"), Policies.named("fcfs"), Path())
        assert runner.mismatches == []
        ends[announced] = next(frame.end for frame in outcome.frames if frame.stream == "urgent")
        assert max(run.preempted for run in outcome.layers) == 1
        (short,) = [run for run in outcome.layers if run.model == "short"]
        assert short.start > 50_000
    assert ends[True] < ends[False] - 500


def test_models_and_units_must_suit_the_rtl():
    content = {
        "name": "x",
        "models": {"m": {"layers": [{"compute": 1}]}},
        "streams": [{"name": "s", "stages": [{"model": "m"}], "arrivals": {"kind": "trace", "times": [0]}}],
    }
    with pytest.raises(ScenarioError, match=r"'m' has only layers with durations.*give onnx, image or workload"):
        RtlRunner().run(parse_scenario(content, "test"), Policies.named("fcfs"), Path())
    content["models"] = {"m": {"workload": "gemm_1x64x64"}}
    content["time_unit"] = "fortnights"
    with pytest.raises(ScenarioError, match=r"time_unit 'fortnights'.*use cycles, ns"):
        RtlRunner().run(parse_scenario(content, "test"), Policies.named("fcfs"), Path())


def test_weights_stay_where_the_scenario_says_so():
    ends = []
    for keep in (False, True):
        content = {
            "name": "x",
            "time_unit": "cycles",
            "machine": {"preset": "base"},
            "models": {"m": {"workload": "bert_tiny_1x8", "keep_weights": keep}},
            "streams": [{"name": "s", "stages": [{"model": "m"}], "arrivals": {"kind": "trace", "times": [0, 0]}}],
        }
        runner = RtlRunner(MODEL)
        ends.append(runner.run(parse_scenario(content, "test"), Policies.named("fcfs"), Path()).makespan)
        assert runner.mismatches == []
    assert ends[1] < 0.9 * ends[0]


@pytest.mark.parametrize(("limit", "turns"), [(131_072, True), (40_000, False)])
def test_models_that_take_turns_are_told(limit, turns, capsys):
    arrivals = {"kind": "trace", "times": [0]}
    content = {
        "name": "x",
        "time_unit": "cycles",
        "models": {
            "large": {"workload": "gemm_1x64x64", "lv2_limit": limit},
            "small": {"workload": "gemm_1x64x64", "lv2_limit": 40_000},
        },
        "streams": [{"name": n, "stages": [{"model": n}], "arrivals": arrivals} for n in ("large", "small")],
    }
    RtlRunner(MODEL).run(parse_scenario(content, "test"), Policies.named("fcfs"), Path())
    told = capsys.readouterr().err
    assert ("models take turns" in told and "with --lv2-limit 91072, or without" in told) == turns
