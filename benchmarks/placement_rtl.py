"""What queue-time balancing gains on the compiled RTL: rows of ``caesura bench scheduling``.

Waits are those of operators, from hardware times: from when their inputs exist until their body starts.
"""

from functools import cache, partial
from pathlib import Path

from benchmarks.figures import Figure, Measured, Target
from benchmarks.lab import Lab
from benchmarks.scenarios.rtl_long_operator import long_operator
from caesura.scenario import Policies, RtlRunner
from sim import DEFAULT_BACKEND
from sw.runtime import metrics

ROUNDS = 4  #: long operators
MEASURED_ON = {"measured_on": f"{DEFAULT_BACKEND}, tiny with 4 engines and 256 KiB of LV2"}


def figures() -> list[Figure]:
    """Return the rows measured on the compiled RTL, on four engines whatever preset was asked for."""
    return [
        Figure("rtl_long_operator_wait_mean", Target(20, 40), partial(_wait, statistic="mean")),
        Figure("rtl_long_operator_wait_p99", Target(40, 60), partial(_wait, statistic="p99")),
    ]


@cache
def _runner() -> RtlRunner:
    return RtlRunner()


@cache
def _waits(policy: str) -> tuple[list[float], bool]:
    """Of all operators under a placement policy, and whether all outputs equal those of the models alone."""
    outcome = _runner().run(long_operator(ROUNDS), Policies.named(policy), Path())
    return [run.wait for run in outcome.layers], not _runner().mismatches


def _wait(lab: Lab, statistic: str) -> Measured:
    """By how much the wait of operators falls against placement by number of operators."""
    values, correct = {}, True
    for policy in ("shortest_queue", "queue_time"):
        waits, equal = _waits(policy)
        values[policy] = sum(waits) / len(waits) if statistic == "mean" else metrics.percentile(waits, 99)
        correct &= equal
    detail = {**MEASURED_ON, "unit": "cycles", **{policy: round(value) for policy, value in values.items()}}
    detail["operators"] = len(_waits("queue_time")[0])
    return Measured(100 * (1 - values["queue_time"] / values["shortest_queue"]), correct, detail)
