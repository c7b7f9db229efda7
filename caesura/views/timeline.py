"""Turns what ran when into spans and counters for a trace: jobs, units, requests, the host and its interrupts."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from hw.image import LayerInfo
from sim import Counter, InstructionRun, Span
from sw.driver import HandledInterrupt, JobResult, LoadedModel
from sw.runtime import Request, RunSpan, RunStats

_HOST_KINDS = ("pause", "drain", "resume")
_MOVING_KINDS = ("dump", "restore")
_CPU, _INTERRUPTS, _INFERENCES = ("host", "CPU"), ("host", "interrupts"), ("host", "inferences")


def job_spans(jobs: Sequence[JobResult]) -> list[Span]:
    """Return a span for each body, and one for each prologue on a line of its own, per engine; named after the layer.

    Of a job that was preempted, what came after it was last resumed.
    """
    spans = []
    for job in jobs:
        model, layer = job.model.name, _layer(job)
        details = {"model": model, "job": job.job, "kind": layer.kind, "macs": layer.macs}
        engine = f"engine {job.engine}"
        name = f"{layer.name} (resumed)" if job.resumed else layer.name
        spans.append(Span((engine, "executor"), name, job.start, job.end, model, details))
        if job.prologue_start:
            loaded = {**details, "bytes": job.counters["prologue_bytes"]}
            track = (engine, "loader")
            spans.append(Span(track, f"{layer.name}: weights", job.prologue_start, job.prologue_end, model, loaded))
    return spans


def unit_spans(jobs: Sequence[JobResult], runs: Iterable[InstructionRun]) -> list[Span]:
    """Return spans on a line for each unit with the instructions that ran in the bodies of ``jobs``, named after the
    layer. Those of the fast model and of the RTL can be laid over each other."""
    bodies = {
        engine: sorted((j for j in jobs if j.engine == engine), key=lambda j: j.start) for engine in _engines(jobs)
    }
    starts = {engine: [job.start for job in own] for engine, own in bodies.items()}
    spans = []
    for run in runs:
        at = bisect_right(starts.get(run.engine, []), run.taken) - 1
        if at < 0 or run.taken > bodies[run.engine][at].end:
            continue  # of a prologue, or of what came before
        job = bodies[run.engine][at]
        layer = _layer(job)
        details = {"model": job.model.name, "job": job.job}
        track = (f"engine {run.engine}", run.unit.name)
        spans.append(Span(track, layer.name, run.taken, run.done, job.model.name, details))
    return spans


def _engines(jobs: Iterable[JobResult]) -> set[int]:
    return {job.engine for job in jobs}


def tenant_name(model: LoadedModel) -> str:
    """Return the name of a model, and behind it whose it is, unless that is the default tenant."""
    return model.name if model.tenant is None else f"{model.name} ({model.tenant})"


def preemptive_spans(
    requests: Sequence[Request], spans: Sequence[RunSpan], origin: int = 0,
    names: Callable[[LoadedModel], str] = tenant_name,
) -> list[Span]:  # fmt: skip
    """Return the spans of a run of :class:`~sw.runtime.runtime.Runtime` with preemption, whose ``requests`` and
    ``spans()`` these are. Time begins at cycle ``origin``. ``names`` is what models are called.

    Engines: jobs as :func:`job_spans` has them, the part of a job before it was suspended (no completion tells when it
    began: it is drawn from when the engine was free), dumps and restores, named after whose data they move. Host: pause
    with the drains in it, and resume. Requests: a line for each, where it waits, runs, or is suspended.
    """
    by_number = {request.number: request for request in requests}
    result = job_spans([job for request in requests for job in request.results])
    result += [_moved(span, names) for span in spans if span.kind in _MOVING_KINDS]
    busy = [(span.track, span.end) for span in result]
    halts = [span for span in spans if span.kind == "drain"]
    for span in sorted(halts, key=lambda span: span.end):
        part = _interrupted(by_number[span.request], span, _runs(spans, span.request), busy)
        if part is not None:
            result.append(part)
            busy.append((part.track, part.end))
    called = {request.number: names(request.model) for request in requests}
    result += [_hosted(span, called.get(span.request, span.model)) for span in spans if span.kind in _HOST_KINDS]
    for request in requests:
        result += _request_line(request, _runs(spans, request.number), called[request.number])
    return [replace(span, start=span.start - origin, end=span.end - origin) for span in result]


def _layer(job: JobResult) -> LayerInfo:
    meta = job.model.image.meta
    return meta.layers[meta.jobs[job.job].layer]


def _moved(span: RunSpan, names: Callable[[LoadedModel], str]) -> Span:
    whose = ", ".join(names(model) for model in span.moved)
    details = {"request": span.request, "for": span.model, "of": whose, "bytes": span.bytes}
    track = (f"engine {span.engine}", "executor")
    return Span(track, f"{span.kind}: {whose}", span.begin, span.end, span.kind, details)


def _hosted(span: RunSpan, model: str) -> Span:
    name = span.kind if span.engine < 0 else f"{span.kind} engine {span.engine}"
    details = {"request": span.request, "model": model}
    return Span(("host", "run time"), f"{name}: {model}", span.begin, span.end, span.kind, details)


def _runs(spans: Iterable[RunSpan], request: int) -> list[RunSpan]:
    return sorted((s for s in spans if s.kind == "run" and s.request == request), key=lambda span: span.begin)


def _interrupted(
    request: Request,
    halt: RunSpan,
    runs: Sequence[RunSpan],
    busy: Iterable[tuple[tuple[str, str], int]],
) -> Span | None:
    """Return the part, up to ``halt``, of the job that the engine ran, or None if it halted before a body."""
    later = [job for job in request.results if job.engine == halt.engine and job.end > halt.end]
    job = min(later, key=lambda job: job.start, default=None)
    if job is None or not job.resumed:
        return None
    track = (f"engine {halt.engine}", "executor")
    begins = [run.begin for run in runs if run.begin <= halt.end][-1:]
    begins += [end for other, end in busy if other == track and end <= halt.end]
    if not begins:
        return None
    details = {"model": request.model.name, "job": job.job, "request": request.number}
    return Span(track, f"{_layer(job).name} (suspended)", max(begins), halt.end, request.model.name, details)


def _request_line(request: Request, runs: Sequence[RunSpan], model: str) -> list[Span]:
    """Return the line of a request: waiting until it first runs, then running and suspended by turns; there is nothing
    for one that never ran."""
    track = ("requests", f"{request.number:03} {model}")
    details = {"priority": request.priority}
    result, now, state = [], request.arrival, "waiting"
    for run in runs:
        if run.begin > now:
            result.append(Span(track, f"{state}: {model}", now, run.begin, state, details))
        result.append(Span(track, f"running: {model}", run.begin, run.end, request.model.name, details))
        now, state = run.end, "suspended"
    return result


def run_spans(
    runs: Sequence[RunStats], instructions: Iterable[InstructionRun], interrupts: Iterable[HandledInterrupt]
) -> list[Span]:
    """Return as spans the jobs by engine, ``instructions`` by unit, and the host: each inference as it sees it, the
    steps that the CPU computed, and those of ``interrupts`` that came during one of ``runs``."""
    jobs = [job for run in runs for job in run.jobs]
    during = [(run.begin, run.begin + run.latency) for run in runs]
    served = [each for each in interrupts if any(begin <= each.begin and each.end <= end for begin, end in during)]
    return [
        *job_spans(jobs),
        *unit_spans(jobs, instructions),
        *(Span(_INFERENCES, f"inference {n}", *when, "inference") for n, when in enumerate(during, 1)),
        *(
            Span(_CPU, ", ".join(step.outputs), step.begin, step.end, "CPU", {"reason": step.reason})
            for run in runs
            for step in run.on_cpu
        ),
        *(Span(_INTERRUPTS, _name(each), each.begin, each.end, "interrupt") for each in served),
    ]


def job_counters(jobs: Sequence[JobResult]) -> list[Counter]:
    """Return counters of ``jobs`` as means over the time for which each ran, by engine: MAC cycles in percent of it,
    and bytes from and to DRAM in a cycle, of bodies and of prologues."""
    result = []
    for engine in sorted({job.engine for job in jobs}):
        own = [job for job in jobs if job.engine == engine]
        ahead = [job for job in own if job.prologue_start]
        group = f"engine {engine}"
        result += _steps((group, "MAC, % of cycles"), own, lambda job: (job.start, job.end), _mac)
        result += _steps((group, "DRAM, bytes per cycle"), own, lambda job: (job.start, job.end), _dram)
        result += _steps(
            (group, "DRAM ahead, bytes per cycle"), ahead, lambda job: (job.prologue_start, job.prologue_end), _ahead
        )
    return result


def _name(interrupt: HandledInterrupt) -> str:
    if interrupt.engine < 0:
        return "interrupt"
    return f"engine {interrupt.engine}: {', '.join(interrupt.causes) or 'nothing'}"


def _mac(job: JobResult) -> dict[str, float]:
    return {name: 100 * job.counters[f"mac_{name}"] for name in ("active", "waiting")}


def _dram(job: JobResult) -> dict[str, float]:
    return {"read": job.counters["ld2_bytes"], "written": job.counters["st2_bytes"]}


def _ahead(job: JobResult) -> dict[str, float]:
    return {"read": job.counters["prologue_bytes"]}


def _steps(
    track: tuple[str, str],
    jobs: Sequence[JobResult],
    when: Callable[[JobResult], tuple[int, int]],
    of: Callable[[JobResult], dict[str, float]],
) -> list[Counter]:
    """Return a record where a job begins, and one of zeros where it ends and no other begins."""
    ordered = sorted(jobs, key=when)
    begins = {when(job)[0] for job in ordered}
    result = []
    for job in ordered:
        begin, end = when(job)
        values = of(job)
        if end > begin:
            result.append(Counter(track, begin, {n: round(value / (end - begin), 3) for n, value in values.items()}))
            if end not in begins:
                result.append(Counter(track, end, dict.fromkeys(values, 0.0)))
    return result
