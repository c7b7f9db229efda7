"""Makes the timeline of ``caesura run``: engines, the host and its interrupts, and the hardware's counters."""

from collections.abc import Callable, Iterable, Sequence

from caesura.timeline import job_spans, unit_spans
from sim import Counter, InstructionRun, Span
from sw.driver import HandledInterrupt, JobResult
from sw.runtime import RunStats

_CPU, _INTERRUPTS, _INFERENCES = ("host", "CPU"), ("host", "interrupts"), ("host", "inferences")


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
