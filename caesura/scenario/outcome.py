"""Records what happened in a run of a scenario, in the same way whichever backend ran it."""

import math
from dataclasses import dataclass, field
from pathlib import Path

from caesura.scenario.schema import CYCLES
from sim import Span, write_trace
from sim.synthetic import StateMove


@dataclass
class Frame:
    """Describes a request of a stream, through all its stages. ``end`` is infinite until it has ended.

    ``drop``: it is aborted at its deadline, and ``dropped`` says when that was; it never ends then. ``length``: of its
    inputs, for models with a dynamic dimension.
    """

    stream: str
    number: int
    arrival: float
    deadline: float | None = None
    end: float = math.inf
    drop: bool = False
    dropped: float | None = None
    length: int | None = None

    @property
    def turnaround(self) -> float:
        """Return the time from arrival to end."""
        return self.end - self.arrival

    @property
    def left(self) -> float:
        """Return when it left the machine: at its end, or dropped."""
        return self.end if self.dropped is None else self.dropped


@dataclass
class LayerRun:
    """Describes a layer that ran: what was expected when it was decided on, and what was measured."""

    stream: str
    model: str
    layer: int
    engine: int
    decided: float
    ready: float  #: its inputs existed, and it had been decided on
    passed_over: int  #: decisions that took another layer although this one was a candidate
    candidates: int  #: at the decision for this layer
    expected_start: float
    expected_idle: tuple[float, float]  #: of compute and of memory access
    load_start: float = math.nan
    load_end: float = math.nan
    start: float = math.nan
    end: float = math.nan
    idle: tuple[float, float] = (math.nan, math.nan)
    preempted: int = 0

    @property
    def wait(self) -> float:
        """Return the time for which the layer waited in the queue, with all inputs there."""
        return self.start - self.ready


@dataclass(frozen=True)
class RequestRun:
    """Describes a run of a model on a device for a request of a stream: cycles of engines in its bodies, and what
    others did to it. ``end``: when it ended, was dropped, or failed, ``error`` says of what; ``killed`` of the times
    that it was ``started_over``. ``deferred``: how much later than its ``arrival`` it was let in, where streams are
    policed. Runs that share the steps of a batch share its cycles evenly, and have all of what others did to it."""

    stream: str
    number: int  #: of the request
    model: str
    arrival: float
    end: float
    busy: float
    suspended: int = 0
    killed: int = 0
    started_over: int = 0
    dropped: bool = False
    device: int = 0
    deferred: float = 0.0
    error: str = ""


@dataclass(frozen=True)
class DeviceRun:
    """Says how busy a device was: with what was moved to and from its DRAM at full bandwidth, and each engine.
    ``died``: why it was taken out of several, if it was."""

    access_busy: float
    compute_busy: list[float]
    died: str | None = None


@dataclass(frozen=True)
class ModelPlace:
    """Says where a model stands on each device: its ``engines``, those of all ``copies``, and the bytes of LV2 that one
    copy claims, at most if it has a dynamic dimension."""

    engines: tuple[int, ...]
    copies: int
    lv2_bytes: int


@dataclass(frozen=True)
class CpuRun:
    """Describes a ``stage`` of a request that the CPU of that number computed."""

    stream: str
    stage: str
    cpu: int
    start: float
    end: float


@dataclass
class Outcome:
    """Holds a whole run. Times are in the scenario's unit."""

    engines: int  #: of all devices
    queues: int  #: that layers are placed in, of each device; 1 if every layer runs on all engines
    frames: list[Frame] = field(default_factory=list)
    layers: list[LayerRun] = field(default_factory=list)  #: in the order in which they ended
    access_busy: float = 0.0  #: on devices, what the bytes that were moved take at the DRAM's bandwidth
    compute_busy: list[float] = field(default_factory=list)
    switch_time: float = 0.0
    host_time: float = 0.0  #: that the CPU spent on steps of models
    preemptions: int = 0  #: times that running requests gave way to more urgent ones
    requests: list[RequestRun] = field(default_factory=list)  #: of a device, in the order in which they ended
    places: dict[str, ModelPlace] = field(default_factory=dict)  #: of a device, by model
    devices: list[DeviceRun] = field(default_factory=list)  #: by number; none on the synthetic machine
    checked: int = 0  #: requests whose outputs were compared with those of their model alone
    mismatches: list[str] = field(default_factory=list)  #: those whose outputs differed
    cpu: list[CpuRun] = field(default_factory=list)  #: stages of requests between models
    moves: list[StateMove] = field(default_factory=list)  #: dumps and restores of the synthetic machine
    timeline: list[Span] = field(default_factory=list)  #: of a device, in cycles: jobs, dumps, host, requests
    decision_seconds: list[float] = field(default_factory=list)  #: wall time of each decision on this computer

    @property
    def device_count(self) -> int:
        """Return how many devices, or synthetic machines, there were."""
        return max(1, len(self.devices))

    @property
    def engine_names(self) -> list[str]:
        """Return what the timeline calls each engine."""
        if self.device_count == 1:
            return [f"engine {engine}" for engine in range(self.engines)]
        each = self.engines // self.device_count
        return [on_device(engine // each, f"engine {engine % each}") for engine in range(self.engines)]

    @property
    def makespan(self) -> float:
        """Return the time from the first arrival to the last end."""
        return max(frame.left for frame in self.frames) - min(frame.arrival for frame in self.frames)


def on_device(number: int, group: str) -> str:
    """Return what a ``group`` of tracks is called where it is that of one of several devices."""
    return f"device {number}: {group}"


def write_outcome(path: Path, outcome: Outcome, time_unit: str) -> None:
    """Write :func:`spans` as a timeline for Perfetto."""
    write_trace(path, spans(outcome, time_unit))


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
        Span(("accelerator", f"engine {move.engine} switches"), f"{move.kind}: {', '.join(move.models)}",
             round(move.begin * scale), round(move.end * scale), move.kind)
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
