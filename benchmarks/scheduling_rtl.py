"""What layer-by-layer scheduling gains on the compiled RTL: rows of ``caesura bench scheduling``.

Demands of models (the bound that a makespan is compared with) are their durations when they run alone, measured on the
same RTL.
"""

import math
from functools import cache
from pathlib import Path

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
#: Layers of each of the two and requests of each, of what is measured on one pair: closed loops so long that the first
#: and the last request, which have less to hide behind, count for little.
SHAPES = ((14, 6), (10, 6))


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


def _loop(shape: tuple[int, int], policy: str) -> tuple[Scenario, Outcome, bool]:
    layers, count = shape
    return _pair(rtl_pairs.NAMES[0], (layers, layers), count, policy)


def _named(shape: tuple[int, int]) -> str:
    return f"{' x '.join(rtl_pairs.NAMES[0])}, {shape[0]} layers, {shape[1]} requests"


def _demand(outcome: Outcome) -> tuple[float, float]:
    """Cycles of memory access and of compute per engine that all requests take alone."""
    durations = _runner().alone
    loads = [durations[run.model].load for run in outcome.layers if run.layer == 0]
    computes = [durations[run.model].compute for run in outcome.layers if run.layer == 0]
    return sum(loads), sum(computes)


def _utilisation(lab: Lab) -> Measured:
    """Compute utilisation of closed loops of both against one model at a time, on the same run time: mean of shapes.

    Busy are bodies. The makespan shrinks by more: with one model at a time, bodies wait for their own loads within.
    """
    gains, shapes, correct = [], {}, True
    for shape in SHAPES:
        (_, one, _), (_, both, _) = (_loop(shape, policy) for policy in ("fcfs", "idle_time"))
        before, after = (metrics.utilisation(sum(o.compute_busy), o.makespan * o.engines) for o in (one, both))
        alone = sum(_runner().alone[run.model].latency for run in both.layers if run.layer == 0)
        gains.append(100 * (after / before - 1))
        shapes[_named(shape)] = {
            "gain": round(gains[-1], 2),
            "fcfs": round(before, 2),
            "idle_time": round(after, 2),
            "gain_by_makespan": round(100 * (one.makespan / both.makespan - 1), 2),
            "gain_without_prefetch_across_requests": round(100 * (alone / both.makespan - 1), 2),
        }
        correct &= all(_loop(shape, policy)[2] for policy in ("fcfs", "idle_time"))
    return Measured(sum(gains) / len(gains), correct, {**ON_BASE, "shapes": shapes})


def _of_bound(lab: Lab) -> Measured:
    """The makespan that max(sum of memory access, sum of compute) allows, as a share of the one measured."""
    shares, shapes, correct = [], {}, True
    for shape in SHAPES:
        _, outcome, equal = _loop(shape, "idle_time")
        loads, computes = _demand(outcome)
        shares.append(100 * max(loads, computes) / outcome.makespan)
        shapes[_named(shape)] = {
            "share": round(shares[-1], 2),
            "memory_access": loads,
            "compute": computes,
            "makespan": outcome.makespan,
        }
        correct &= equal
    return Measured(sum(shares) / len(shares), correct, {**ON_BASE, "shapes": shapes})


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
    errors, shapes, correct = [], {}, True
    for shape in SHAPES:
        scenario, outcome, equal = _loop(shape, "idle_time")
        alone = {stream.name: math.nan for stream in scenario.streams}
        prediction = report(scenario, "idle_time", "cxxrtl", outcome, alone)["prediction"]
        errors.append(prediction["idle_error_percent"])
        shapes[_named(shape)] = {name: round(value, 2) for name, value in prediction.items()}
        correct &= equal
    return Measured(sum(errors) / len(errors), correct, {**ON_BASE, "shapes": shapes})


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
