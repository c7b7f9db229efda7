"""``caesura bench scheduling``: what queue-time balancing and idle-time layer scheduling gain over simpler policies.

Each row says in ``measured_on`` where it was measured: on the synthetic machine, whose layers have given durations, on
the compiled RTL (rows that begin with ``rtl_``), or, for times of decisions, on the computer that runs the policy.
"""

import math
from functools import cache, partial
from pathlib import Path
from typing import Any

from benchmarks import (
    claims,
    decisions,
    driving_rtl,
    engines_rtl,
    first_runs,
    placed_networks,
    placement_rtl,
    requests_at_once,
    scheduling_rtl,
)
from benchmarks.figures import Figure, Measured, Target
from benchmarks.lab import Lab
from benchmarks.scenarios import pairs
from benchmarks.scenarios.random_mix import random_mix
from caesura.scenario import Outcome, Policies, Scenario, SyntheticRunner, load_scenario, report
from sw.runtime import metrics

SYNTHETIC = {"measured_on": "synthetic machine"}
HOST = {"measured_on": "this computer, CPU time"}
SCENARIOS = Path(__file__).parent.parent / "examples" / "scenarios"
#: What stands beside each other in rows on pairs: the method, with a tolerance, and what it is to be better than.
COMPARED = ("idle_time", *scheduling_rtl.BASELINES)


def figures() -> list[Figure]:
    """Return all rows, in the order of the report."""
    campaign = Target(0, 0, "scenarios", at_most=True)
    return [
        Figure("opposing_pair_utilisation", Target(44, 44), _pair_utilisation),
        Figure("opposing_pair_of_bound", Target(90, 97), _pair_of_bound),
        Figure("makespan_16_pairs", Target(1.10, 1.03, "x", at_most=True), _makespans),
        Figure("idle_estimate_error", Target(10, 3, "%", at_most=True), _idle_error),
        Figure("long_operator_wait_mean", Target(20, 40), partial(_wait, statistic="mean")),
        Figure("long_operator_wait_p99", Target(40, 60), partial(_wait, statistic="p99")),
        Figure("driving_end_to_end", Target(67, 56, "units", at_most=True), _driving),
        Figure("decision_window1", Target(50, 25, "us", at_most=True), partial(_decision, window=1, repeat=200)),
        Figure("decision_window3", Target(2000, 1000, "us", at_most=True), partial(_decision, window=3, repeat=5)),
        Figure("placement_64_queues", Target(5, 2.5, "us", at_most=True), _placement),
        Figure("random_failures", campaign, partial(_campaign, count=300)),
        Figure("random_failures_10000", campaign, partial(_campaign, count=10_000), optional=True),
        *scheduling_rtl.figures(),
        *placement_rtl.figures(),
        *engines_rtl.figures(),
        *placed_networks.figures(),
        *driving_rtl.figures(),
        *requests_at_once.figures(),
        *claims.figures(),
        *first_runs.figures(),
    ]


def _run(scenario: Scenario, policy: str, **options: Any) -> Outcome:
    return SyntheticRunner().run(scenario, Policies.named(policy, options=options), SCENARIOS)


@cache
def _reported(name: str, policy: str) -> dict[str, Any]:
    """Return a ready-made scenario under a policy. Times alone are not needed here."""
    scenario = load_scenario(SCENARIOS / f"{name}.toml")
    alone = {stream.name: math.nan for stream in scenario.streams}
    return report(scenario, policy, "synthetic", _run(scenario, policy), alone)


def _pair_utilisation(lab: Lab) -> Measured:
    """Compute utilisation of the ready-made pair against one model at a time."""
    busy = {policy: _reported("opposing_pair", policy)["compute_utilisation"] for policy in COMPARED}
    shown = {policy: round(value, 2) for policy, value in busy.items()}
    return Measured(100 * (busy["idle_time"] / busy["fcfs"] - 1), True, {**SYNTHETIC, **shown})


def _pair_of_bound(lab: Lab) -> Measured:
    """Return the same, as a share of what max(sum of compute, sum of memory access) allows."""
    loads, computes = pairs.demand(load_scenario(SCENARIOS / "opposing_pair.toml"))
    allowed = 100 * sum(computes) / metrics.makespan_bound(loads, computes)
    reached = _reported("opposing_pair", "idle_time")["compute_utilisation"]
    return Measured(100 * reached / allowed, True, {**SYNTHETIC, "allowed": round(allowed, 2)})


