"""What layer-by-layer scheduling gains on the compiled RTL: rows of ``caesura bench scheduling``.

Demands of models (the bound that a makespan is compared with) are their durations when they run alone, measured on the
same RTL.
"""

import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from benchmarks.figures import Figure, Measured, Target
from benchmarks.lab import Lab
from benchmarks.scenarios import rtl_pairs
from benchmarks.scenarios.random_rtl import random_rtl
from caesura.scenario import Alone, Outcome, Policies, RtlRunner, Scenario, report
from sim import DEFAULT_BACKEND
from sw.runtime import Mechanism, metrics

POLICIES = (
    "idle_time",
    "idle_time_tolerant",
    "fcfs",
    "round_robin",
    "sjf",
    "deadline",
    "prema",
    "shortest_queue",
    "queue_time",
)
BASELINES = ("idle_time_tolerant", "round_robin", "fcfs")  #: shown beside ``idle_time`` in every row on pairs
ON_BASE = {"measured_on": f"{DEFAULT_BACKEND}, base"}
REQUESTS = 4  #: of each of a pair: two at a time, in a closed loop
BALANCE = 0.95  #: of the longer of memory access and compute of a balanced pair, what the other takes at least
SHORT = 8  #: layers of each of a pair that is not balanced


def figures() -> list[Figure]:
    """Return the rows measured on the compiled RTL. All but the campaign on preset ``base``, whatever preset was asked
    for."""
    return [
        Figure("rtl_opposing_pair_utilisation", Target(44, 50), _utilisation),
        Figure("rtl_opposing_pair_of_bound", Target(90, 97), _of_bound),
        Figure("rtl_makespan_pairs", Target(1.10, 1.03, "x", at_most=True), _makespans),
        Figure("rtl_idle_estimate_error", Target(10, 3, "%", at_most=True), _idle_error),
        Figure("rtl_random_failures", Target(0, 0, "scenarios", at_most=True), _campaign),
    ]


@cache
def _runner() -> RtlRunner:
    return RtlRunner()


class _Run(NamedTuple):
    """``alone``: of each of its models. ``equal``: whether all outputs equal those of the models alone."""

    scenario: Scenario
    outcome: Outcome
    alone: Mapping[str, Alone]
    equal: bool

    @property
    def demand(self) -> tuple[int, int]:
        """Return the cycles of memory access and of compute per engine that all requests take alone."""
        requests = [self.alone[run.model] for run in self.outcome.layers if run.layer == 0]
        return sum(alone.load for alone in requests), sum(alone.compute for alone in requests)

    @property
    def bound(self) -> int:
        """Return the cycles that the resource that is needed longer takes."""
        return max(self.demand)

    @property
    def balanced(self) -> bool:
        """Return whether memory access and compute of the two together take about equally long."""
        return min(self.demand) >= BALANCE * max(self.demand)

    @property
    def latency(self) -> int:
        """Return the cycles that all requests take one after the other, each by itself."""
        return sum(self.alone[run.model].latency for run in self.outcome.layers if run.layer == 0)


@cache
def _pair(names: tuple[str, str], layers: tuple[int, int], policy: str) -> _Run:
    """Return a pair under a policy."""
    scenario = rtl_pairs.pair(*names, layers=layers, count=REQUESTS)
    outcome = _runner().run(scenario, Policies.named(policy), Path())
    return _Run(scenario, outcome, dict(_runner().alone), not _runner().mismatches)


def _balanced(policy: str) -> dict[str, _Run]:
    """Return all balanced pairs under a policy, by name and number of layers. Raises ``LookupError`` if one is not."""
    runs = {
        f"{' x '.join(names)}, {' + '.join(map(str, layers))} layers": _pair(names, layers, policy)
        for names, layers in rtl_pairs.BALANCED.items()
    }
    for name, run in runs.items():
        if not run.balanced:
            raise LookupError(f"{name} is no balanced pair: memory access and compute take {run.demand} cycles")
    return runs


def _mean(values: Mapping[str, float], runs: Mapping[str, _Run], detail: Mapping[str, object]) -> Measured:
    return Measured(mean(values.values()), all(run.equal for run in runs.values()), {**ON_BASE, "pairs": dict(detail)})


