"""Runs a model, and a more urgent one that arrives meanwhile: with preemption, and without."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from caesura.api import Device, Model, UsageError
from caesura.samples import Sample
from caesura.views.timeline import preemptive_spans
from sim import Span
from sw.runtime import Arrays, Request, Runtime

MOST_ARRIVALS = 1000


@dataclass(frozen=True)
class Together:
    """Says how both models fared together. Cycles count from the arrival of each request to its end.

    ``switches``: how often the long model gave way; ``equal``: whether all outputs are those of the models alone;
    ``spans``: what ran when, from the arrival of the long model on.
    """

    preemptive: bool
    long: int
    urgent: tuple[int, ...]
    switches: int
    equal: bool
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class UrgentRun:
    """Holds the cycles of both models alone, the ``arrivals`` of the urgent one, counted from the long one's, and how
    both fared together. ``outputs``: of the long model."""

    long: int
    urgent: int
    arrivals: tuple[int, ...]
    waiting: Together
    preempting: Together
    outputs: Arrays

    @property
    def equal(self) -> bool:
        """Return whether all outputs are those of the models alone."""
        return self.waiting.equal and self.preempting.equal


def run_urgent(
    device: Device, long: Model, urgent: Model, inputs: Sample, urgent_inputs: Sample, *, at: int | None = None,
    every: int | None = None, told: Callable[[str], None] = lambda what: None,
    watch: Callable[[Runtime], None] = lambda runtime: None,
) -> UrgentRun:  # fmt: skip
    """Run ``long`` and ``urgent`` alone, then ``long`` with requests for ``urgent`` that arrive ``at`` cycles after it
    began (default: when half of it is done) and, with ``every``, again so many cycles later as long as it would take
    alone; first without preemption, then with it. ``told`` is called with what is being done, ``watch`` with each run
    time.

    Raises :class:`UsageError` if ``at`` lies behind the end of ``long``, or for more than :data:`MOST_ARRIVALS`, and
    the error of a request that fails.
    """
    told(f"{long.image.meta.model} alone")
    outputs, stats = long.run(inputs)
    told(f"{urgent.image.meta.model} alone")
    expected, urgent_stats = urgent.run(urgent_inputs)
    first = stats.latency // 2 if at is None else at
    if first >= stats.latency:
        raise UsageError(
            f"--at {first}: {long.image.meta.model} has ended after {stats.latency:,} cycles; let the urgent model "
            "arrive before"
        )
    arrivals = range(first, stats.latency, every or stats.latency)
    if len(arrivals) > MOST_ARRIVALS:
        raise UsageError(
            f"--every {every}: that is {len(arrivals):,} arrivals in {stats.latency:,} cycles, and at most "
            f"{MOST_ARRIVALS:,} are served; let more time pass between two"
        )

    def together(preemptive: bool) -> Together:
        told(f"both, {'with' if preemptive else 'without'} preemption")
        with Runtime(device, preemptive=preemptive, history=None) as runtime:
            watch(runtime)
            begin = device.bus.cycle
            first = runtime.submit(long, inputs)
            others = [runtime.submit(urgent, urgent_inputs, priority=1, arrival=begin + cycle) for cycle in arrivals]
            equal = _equal(first.result(), outputs) and all(_equal(one.result(), expected) for one in others)
            runtime.run_until_done()  # restores may not have ended
            spans = preemptive_spans([first, *others], runtime.spans(), begin)
        return Together(
            preemptive, _latency(first), tuple(map(_latency, others)), runtime.switches, equal, tuple(spans)
        )

    return UrgentRun(stats.latency, urgent_stats.latency, tuple(arrivals), together(False), together(True), outputs)


def _equal(found: Arrays, wanted: Arrays) -> bool:
    return all(np.array_equal(found[name], wanted[name]) for name in wanted)


def _latency(request: Request) -> int:
    assert request.ended is not None
    return request.ended - request.arrival
