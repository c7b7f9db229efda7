"""Tells what ran on a device in a scenario."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import simpy

from caesura.scenario.model_executor import ModelRun
from caesura.scenario.outcome import Frame, LayerRun, ModelPlace, Outcome, RequestRun
from caesura.views import preemptive_spans
from sim import Span, cost
from sw.driver import Device
from sw.runtime import DeadlineMissed, GroupRun, Request, Runtime


class SampleRun(NamedTuple):
    """Says what a request to the run time is for. ``sample`` is the number of its inputs."""

    run: ModelRun
    sample: int
    done: simpy.Event


def sample_run(request: Request) -> SampleRun:
    """Return the tag of a request that was made for a scenario."""
    assert isinstance(request.tag, SampleRun)
    return request.tag


@dataclass(frozen=True)
class DeviceOutcome:
    """Reads what a run time remembers. Times count from cycle ``origin`` on, ``ticks`` in a unit of the scenario.
    ``placed``: layers ran on engines that a policy chose, ``at_arrival`` of their request."""

    device: Device
    runtime: Runtime
    origin: int
    ticks: int
    placed: bool
    at_arrival: bool

    def outcome(self, frames: Sequence[Frame], places: dict[str, ModelPlace]) -> Outcome:
        """Return all that ran for ``frames``, and the ``places`` of models."""
        measured, engines = self.runtime.measured, self.device.params.engines
        groups = self.runtime.groups
        traffic = sum(result.traffic.total.bytes for run in groups for result in run.results)
        named = self._names()
        spans = preemptive_spans(
            self.runtime.requests, self.runtime.spans(), self.origin, lambda model: named.get(model.name, model.name)
        )
        moved = [result for operation in self.device.operations for result in operation.results]
        layers = []
        ends: dict[int, int] = {}
        for run in groups:
            layers.append(self._layer(run, ends.get(run.request.number, 0)))
            ends[run.request.number] = run.end
        return Outcome(
            engines,
            engines if self.placed else 1,
            list(frames),
            layers,
            access_busy=cost.moved(traffic, self.device.params) / self.ticks,
            compute_busy=[measured.compute_busy.get(engine, 0) / self.ticks for engine in range(engines)],
            switch_time=sum(result.end - result.start for result in moved) / self.ticks,
            preemptions=self.runtime.switches,
            timeline=[replace(span, kind=named.get(span.kind, span.kind)) for span in spans],
            host_time=sum(request.host for request in self.runtime.requests) / self.ticks,
            decision_seconds=list(measured.decision_seconds),
            requests=self._request_runs(spans),
            places=places,
        )

    def _request_runs(self, spans: Sequence[Span]) -> list[RequestRun]:
        """Return what became of each request to the run time."""
        requests = [request for request in self.runtime.requests if request.ended is not None]
        busy = {one.number: sum(result.end - result.start for result in one.results) for one in requests}
        for span in spans:
            if {"request", "job"} <= span.details.keys():  # a body up to where it was suspended
                busy[span.details["request"]] += span.end - span.start
        return [self._request_run(request, busy[request.number]) for request in requests]

    def _request_run(self, request: Request, busy: int) -> RequestRun:
        frame, ended = sample_run(request).run.frame, request.ended
        assert ended is not None
        arrival, late = request.arrival - request.deferred, isinstance(request.error, DeadlineMissed)
        return RequestRun(
            frame.stream, frame.number, sample_run(request).run.model, self._time(arrival), self._time(ended),
            busy / self.ticks, request.preempted - request.killed, request.killed, request.repeated, late,
            request.deferred / self.ticks, "" if request.error is None or late else str(request.error),
        )  # fmt: skip

    def _names(self) -> dict[str, str]:
        """Return the scenario's names of models by those of their images, as far as these are of one model."""
        names: dict[str, set[str]] = {}
        for request in self.runtime.requests:
            names.setdefault(request.model.name, set()).add(sample_run(request).run.model)
        return {image: found.pop() for image, found in names.items() if len(found) == 1}

    def _layer(self, run: GroupRun, inputs: int) -> LayerRun:
        asked, decision = sample_run(run.request).run, run.decision
        since = run.request.arrival if self.at_arrival else run.decided  # a queue is joined at once, whatever is busy
        return LayerRun(
            asked.frame.stream, asked.model, run.index, decision.engine, self._time(run.decided),
            self._time(max(since, inputs)), decision.passed_over, decision.candidates, self._time(decision.start),
            self._scaled(decision.idle), self._time(run.load_start), self._time(run.load_end),
            self._time(run.start), self._time(run.end), self._scaled(run.idle),
            sum(result.resumed for result in run.results),
        )  # fmt: skip

    def _time(self, cycle: float) -> float:
        return (cycle - self.origin) / self.ticks

    def _scaled(self, idle: tuple[float, float]) -> tuple[float, float]:
        return idle[0] / self.ticks, idle[1] / self.ticks