def _utilisation(lab: Lab) -> Measured:
    """Compute utilisation of closed loops of both against one model at a time, on the same run time: mean of the pairs.

    Busy are bodies. The makespan shrinks by more: with one model at a time, bodies wait for their own loads within.
    """
    one_at_a_time, together = _balanced("fcfs"), _balanced("idle_time")
    gains, pairs = {}, {}
    for name, run in together.items():
        one, both = one_at_a_time[name].outcome, run.outcome
        before, after = _busy(one), _busy(both)
        gains[name] = 100 * (after / before - 1)
        pairs[name] = {
            "gain": round(gains[name], 2),
            "idle_time": round(after, 2),
            **{policy: round(_busy(_balanced(policy)[name].outcome), 2) for policy in BASELINES},
            "gain_by_makespan": round(100 * (one.makespan / both.makespan - 1), 2),
            "gain_without_prefetch_across_requests": round(100 * (run.latency / both.makespan - 1), 2),
        }
    return _mean(gains, {**one_at_a_time, **{f"{name}, together": run for name, run in together.items()}}, pairs)


def _busy(outcome: Outcome) -> float:
    return metrics.utilisation(sum(outcome.compute_busy), outcome.makespan * outcome.engines)


def _of_bound(lab: Lab) -> Measured:
    """Return the makespan that max(sum of memory access, sum of compute) allows, as a share of the one measured."""
    runs = _balanced("idle_time")
    shares = {name: 100 * run.bound / run.outcome.makespan for name, run in runs.items()}
    pairs = {
        name: {
            "share": round(shares[name], 2),
            "memory_access": run.demand[0],
            "compute": run.demand[1],
            "makespan": run.outcome.makespan,
            **{policy: _balanced(policy)[name].outcome.makespan for policy in BASELINES},
        }
        for name, run in runs.items()
    }
    return _mean(shares, runs, pairs)


def _makespans(lab: Lab) -> Measured:
    """Return the mean of the makespan divided by its bound, over pairs of equally many layers, most of them not
    balanced."""
    runs = {
        policy: {" x ".join(names): _pair(names, (SHORT, SHORT), policy) for names in rtl_pairs.BALANCED}
        for policy in ("idle_time", *BASELINES)
    }
    ratios = {
        policy: {name: run.outcome.makespan / run.bound for name, run in of_policy.items()}
        for policy, of_policy in runs.items()
    }
    detail = {
        name: {policy: round(of_policy[name], 4) for policy, of_policy in ratios.items()} for name in runs["idle_time"]
    }
    return _mean(ratios["idle_time"], runs["idle_time"], detail)


def _idle_error(lab: Lab) -> Measured:
    """Return the expected against measured idle time per decision, as a share of the mean duration of a layer."""
    errors, pairs = {}, {}
    runs = _balanced("idle_time")
    for name, run in runs.items():
        alone = {stream.name: math.nan for stream in run.scenario.streams}
        prediction = report(run.scenario, "idle_time", DEFAULT_BACKEND, run.outcome, alone)["prediction"]
        errors[name] = prediction["idle_error_percent"]
        pairs[name] = {what: round(value, 2) for what, value in prediction.items()}
    return _mean(errors, runs, pairs)


def _campaign(lab: Lab) -> Measured:
    """Return random scenarios on ``tiny`` in which a request did not end, or an output differs from the model alone."""
    failures = {seed: problem for seed in range(56) if (problem := check_random(seed))}
    detail = {"measured_on": f"{DEFAULT_BACKEND}, tiny", "scenarios": 56, "failed_seeds": failures}
    return Measured(len(failures), True, detail)


def check_random(seed: int, preset: str = "tiny") -> str | None:
    """Run random scenario ``seed`` under a policy that its number chooses; what is wrong with the outcome, or None.

    Every request must end, with the outputs of its model run alone. Arrivals that are more urgent always preempt.
    """
    policy, runner = POLICIES[seed % len(POLICIES)], RtlRunner(rule=lambda situation: Mechanism.DUMP)
    outcome = runner.run(random_rtl(seed, preset), Policies.named(policy), Path())
    if runner.mismatches:
        return f"seed {seed}, {policy}: {runner.mismatches[0]}"
    if any(math.isinf(frame.end) for frame in outcome.frames):
        return f"seed {seed}, {policy}: a request did not end"
    return None