def _makespans(lab: Lab) -> Measured:
    """Return the mean over 16 pairs of the makespan divided by its bound."""
    ratios = {policy: _ratios(policy) for policy in COMPARED}
    means = {policy: sum(values.values()) / len(values) for policy, values in ratios.items()}
    mine = {name: round(ratio, 4) for name, ratio in ratios["idle_time"].items()}
    worst = max(mine, key=lambda name: mine[name])
    others = {policy: round(mean, 4) for policy, mean in means.items() if policy != "idle_time"}
    return Measured(means["idle_time"], True, {**SYNTHETIC, "worst": worst, "pairs": mine, "baselines": others})


def _ratios(policy: str) -> dict[str, float]:
    scenarios = [pairs.pair(*names, count=4) for names in pairs.NAMES]
    return {s.name: _run(s, policy).makespan / metrics.makespan_bound(*pairs.demand(s)) for s in scenarios}


def _idle_error(lab: Lab) -> Measured:
    """Return the expected against measured idle time per decision, as a share of the mean duration of a layer.
    Durations are off by up to 10 % until they have been measured."""
    result = _reported("mixed_reality", "idle_time")["prediction"]
    return Measured(result["idle_error_percent"], True, {**SYNTHETIC, "scenario": "mixed_reality", **result})


def _wait(lab: Lab, statistic: str) -> Measured:
    """By how much the wait of operators falls against placement by number of operators."""
    waits = {
        policy: _reported("long_operator", policy)["wait"][statistic] for policy in ("shortest_queue", "queue_time")
    }
    value = 100 * (1 - waits["queue_time"] / waits["shortest_queue"])
    return Measured(value, True, {**SYNTHETIC, **{policy: round(wait, 3) for policy, wait in waits.items()}})


def _driving(lab: Lab) -> Measured:
    """99th percentile from the arrival of a frame to its plan, in units in which the stages take 30, 15 and 10."""
    result = _reported("driving", "idle_time")
    detail = {"statistic": "p99", "mean": round(result["turnaround"]["mean"], 3), "preemptions": result["preemptions"]}
    return Measured(result["turnaround"]["p99"], True, {**SYNTHETIC, **detail})


def _decision(lab: Lab, window: int, repeat: int) -> Measured:
    return Measured(1e6 * decisions.layer_decision(16, window, repeat), True, {**HOST, "models": 16, "window": window})


def _placement(lab: Lab) -> Measured:
    detail = {"queues": 64, "counted": "placing one operator and taking note of one executed"}
    return Measured(1e6 * decisions.placement(64, 2000), True, {**HOST, **detail})


def _campaign(lab: Lab, count: int) -> Measured:
    """Return random scenarios in which a request did not end, or a layer was passed over more often than its limit."""
    failures = {seed: problem for seed in range(count) if (problem := check_random(seed))}
    return Measured(len(failures), True, {**SYNTHETIC, "scenarios": count, "failed_seeds": failures})


def check_random(seed: int) -> str | None:
    """Run random scenario ``seed`` under a policy that its number chooses; what is wrong with the outcome, or None.

    Every request must end, compute must be what the layers demand, and a layer must not be passed over more often than
    the limit, or than the number of models less one where that is larger.
    """
    scenario, policy, limit = (
        random_mix(seed),
        scheduling_rtl.POLICIES[seed % len(scheduling_rtl.POLICIES)],
        1 + seed % 7,
    )
    options = {"starvation_limit": limit, "window": 1 + seed % 3} if policy == "idle_time" else {}
    try:
        outcome = _run(scenario, policy, **options)
    except RuntimeError as error:  # SimPy: nothing can happen any more
        return f"seed {seed}, {policy}: stuck: {error}"
    if any(math.isinf(frame.end) for frame in outcome.frames):
        return f"seed {seed}, {policy}: a request did not end"
    spent = sum(run.end - run.start for run in outcome.layers)
    if spent < sum(outcome.compute_busy) * (1 - 1e-9):
        return f"seed {seed}, {policy}: {sum(outcome.compute_busy)} of compute in {spent}"
    most = max(run.passed_over for run in outcome.layers)
    allowed = max(limit, max(run.candidates for run in outcome.layers) - 1)
    if policy == "idle_time" and most > allowed:
        return f"seed {seed}: a layer was passed over {most} times, the limit is {allowed}"
    return None
