"""Perception and planning of a few frames on a device, scheduled in three ways (of **Cancellation points**).

The same frames as in :mod:`benchmarks.driving.schedule`, with real models: planning gets what was parsed from the
result of perception. Perception alone is 30 units, whatever its cycles; parsing takes the host 15.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.driving import models
from benchmarks.driving.schedule import WAYS, Schedule, Slot, Way, What
from compiler.backend.options import Options
from compiler.compile import compile_model
from hw.params import SocParams
from sw.driver import Device, LoadedModel
from sw.runtime import Session
from sw.runtime.choice import Choice, Situation
from sw.runtime.priority import Inputs, PriorityRuntime, Request
from sw.runtime.session import Arrays
from sw.runtime.spans import Span

PERCEPTION_UNITS, PARSING_UNITS = 30, 15
CANCEL_INTERVAL = 1000  #: cycles between the cancellation points of perception: a sixth of a unit on ``tiny``


@dataclass
class Workload:
    """Both models on a device. ``unit``: cycles; ``planning_units``: what planning takes by itself."""

    device: Device
    perception: LoadedModel
    planning: LoadedModel
    unit: float
    planning_units: float
    undisturbed: dict[tuple[str, int], Arrays] = field(default_factory=dict)  #: outputs, by model and frame

    def expected(self, model: LoadedModel, frame: int, inputs: Inputs) -> Arrays:
        """What ``model``, running by itself, makes of a frame."""
        key = model.name, frame
        if key not in self.undisturbed:
            self.undisturbed[key] = Session(self.device, model).run(inputs)[0]
        return self.undisturbed[key]


@dataclass
class Run:
    """Frames that ran in one way. ``schedule``: in units from the start of the first. ``equal``: every output is that
    of an undisturbed run."""

    way: Way
    schedule: Schedule
    requests: list[Request]
    spans: list[Span]
    equal: bool


def prepare(device: Device, cancel_interval: int = CANCEL_INTERVAL) -> Workload:
    """Compile and load both models, and time each alone."""
    params: SocParams = device.params
    files = models.models(params)
    options = Options(engines=params.engines, cancel_interval=cancel_interval)
    perception = _load(device, "perception", files[0], options)
    planning = _load(device, "planning", files[1], options)
    seen, first = Session(device, perception).run(models.camera(0))
    planned, second = Session(device, planning).run(models.parse(seen["scores"]))
    unit = first.latency / PERCEPTION_UNITS
    undisturbed = {(perception.name, 0): seen, (planning.name, 0): planned}
    return Workload(device, perception, planning, unit, second.latency / unit, undisturbed)


def run(workload: Workload, way: Way, frames: int = 3) -> Run:
    """Run ``frames`` frames in one of :data:`~benchmarks.driving.schedule.WAYS`.

    All are perceived. Planning follows for those whose parsing ends while perception of a later frame runs or waits, so
    all but the last; alone for all. A pause is sent when parsing has ended, not ahead of it.
    """
    return _Frames(workload, way, frames).run()


def latencies(device: Device, frames: int = 3) -> dict[Way, list[float]]:
    """For each way the latency of every planned frame, in units: the first frame, then those in steady state."""
    workload = prepare(device)
    return {way: run(workload, way, frames).schedule.latencies for way in WAYS}


def _load(device: Device, name: str, file: Path, options: Options) -> LoadedModel:
    image = compile_model(file, device.params, options=options)
    image.meta.model = name  # the file's name has a digest in it
    return device.load(image)


def _rule(choice: Choice) -> Callable[[Situation], Choice]:
    return lambda situation: choice


class _Frames:
    """One run: what ends makes the next arrive."""

    def __init__(self, workload: Workload, way: Way, frames: int) -> None:
        self._workload, self._way, self._count = workload, way, frames
        rule = _rule(Choice.DUMP if way == "with preemption" else Choice.WAIT)
        self._runtime = PriorityRuntime(workload.device, rule, self._ended)
        self._perceptions: list[Request] = []
        self._plannings: list[Request] = []
        self._frame_of: dict[int, int] = {}  #: by number of the request

    def run(self) -> Run:
        self._perceive()
        self._runtime.run_until_done()
        for request in self._runtime.requests:
            if request.error is not None:
                raise request.error
        return Run(self._way, self._schedule(), self._runtime.requests, self._runtime.spans(), self._equal())

    def _perceive(self) -> None:
        frame = len(self._perceptions)
        request = self._runtime.submit(self._workload.perception, models.camera(frame))
        self._perceptions.append(request)
        self._frame_of[request.number] = frame

    def _ended(self, request: Request) -> None:
        if request.error is not None:
            return
        more = len(self._perceptions) < self._count
        alone = self._way == "alone"
        if request.model is self._workload.perception:
            if more or alone:
                self._plan(request)
            if more and not alone:
                self._perceive()
        elif more and alone:
            self._perceive()

    def _plan(self, perceived: Request) -> None:
        """Planning arrives when the parsing of what was ``perceived`` ends."""
        assert perceived.outputs is not None and perceived.ended is not None
        ready = perceived.ended + round(PARSING_UNITS * self._workload.unit)
        request = self._runtime.submit(self._workload.planning, models.parse(perceived.outputs["scores"]), 1, ready)
        self._plannings.append(request)
        self._frame_of[request.number] = self._frame_of[perceived.number]

    # -- results ---------------------------------------------------------------------------------------------
    def _schedule(self) -> Schedule:
        unit, origin = self._workload.unit, _began(self._perceptions[0])
        result = Schedule()
        for span in self._runtime.spans():
            if span.kind in ("run", "dump", "restore"):
                request = self._runtime.requests[span.request]
                running: What = "perception" if request in self._perceptions else "planning"
                what: What = span.kind if span.kind in ("dump", "restore") else running
                begin, end = (span.begin - origin) / unit, (span.end - origin) / unit
                result.slots.append(Slot(what, self._frame_of[span.request], begin, end))
        for planned in self._plannings:
            frame = self._frame_of[planned.number]
            perceived = self._perceptions[frame]
            parsed = (planned.arrival - origin) / unit
            result.slots.append(Slot("parsing", frame, parsed - PARSING_UNITS, parsed))
            result.latencies.append((_ended(planned) - _began(perceived)) / unit)
        return result

    def _equal(self) -> bool:
        """Whether every output is, bit for bit, that of its model run by itself on the same inputs."""
        for request in self._runtime.requests:
            frame, found = self._frame_of[request.number], request.outputs or {}
            if self._way == "alone":  # nothing disturbed it
                self._workload.undisturbed.setdefault((request.model.name, frame), found)
            expected = self._workload.expected(request.model, frame, request.inputs)
            if not all(np.array_equal(found[name], expected[name]) for name in expected):
                return False
        return True


def _began(request: Request) -> int:
    assert request.started is not None
    return request.started


def _ended(request: Request) -> int:
    assert request.ended is not None
    return request.ended
