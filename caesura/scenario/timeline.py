"""Turns a run of a scenario into spans for a trace."""

from caesura.scenario.outcome import Outcome
from caesura.scenario.schema import CYCLES
from sim import Span


def spans(outcome: Outcome, time_unit: str) -> list[Span]:
    """Return spans for stages of requests on CPUs, and a device's timeline as it is. Otherwise there are spans for each
    layer's compute, on a line per engine, for its memory access, and for dumps and restores; a colour for each model.
    Units of time that say nothing count as cycles."""
    scale = CYCLES.get(time_unit, 1)
    result = [
        Span(("host", f"CPU {run.cpu}"), run.stage, round(run.start * scale), round(run.end * scale), run.stage,
             {"stream": run.stream})
        for run in outcome.cpu
    ]  # fmt: skip
    if outcome.timeline:
        return [*outcome.timeline, *result]
    result += [
        Span(("accelerator", f"engine {move.engine} switches"), move.kind, round(move.begin * scale),
             round(move.end * scale), move.kind)
        for move in outcome.moves
    ]  # fmt: skip
    for run in outcome.layers:
        details = {"stream": run.stream, "passed over": run.passed_over, "preempted": run.preempted}
        name = f"{run.model} {run.layer}"
        for track, start, end in (
            (("accelerator", "memory access"), run.load_start, run.load_end),
            (("accelerator", f"engine {run.engine}"), run.start, run.end),
        ):
            result.append(Span(track, name, round(start * scale), round(end * scale), run.model, details))
    return result
