"""``caesura bench accuracy``: cycles of the fast model against those of the RTL.

Every inference begins on a SoC that was just powered on, on both. Errors are in percent of the RTL's cycles. What was
measured on ``native`` holds for all backends of the RTL: their cycles are the same.
"""

import statistics
from collections.abc import Iterable, Sequence
from functools import cache, partial

from benchmarks.accuracy_cases import AccuracyCase, random_cases, whole_networks
from benchmarks.accuracy_runs import Comparison, LayerError, compare, error
from benchmarks.accuracy_tenants import pairs, preemptions
from benchmarks.figures import Figure, Measured, NotAvailableError, Target
from benchmarks.lab import ALONE, Lab
from benchmarks.workloads import workload
from caesura import random_samples
from compiler import CompileError, compile_model
from hw.contract.params import SocParams, preset
from sw.driver import OutOfMemory
from sw.runtime import metrics

SAMPLE, CASES = 30, 200  #: random cases by default, and with ``--all``
SEED = 2024
PREEMPTIONS = 50
WITHIN = 5  #: percent that a layer may be off
_SHOWN = 8
_percent = partial(Target, unit="%", at_most=True)


def figures() -> list[Figure]:
    """Return a row for each network, which those that do not fit the preset leave empty, and what sums them up."""
    rows = [
        Figure(case.name, _percent(2, 1), partial(_network, name=case.name), optional=case.slow)
        for case in whole_networks(preset("tiny"))
    ]
    return [
        *rows,
        Figure("networks_median", _percent(1, 0.3), partial(_median, everything=False)),
        Figure("networks_median_all", _percent(1, 0.3), partial(_median, everything=True), optional=True),
        Figure("layers_within_5_percent", Target(90, 98), partial(_layers, everything=False)),
        Figure("layers_within_5_percent_all", Target(90, 98), partial(_layers, everything=True), optional=True),
        Figure("random_p95", _percent(5, 2), partial(_random, count=SAMPLE)),
        Figure("random_p95_all", _percent(5, 2), partial(_random, count=CASES), optional=True),
        Figure("two_tenants_makespan", _percent(3, 1), _tenants),
        Figure("preemptions_makespan", _percent(3, 1), _makespan),
        Figure("preemptions_halting", _percent(10, 3), _halting),
    ]


@cache
def _compared(case: AccuracyCase) -> Comparison:
    """Raises :class:`NotAvailableError` for a network that the SoC has no room for."""
    try:
        image = compile_model(case.path(), case.params, engines=case.params.engines, name=case.name, options=ALONE)
        feed = random_samples(image, 1, SEED)[0]
        return compare(f"{case.name} on {case.params.name}", image, feed, data=not case.slow)
    except (CompileError, OutOfMemory) as problem:
        raise NotAvailableError(f"{case.name} does not run on {case.params.name}: {problem}") from None


@cache
def _cases(params: SocParams) -> dict[str, AccuracyCase]:
    return {case.name: case for case in whole_networks(params)}


def _network(lab: Lab, name: str) -> Measured:
    lab.progress.task(f"accuracy: {name}")
    result = _compared(_cases(lab.params)[name])
    return Measured(
        abs(result.percent), result.equal is not False, {**result.to_dict(), "worst_layers": _worst([result])}
    )


def _networks(lab: Lab, everything: bool) -> list[Comparison]:
    found = []
    for case in _cases(lab.params).values():
        if case.slow <= everything:
            lab.progress.task(f"accuracy: {case.name}")
            try:
                found.append(_compared(case))
            except NotAvailableError:
                continue
    return found


def _median(lab: Lab, everything: bool) -> Measured:
    results = _networks(lab, everything)
    return Measured(statistics.median(abs(one.percent) for one in results), _equal(results), _detail(results))


