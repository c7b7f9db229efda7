"""Frames that flow through perception and planning on a device: planning gets what was parsed from the result of
perception. Perception alone is 30 units, whatever its cycles; parsing takes the host 15.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from benchmarks.driving import models
from compiler import ALL_LV2, Options, compile_model
from hw.contract.params import SocParams
from sw.driver import Device, LoadedModel
from sw.runtime import Arrays, Inputs, Request, Session

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
        """Return what ``model``, running by itself, makes of a frame."""
        key = model.name, frame
        if key not in self.undisturbed:
            self.undisturbed[key] = Session(self.device, model).run(inputs)[0]
        return self.undisturbed[key]


def prepare(device: Device, cancel_interval: int = CANCEL_INTERVAL) -> Workload:
    """Compile and load both models, and time each alone."""
    params: SocParams = device.params
    files = models.models(params)
    options = Options(engines=params.engines, cancel_interval=cancel_interval, lv2_limit=ALL_LV2)
    perception = _load(device, "perception", files[0], options)
    planning = _load(device, "planning", files[1], options)
    seen, first = Session(device, perception).run(models.camera(0))
    planned, second = Session(device, planning).run(models.parse(seen["scores"]))
    unit = first.latency / PERCEPTION_UNITS
    undisturbed = {(perception.name, 0): seen, (planning.name, 0): planned}
    return Workload(device, perception, planning, unit, second.latency / unit, undisturbed)


def _load(device: Device, name: str, file: Path, options: Options) -> LoadedModel:
    image = compile_model(file, device.params, options=options)
    image.meta.model = name  # the file's name has a digest in it
    return device.load(image)


class Submit(Protocol):
    """How a run time takes a request."""

    def __call__(self, model: LoadedModel, inputs: Inputs, *, priority: int, arrival: int) -> Request:
        """Of ``priority``, from cycle ``arrival`` on."""
        ...


class Pipeline:
    """``frames`` frames back to back: all are perceived, and planned are those whose parsing ends while perception of a
    later frame runs or waits, so all but the last. With ``alone`` each frame is planned before the next is perceived.

    :meth:`ended` is for the run time to call with each request that has ended.
    """

    def __init__(self, workload: Workload, frames: int, *, alone: bool = False) -> None:
        self.perceptions: list[Request] = []
        self.plannings: list[Request] = []
        self.frame_of: dict[int, int] = {}  #: by number of the request
        self._workload, self._count, self._alone = workload, frames, alone

    def run(self, submit: Submit, run_until_done: Callable[[], None]) -> None:
        """Let a run time serve all frames. Raises what made a request fail."""
        self._submit = submit
        self._perceive()
        run_until_done()
        for request in (*self.perceptions, *self.plannings):
            if request.error is not None:
                raise request.error

    def ended(self, request: Request) -> None:
        """What ended makes the next arrive."""
        if request.error is not None:
            return
        more = len(self.perceptions) < self._count
        if request.model is self._workload.perception:
            if more or self._alone:
                self._plan(request)
            if more and not self._alone:
                self._perceive()
        elif more and self._alone:
            self._perceive()

    def _perceive(self) -> None:
        frame = len(self.perceptions)
        request = self._submit(self._workload.perception, models.camera(frame), priority=0, arrival=0)
        self.perceptions.append(request)
        self.frame_of[request.number] = frame

    def _plan(self, perceived: Request) -> None:
        """Planning arrives when the parsing of what was ``perceived`` ends."""
        assert perceived.outputs is not None
        ready = cycle_of(perceived.ended) + round(PARSING_UNITS * self._workload.unit)
        parsed = models.parse(perceived.outputs["scores"])
        request = self._submit(self._workload.planning, parsed, priority=1, arrival=ready)
        self.plannings.append(request)
        self.frame_of[request.number] = self.frame_of[perceived.number]

    def latencies(self) -> list[float]:
        """Of every planned frame, in units: from the start of its perception to the end of its planning."""
        pairs = zip(self.perceptions, self.plannings, strict=False)
        return [(cycle_of(p.ended) - cycle_of(s.started)) / self._workload.unit for s, p in pairs]

    def equal(self) -> bool:
        """Return whether every output is, bit for bit, that of its model run by itself on the same inputs."""
        for request in (*self.perceptions, *self.plannings):
            frame, found = self.frame_of[request.number], request.outputs or {}
            if self._alone:  # nothing disturbed it
                self._workload.undisturbed.setdefault((request.model.name, frame), found)
            expected = self._workload.expected(request.model, frame, request.inputs)
            if not all(np.array_equal(found[name], expected[name]) for name in expected):
                return False
        return True


def cycle_of(time: int | None) -> int:
    """Return a time that is known by now."""
    assert time is not None
    return time
