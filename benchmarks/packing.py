"""How low the compiler packs buffers of static allocations, against the most bytes alive at a time."""

import time
from collections.abc import Sequence
from functools import cache

from benchmarks.figures import Figure, Measured, Target
from benchmarks.lab import Lab
from benchmarks.workloads.allocations import GRAIN, Allocation, height, instances, load
from compiler import least_packing
from hw.contract.params import preset

_BASE = preset("base")


def figures() -> list[Figure]:
    """Return the rows."""
    return [
        Figure("packing_gap", Target(5, 1, at_most=True), _mean),
        Figure("packing_gap_worst", Target(10, 5, at_most=True), _worst),
        Figure("packing_seconds", Target(5, 1, "s", at_most=True), _seconds),
    ]


def packed(buffers: Sequence[Allocation]) -> list[int]:
    """Return offsets of the compiler's packing in the least memory, to a grain, in which it leaves nothing out."""
    lives = [(one.size, one.lower // GRAIN, one.upper // GRAIN - 1) for one in buffers]
    return least_packing(lives, load(buffers), GRAIN, _BASE)


@cache
def _measured() -> dict[str, tuple[float, float]]:
    """Return by instance the percent by which the packing is higher than the load, and CPU seconds."""
    measured = {}
    for name, buffers in instances().items():
        begin = time.process_time()
        offsets = packed(buffers)
        took = time.process_time() - begin
        measured[name] = 100 * (height(buffers, offsets) / load(buffers) - 1), took
    return measured


def _gaps() -> dict[str, float]:
    return {name: round(gap, 2) for name, (gap, _) in _measured().items()}


def _mean(lab: Lab) -> Measured:
    gaps = _gaps()
    return Measured(sum(gaps.values()) / len(gaps), True, {"measured_on": "the compiler", "unit": "%", **gaps})


def _worst(lab: Lab) -> Measured:
    gaps = _gaps()
    worst = max(gaps, key=gaps.__getitem__)
    return Measured(gaps[worst], True, {"measured_on": "the compiler", "explanation": f"worst: {worst}"})


def _seconds(lab: Lab) -> Measured:
    took = {name: round(seconds, 3) for name, (_, seconds) in _measured().items()}
    return Measured(max(took.values()), True, {"measured_on": "this computer, CPU time", "unit": "s", **took})