def _layers(lab: Lab, everything: bool) -> Measured:
    results = _networks(lab, everything)
    layers = [layer for one in results for layer in one.layers]
    within = [layer for layer in layers if abs(layer.percent) <= WITHIN]
    detail = {"layers": len(layers), "worst_layers": _worst(results), "distribution": _distribution(layers)}
    return Measured(100 * len(within) / len(layers), _equal(results), detail)


def _random(lab: Lab, count: int) -> Measured:
    results = []
    for number, case in enumerate(random_cases(count, SEED)):
        lab.progress.task(f"accuracy: {number + 1} of {count}: {case.name} on {case.params.name}")
        try:
            results.append(_compared(case))
        except NotAvailableError:
            continue
    errors = [abs(one.percent) for one in results]
    worst = sorted(results, key=lambda one: -abs(one.percent))[:_SHOWN]
    detail = {"seed": SEED, **_detail(results), "worst_runs": [one.to_dict() for one in worst]}
    return Measured(metrics.percentile(errors, 95), _equal(results), detail)


def _tenants(lab: Lab) -> Measured:
    lab.progress.task("accuracy: two tenants")
    names = ("conv_32x28x28_64_k3_s1_p1", "conv_32x14x14_64_k3_s1_p1", "gemm_64x256x128", "conv_64x14x14_64_k1_s1_p0")
    results = pairs([workload(name) for name in names], lab.params)
    errors = [error(rtl, model) for _, rtl, model in results]
    detail = {"pairs": [{"pair": name, "rtl": rtl, "model": model} for name, rtl, model in results]}
    return Measured(max(abs(one) for one in errors), True, detail)


@cache
def _preempted(params: SocParams):
    long, urgent = workload("conv_32x28x28_64_k3_s1_p1"), workload("conv_32x14x14_64_k3_s1_p1")
    return preemptions(long, urgent, params, PREEMPTIONS, SEED)


def _makespan(lab: Lab) -> Measured:
    lab.progress.task("accuracy: preemptions")
    rtl, model = _preempted(lab.params)
    errors = [abs(error(a.makespan, b.makespan)) for a, b in zip(rtl, model, strict=True)]
    return Measured(max(errors), True, {"preemptions": len(rtl), "mean": round(statistics.mean(errors), 3)})


def _halting(lab: Lab) -> Measured:
    """Return the mean over pauses that found something running."""
    rtl, model = _preempted(lab.params)
    errors = [abs(error(a.halting, b.halting)) for a, b in zip(rtl, model, strict=True) if a.halting]
    detail = {"pauses": len(errors), "worst": round(max(errors), 2), "cycles": [one.halting for one in rtl]}
    return Measured(statistics.mean(errors), True, detail)


def _equal(results: Iterable[Comparison]) -> bool:
    return all(one.equal is not False for one in results)


def _detail(results: Sequence[Comparison]) -> dict:
    return {
        "runs": len(results),
        "worst": max(round(abs(one.percent), 3) for one in results),
        "units": {unit: _unit(results, unit) for unit in results[0].units},
        "worst_layers": _worst(results),
        "distribution": _distribution([layer for one in results for layer in one.layers]),
    }


def _unit(results: Iterable[Comparison], unit: str) -> float:
    """Error of the cycles in which a unit works, over all runs together."""
    both = [one.units[unit] for one in results]
    return round(error(sum(rtl for rtl, _ in both), sum(model for _, model in both)), 2)


def _worst(results: Iterable[Comparison]) -> list[dict]:
    layers = sorted((layer for one in results for layer in one.layers), key=lambda layer: -abs(layer.percent))
    return [layer.to_dict() for layer in layers[:_SHOWN]]


def _distribution(layers: Sequence[LayerError]) -> dict[str, float]:
    """Return percentiles of the absolute errors of layers."""
    errors = [abs(layer.percent) for layer in layers]
    return {f"p{p}": round(metrics.percentile(errors, p), 3) for p in (50, 90, 95, 99, 100)} if errors else {}
