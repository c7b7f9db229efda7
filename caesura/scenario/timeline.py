"""A run of a scenario as spans for a trace."""

from caesura.scenario.outcome import Outcome
from sim.trace import Span

_PER_UNIT = {"s": 1_000_000, "ms": 1000}  #: ticks of the trace; of smaller units each is one tick


def spans(outcome: Outcome, time_unit: str) -> list[Span]:
    """A span for each layer's compute, on a line per engine, and for its memory access; a colour for each model."""
    scale = _PER_UNIT.get(time_unit, 1)
    result = []
    for run in outcome.layers:
        details = {"stream": run.stream, "passed over": run.passed_over, "preempted": run.preempted}
        name = f"{run.model} {run.layer}"
        for track, start, end in (
            (("accelerator", "memory access"), run.load_start, run.load_end),
            (("accelerator", f"engine {run.engine}"), run.start, run.end),
        ):
            result.append(Span(track, name, round(start * scale), round(end * scale), run.model, details))
    return result
