"""What layer-by-layer scheduling gains on the compiled RTL: rows of ``caesura bench scheduling``.

Demands of models (the bound that a makespan is compared with) are their durations when they run alone, measured on the
same RTL.
"""

import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, Measured
from benchmarks.lab import Lab
from benchmarks.rows import Target
from benchmarks.scenarios import rtl_pairs
from benchmarks.scenarios.random_rtl import random_rtl
from caesura.scenario import Outcome, Policies, Scenario
from caesura.scenario.report import report
from caesura.scenario.rtl import RtlRunner
from sw.runtime import metrics
from sw.runtime.choice import Choice

POLICIES = ("idle_time", "fcfs", "round_robin", "sjf", "deadline", "prema", "shortest_queue", "queue_time")
ON_BASE = {"measured_on": "cxxrtl, base"}


def figures() -> list[Figure]:
    """Rows measured on ``cxxrtl``. All but the campaign on preset ``base``, whatever preset was asked for."""
    return [
        Figure("rtl_opposing_pair_utilisation", Target(44, 50), _utilisation),
        Figure("rtl_opposing_pair_of_bound", Target(90, 97), _of_bound),
        Figure("rtl_makespan_pairs", Target(1.10, 1.03, "x", at_most=True), _makespans),
        Figure("rtl_idle_estimate_error", Target(10, 3, "%", at_most=True), _idle_error),
        Figure("rtl_random_failures", Target(0, 0, "scenarios", at_most=True), _campaign),
    ]


@cache
def _runner() -> RtlRunner:
    return RtlRunner("cxxrtl")


@cache
def _pair(names: tuple[str, str], layers: tuple[int, int], count: int, policy: str) -> tuple[Scenario, Outcome, bool]:
    """A pair under a policy: the run, and whether all outputs equal those of the models alone."""
    scenario = rtl_pairs.pair(*names, layers=layers, count=count)
    outcome = _runner().run(scenario, Policies.named(policy), Path())
    return scenario, outcome, not _runner().mismatches


def _long_pair(policy: str) -> tuple[Scenario, Outcome, bool]:
    return _pair(rtl_pairs.NAMES[0], (14, 14), 3, policy)


def _demand(outcome: Outcome) -> tuple[float, float]:
    """Cycles of memory access and of compute per engine that all requests take alone."""
    durations = _runner().alone
    loads = [durations[run.model].load for run in outcome.layers if run.layer == 0]
    computes = [durations[run.model].compute for run in outcome.layers if run.layer == 0]
    return sum(loads), sum(computes)


def _utilisation(lab: Lab) -> Measured:
    """Compute utilisation of a closed loop of both against one model at a time, on the same run time."""
    busy = {}
    for policy in ("fcfs", "idle_time"):
        _, outcome, _ = _long_pair(policy)
        busy[policy] = metrics.utilisation(sum(outcome.compute_busy), outcome.makespan * outcome.engines)
    equal = all(_long_pair(policy)[2] for policy in busy)
    detail = {**ON_BASE, **{policy: round(value, 2) for policy, value in busy.items()}, **_names(_long_pair("fcfs")[0])}
    _, outcome, _ = _long_pair("idle_time")
    alone = sum(_runner().alone[run.model].latency for run in outcome.layers if run.layer == 0)
    detail["without_prefetch_across_requests"] = round(100 * (alone / outcome.makespan - 1), 2)
    return Measured(100 * (busy["idle_time"] / busy["fcfs"] - 1), equal, detail)


def _of_bound(lab: Lab) -> Measured:
    """The makespan that max(sum of memory access, sum of compute) allows, as a share of the one measured."""
    scenario, outcome, equal = _long_pair("idle_time")
    loads, computes = _demand(outcome)
    detail = {**ON_BASE, "memory_access": loads, "compute": computes, "makespan": outcome.makespan, **_names(scenario)}
    return Measured(100 * max(loads, computes) / outcome.makespan, equal, detail)


def _makespans(lab: Lab) -> Measured:
    """Mean over four pairs of the makespan divided by its bound."""
    ratios: dict[str, float] = {}
    correct = True
    for names in rtl_pairs.NAMES:
        scenario, outcome, equal = _pair(names, (8, 8), 4, "idle_time")
        ratios[scenario.name] = outcome.makespan / max(_demand(outcome))
        correct &= equal
    worst = max(ratios, key=lambda name: ratios[name])
    detail = {"worst": worst, "pairs": {name: round(ratio, 4) for name, ratio in ratios.items()}}
    return Measured(sum(ratios.values()) / len(ratios), correct, {**ON_BASE, **detail})


def _idle_error(lab: Lab) -> Measured:
    """Expected against measured idle time per decision, as a share of the mean duration of a layer."""
    scenario, outcome, equal = _long_pair("idle_time")
    alone = {stream.name: math.nan for stream in scenario.streams}
    prediction = report(scenario, "idle_time", "cxxrtl", outcome, alone)["prediction"]
    return Measured(prediction["idle_error_percent"], equal, {**ON_BASE, **_names(scenario), **prediction})


def _campaign(lab: Lab) -> Measured:
    """Random scenarios on ``tiny`` in which a request did not end, or an output differs from the model alone."""
    failures = {seed: problem for seed in range(56) if (problem := check_random(seed))}
    return Measured(len(failures), True, {"measured_on": "cxxrtl, tiny", "scenarios": 56, "failed_seeds": failures})


def check_random(seed: int, preset: str = "tiny") -> str | None:
    """Run random scenario ``seed`` under a policy that its number chooses; what is wrong with the outcome, or None.

    Every request must end, with the outputs of its model run alone. Arrivals that are more urgent always preempt.
    """
    policy, runner = POLICIES[seed % len(POLICIES)], RtlRunner("cxxrtl", lambda situation: Choice.DUMP)
    outcome = runner.run(random_rtl(seed, preset), Policies.named(policy), Path())
    if runner.mismatches:
        return f"seed {seed}, {policy}: {runner.mismatches[0]}"
    if any(math.isinf(frame.end) for frame in outcome.frames):
        return f"seed {seed}, {policy}: a request did not end"
    return None


def _names(scenario: Scenario) -> Mapping[str, Any]:
    return {"scenario": scenario.name}
