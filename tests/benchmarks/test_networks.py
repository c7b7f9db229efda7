"""``caesura bench networks``: small ones on the fast model of ``tiny``; refusals, steps on the CPU, wrong outputs."""

import pickle
from typing import cast

import pytest

from benchmarks import lab as laboratory, networks, report
from benchmarks.cold_compile import ColdCompilation, compile_cold, refusal
from benchmarks.lab import Lab
from benchmarks.networks import TARGETS, TORCHVISION, Networks, waited
from benchmarks.workloads import names
from caesura.views.progress import Progress
from compiler import CompileError
from compiler.frontend.problems import NodeProblem, UnsupportedModel
from hw.contract.params import preset
from sw.driver import JobResult, LoadedModel
from sw.runtime import RunStats
from sw.runtime.stats import StepOnCpu

SMALL = "tcn_24"
REFUSED = ColdCompilation(b"", 3.0, 100, "refused: 2 Resize (no such operator)")


@pytest.fixture
def lab():
    with Progress() as progress, Lab(preset("tiny"), "model", progress) as lab:
        yield lab


def in_process(name, params):
    """A compilation here, where the tests' caches are."""
    if name != SMALL:
        return REFUSED
    image = laboratory.caesura.compile(laboratory.workload(name), params, options=laboratory.ALONE)
    return ColdCompilation(image.to_bytes(), 2.0, 90)


def test_a_network_says_what_its_cycles_were_lost_to(lab):
    value, correct, detail = Networks(compiling=in_process).of_peak(lab, SMALL)
    assert correct and 0 < value < 100 and detail["on_the_cpu"] == []
    assert value + sum(detail["lost"].values()) == pytest.approx(100, abs=1)
    assert set(detail["lost"]) >= {"array", "accumulators", "empty", "overhead", "weights", "prologue", "events", "cpu"}
    assert (detail["compile_seconds"], detail["compile_megabytes"]) == (2.0, 90)


def test_a_refused_network_says_by_which_operators(lab):
    row = networks.Figure("x", networks.Target(50, 60), lambda lab: Networks(compiling=in_process).of_peak(lab, "x"))
    told = row.row(lab)
    assert (told.value, told.ok, told.explanation) == (None, False, REFUSED.refused)


def test_acceptance_and_the_slowest_compilation(lab):
    compiled = []

    def compiling(name, params):
        compiled.append(name)
        return in_process(name, params)

    several = Networks((SMALL, "other"), (SMALL,), compiling)
    value, _, detail = several.accepted(lab)
    assert (
        value == 1 and detail["refused"] == {"other": REFUSED.refused} and detail["explanation"].startswith("other: ")
    )
    assert several.slowest_compile(lab).detail == {"worst": "other", "seconds": {SMALL: 2.0, "other": 3.0}}
    assert compiled == [SMALL, "other"]  # each once


def test_wrong_outputs_are_not_accepted(lab, monkeypatch):
    golden = laboratory.golden.golden_outputs
    monkeypatch.setattr(laboratory.golden, "golden_outputs", lambda *a: {k: v + 1 for k, v in golden(*a).items()})
    monkeypatch.setattr(laboratory, "compare_by_operator", lambda *given: (False, "x differs"))
    several = Networks((SMALL,), (), in_process)
    assert several.accepted(lab).detail["refused"] == {SMALL: "x differs"}
    assert not several.of_peak(lab, SMALL).correct


def test_outputs_within_contracts_are_right(lab, monkeypatch):
    golden = laboratory.golden.golden_outputs
    monkeypatch.setattr(laboratory.golden, "golden_outputs", lambda *a: {k: v + 1 for k, v in golden(*a).items()})
    assert Networks((SMALL,), (), in_process).of_peak(lab, SMALL).correct
    assert not lab.run_image(SMALL, in_process(SMALL, lab.params).image()).correct


def test_the_machine_waits_for_steps_on_the_cpu():
    times = [(100, 120, 150, 300), (0, 0, 320, 900)]  # of prologue, and of body
    jobs = [JobResult(cast(LoadedModel, None), number, 0, *at, {}) for number, at in enumerate(times)]
    steps = tuple(StepOnCpu((), "softmax", begin, end) for begin, end in ((10, 60), (305, 315), (950, 1000)))
    assert waited(RunStats(800, 1200, 1, 0.5, [], jobs, 0, steps)) == 800 + 50 + 50


def test_a_cold_compilation_is_ended_at_its_limit():
    assert pickle.loads(pickle.dumps(REFUSED)) == REFUSED
    done = compile_cold(SMALL, preset("tiny"))
    assert done.image().meta.jobs and 0 < done.seconds < 60 and done.megabytes > 10
    ended = compile_cold("mobilenet_v3_small", preset("tiny"), 1)
    with pytest.raises(CompileError, match="mobilenet_v3_small: compiling it was ended after 1 CPU seconds"):
        ended.image()


def test_refusals_are_counted_by_operator():
    nodes = [NodeProblem("a", "Resize", "cubic"), NodeProblem("b", "Resize", "other"), NodeProblem("c", "If", "none")]
    assert refusal(UnsupportedModel("m", nodes, "")) == "refused: 2 Resize (cubic); 1 If (none)"


def test_names_and_the_usual_backend(monkeypatch):
    assert len(set(TORCHVISION)) == 25 and {*TORCHVISION, *TARGETS} <= set(names())
    monkeypatch.setattr(networks, "figures", lambda: [])
    assert [report.run_bench(name, "tiny", None).backend for name in ("networks",)] == ["model"]
    assert report.run_bench("networks", "tiny", "native").backend == "native"
