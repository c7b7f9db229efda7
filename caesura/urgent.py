"""Runs a model, and a more urgent one that arrives meanwhile: with preemption, and without."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from caesura.api import Device, Model, UsageError
from caesura.samples import Sample
from caesura.views.timeline import preemptive_spans
from sim import Span
from sw.runtime import Arrays, Request, Runtime


@dataclass(frozen=True)
class Together:
    """Says how both models fared together. Cycles count from the arrival of each request to its end.

    ``switches``: how often the long model gave way; where it was cheaper to wait it did not. ``equal``: whether all
    outputs are those of the models alone; ``spans``: what ran when, from the arrival of the long model on.
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
) -> UrgentRun:  # fmt: skip
    """Run ``long`` and ``urgent`` alone, then ``long`` with requests for ``urgent`` that arrive ``at`` cycles after it
    began (default: when half of it is done) and, with ``every``, again so many cycles later as long as it would take
    alone; first without preemption, then with it. ``told`` is called with what is being done.

    Raises :class:`UsageError` if ``at`` lies behind the end of ``long``, and the error of a request that fails.
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
    arrivals = tuple(range(first, stats.latency, every or stats.latency))

    def together(preemptive: bool) -> Together:
        told(f"both, {'with' if preemptive else 'without'} preemption")
        with Runtime(device, preemptive=preemptive, history=None) as runtime:
            begin = device.bus.cycle
            requests = [runtime.submit(long, inputs)]
            requests += [
                runtime.submit(urgent, urgent_inputs, priority=1, arrival=begin + arrival) for arrival in arrivals
            ]
            results = [request.result() for request in requests]
            runtime.run_until_done()  # restores may not have ended
            spans = preemptive_spans(requests, runtime.spans())
        equal = [_equal(found, wanted) for found, wanted in zip(results, [outputs, *[expected] * len(arrivals)],
                                                               strict=True)]  # fmt: skip
        cycles = [_latency(request) for request in requests]
        return Together(
            preemptive, cycles[0], tuple(cycles[1:]), runtime.switches, all(equal), tuple(_from(spans, begin))
        )

    return UrgentRun(stats.latency, urgent_stats.latency, arrivals, together(False), together(True), outputs)


def _equal(found: Arrays, wanted: Arrays) -> bool:
    return all(np.array_equal(found[name], wanted[name]) for name in wanted)


def _latency(request: Request) -> int:
    assert request.ended is not None
    return request.ended - request.arrival


def _from(spans: Sequence[Span], begin: int) -> list[Span]:
    return [
        Span(span.track, span.name, span.start - begin, span.end - begin, span.kind, span.details) for span in spans
    ]
