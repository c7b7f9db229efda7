"""Storms on a device against a certificate: rows of ``caesura bench preemption``.

Digits, planning and perception (:mod:`benchmarks.driving`) share the engine of preset ``tiny``, the first most urgent.
The worst phases of each are searched for on the fast model, as they are on the abstract machine
(:mod:`sw.admission.phase_search`). No request may take longer than its certificate says.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

import caesura
from benchmarks.driving import models
from benchmarks.figures import Figure, Measured, Target
from benchmarks.lab import Lab
from caesura import Certificate, random_samples
from caesura.scenario import ModelImages, Scenario, parse_scenario
from caesura.views import Progress
from examples.digits import MODEL as DIGITS
from hw.contract.params import preset
from hw.image import Image
from sw.admission import ReleaseTimes, RequestStream, ServedRequest, WorstStorm, worst_phases
from sw.runtime import Mechanism, Runtime

PRESET, BACKEND = "tiny", "model"
RUNS = 40  #: of the search for each stream
LONG = ("planning", "perception")  #: streams that take longer than a switch


def figures(runs: int = RUNS) -> list[Figure]:
    """Return the rows, measured on the fast model, whatever backend was asked for."""
    campaign = _Campaign(runs)
    return [
        Figure("certificate_violated", Target(0, 0, "requests", at_most=True), partial(_violated, campaign=campaign)),
        Figure("certificate_over_worst", Target(3, 2, "x", at_most=True), partial(_over_worst, campaign=campaign)),
    ]


def scenario() -> Scenario:
    """Return three streams on one engine."""
    perception, planning = models.models(preset(PRESET))
    files = {"digits": Path(DIGITS).resolve(), "planning": planning, "perception": perception}
    periods = {"digits": 300_000, "planning": 600_000, "perception": 1_200_000}
    return parse_scenario(
        {
            "name": "storms", "time_unit": "cycles",
            "machine": {"preset": PRESET, "preemption": {}},
            "models": {name: {"onnx": str(path), "engines": [0]} for name, path in files.items()},
            "streams": [
                {
                    "name": name, "stages": [{"model": name}], "priority": 2 - place, "promise": "hard",
                    "arrivals": {"kind": "sporadic", "period": period, "jitter": period // 100},
                    "deadline": period,
                }
                for place, (name, period) in enumerate(periods.items())
            ],
        },
        "storms",
    )  # fmt: skip


@dataclass
class DeviceStorms:
    """Runs storms on a device that has the models of a scenario. ``equal``: all outputs were those of the model
    alone. ``worst``: the longest response so far by stream; ``violated``: requests beyond their bounds."""

    device: caesura.Device
    images: Mapping[str, Image]
    certificate: Certificate
    equal: bool = True
    requests: int = 0
    violated: int = 0
    worst: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def __post_init__(self) -> None:
        self._models = {name: self.device.driver.load(image) for name, image in self.images.items()}
        self._samples = {name: random_samples(image, 1, 0)[0] for name, image in self.images.items()}
        self._expected = {name: self._alone(name) for name in self.images}

    def _alone(self, name: str) -> Any:
        return Runtime(self.device).submit(self._models[name], self._samples[name]).result()

    def serve(
        self, streams: Sequence[RequestStream], releases: Mapping[str, ReleaseTimes], until: int, section: int
    ) -> "_StormRun":
        """Serve a storm as ``sw.admission.run_storm`` does."""
        runtime = Runtime(self.device, "fcfs", preemptive=True, rule=lambda situation: Mechanism.DUMP, history=None)
        begin = self.device.driver.bus.cycle + _AHEAD
        asked = [
            (stream, arrival.due, runtime.submit(
                self._models[stream.name], self._samples[stream.name], priority=stream.priority,
                arrival=begin + arrival.released,
            ))
            for stream in streams
            for arrival in releases[stream.name].arrivals(stream, until)
        ]  # fmt: skip
        runtime.run_until_done()
        found = _StormRun()
        for stream, due, request in asked:
            outputs = request.result()
            self.equal &= all(
                np.array_equal(value, outputs[name]) for name, value in self._expected[stream.name].items()
            )
            assert request.ended is not None
            found.served.append(ServedRequest(stream.name, due, request.ended - begin))
        for span in runtime.spans():
            found.instants[span.kind] += [span.begin - begin, span.end - begin]
        self._hold(found.served)
        return found

    def _hold(self, served: Sequence[ServedRequest]) -> None:
        """Hold requests against the certificate."""
        for one in served:
            bound = self.certificate.of(one.stream).response
            self.requests += 1
            self.violated += bound is not None and one.response > bound
            self.worst[one.stream] = max(self.worst[one.stream], one.response)

    def search(self, name: str, runs: int) -> WorstStorm:
        """Search for the worst phases of stream ``name``."""
        target = self.certificate.of(name).stream
        streams, section = self.certificate.streams, self.certificate.section
        return worst_phases(streams, target, rounds=runs, section=section, serve=self.serve)


_AHEAD = 5_000  #: cycles from the submission of a storm to its beginning


@dataclass
class _StormRun:
    served: list[ServedRequest] = field(default_factory=list)
    instants: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))


class _Campaign:
    """Runs all searches once, for all rows."""

    def __init__(self, runs: int) -> None:
        self._runs = runs

    @cached_property
    def result(self) -> DeviceStorms:
        """Return what all storms have found."""
        wanted, params = scenario(), preset(PRESET)
        images = ModelImages(Progress()).of(wanted, params, Path())
        found = {name: image for name, image in images.items() if isinstance(image, Image)}
        with caesura.open(params, BACKEND) as device:
            storms = DeviceStorms(device, found, caesura.admit(wanted))
            for stream in wanted.streams:
                storms.search(stream.name, self._runs)
        return storms


def _detail(storms: DeviceStorms) -> dict[str, Any]:
    bounds = {one.stream.name: one.response for one in storms.certificate.responses}
    return {
        "measured_on": f"{BACKEND}, {PRESET}",
        "requests": storms.requests,
        "bounds": bounds,
        "worst_found": dict(storms.worst),
        "bound_over_worst": {name: round((bounds[name] or 0) / worst, 3) for name, worst in storms.worst.items()},
    }


def _violated(lab: Lab, campaign: _Campaign) -> Measured:
    """Return the requests that took longer than their certificate says."""
    storms = campaign.result
    return Measured(storms.violated, storms.equal, _detail(storms))


def _over_worst(lab: Lab, campaign: _Campaign) -> Measured:
    """Return the largest bound against the worst that was found, of streams that take longer than a switch."""
    storms = campaign.result
    detail = _detail(storms)
    name = max(LONG, key=lambda one: detail["bound_over_worst"][one])
    return Measured(detail["bound_over_worst"][name], storms.equal, detail | {"worst": name})
