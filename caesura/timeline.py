"""What ran when, as spans for a trace."""

from collections.abc import Sequence

from sim.trace import Span
from sw.driver import JobResult


def job_spans(jobs: Sequence[JobResult]) -> list[Span]:
    """A span for each body, and one for each prologue on a line of its own, per engine; named after the layer."""
    spans = []
    for job in jobs:
        meta = job.model.image.meta
        layer = meta.layers[meta.jobs[job.job].layer]
        details = {"model": meta.model, "job": job.job, "kind": layer.kind, "macs": layer.macs}
        engine = f"engine {job.engine}"
        spans.append(Span((engine, "executor"), layer.name, job.start, job.end, meta.model, details))
        if job.prologue_start:
            loaded = {**details, "bytes": job.counters["prologue_bytes"]}
            spans.append(
                Span(
                    (engine, "loader"),
                    f"{layer.name}: weights",
                    job.prologue_start,
                    job.prologue_end,
                    meta.model,
                    loaded,
                )
            )
    return spans
