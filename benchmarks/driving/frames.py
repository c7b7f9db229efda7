"""Perception and planning of a few frames on a device, scheduled in three ways (of **Cancellation points**).

The same frames as in :mod:`benchmarks.driving.schedule`, with real models (:mod:`benchmarks.driving.pipeline`).
"""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.driving.pipeline import PARSING_UNITS, Pipeline, Workload, cycle_of, prepare
from benchmarks.driving.schedule import WAYS, FrameSchedule, Slot, Way, What
from sw.driver import Device, LoadedModel
from sw.runtime import Inputs, Mechanism, Request, RunSpan, Runtime, Situation


@dataclass
class FramesRun:
    """Frames that ran in one way. ``schedule``: in units from the start of the first. ``equal``: every output is that
    of an undisturbed run."""

    way: Way
    schedule: FrameSchedule
    requests: list[Request]
    spans: list[RunSpan]
    equal: bool


def run(workload: Workload, way: Way, frames: int = 3) -> FramesRun:
    """Run ``frames`` frames in one of :data:`~benchmarks.driving.schedule.WAYS`; see ``Pipeline``. The end of
    parsing is announced, as it is in the published schedule."""
    pipeline = Pipeline(workload, frames, alone=way == "alone")
    rule = _rule(Mechanism.DUMP if way == "with preemption" else Mechanism.WAIT)
    runtime = Runtime(workload.device, "fcfs", preemptive=True, rule=rule, on_end=pipeline.ended, history=None)

    def submit(model: LoadedModel, inputs: Inputs, *, priority: int, arrival: int) -> Request:
        return runtime.submit(model, inputs, priority=priority, arrival=arrival, announced=True)

    pipeline.run(submit, runtime.run_until_done)
    schedule = _schedule(workload, pipeline, runtime)
    return FramesRun(way, schedule, runtime.requests, runtime.spans(), pipeline.equal())


def latencies(device: Device, frames: int = 3) -> dict[Way, list[float]]:
    """For each way the latency of every planned frame, in units: the first frame, then those in steady state."""
    workload = prepare(device)
    return {way: run(workload, way, frames).schedule.latencies for way in WAYS}


def _rule(choice: Mechanism) -> Callable[[Situation], Mechanism]:
    return lambda situation: choice


def _schedule(workload: Workload, pipeline: Pipeline, runtime: Runtime) -> FrameSchedule:
    unit, origin = workload.unit, cycle_of(pipeline.perceptions[0].started)
    result = FrameSchedule(latencies=pipeline.latencies())
    for span in runtime.spans():
        if span.kind in ("run", "dump", "restore"):
            perceived = runtime.requests[span.request].model is workload.perception
            running: What = "perception" if perceived else "planning"
            what: What = span.kind if span.kind in ("dump", "restore") else running
            begin, end = (span.begin - origin) / unit, (span.end - origin) / unit
            result.slots.append(Slot(what, pipeline.frame_of[span.request], begin, end))
    for planned in runtime.requests:
        if planned.model is workload.planning:
            parsed = (planned.arrival - origin) / unit
            frame = pipeline.frame_of[planned.number]
            result.slots.append(Slot("parsing", frame, parsed - PARSING_UNITS, parsed))
    return result
