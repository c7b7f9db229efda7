"""Tells what ran on devices in a scenario."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import simpy

from caesura.scenario.model_executor import ModelRun
from caesura.scenario.outcome import DeviceRun, Frame, LayerRun, ModelPlace, Outcome, RequestRun, on_device
from caesura.views import preemptive_spans
from sim import Span, cost
from sw.driver import Device
from sw.runtime import DeadlineMissed, GroupRun, Request, Runtime


class SampleRun(NamedTuple):
    """Says what a request to the run time is for. ``sample`` is the number of its inputs, ``arrival`` the cycle at
    which it was ready."""

    run: ModelRun
    sample: int
    done: simpy.Event
    arrival: int


def sample_runs(request: Request) -> list[SampleRun]:
    """Return what a request that was made for a scenario is for: one run, or those that share it."""
    tags = request.tag if isinstance(request.tag, list) else [request.tag]
    found = [tag for tag in tags if isinstance(tag, SampleRun)]
    assert found and len(found) == len(tags)
    return found


@dataclass(frozen=True)
class DeviceOutcome:
    """Reads what the run time of a device remembers. Times count from cycle ``origin`` on, ``ticks`` in a unit of the
    scenario. ``placed``: layers ran on engines that a policy chose, ``at_arrival`` of their request."""

    number: int
    device: Device
    runtime: Runtime
    origin: int
    ticks: int
    placed: bool
    at_arrival: bool

    def outcome(
        self, frames: Sequence[Frame], places: dict[str, ModelPlace], died: Exception | None = None
    ) -> Outcome:  # fmt: skip
        """Return all that ran on the device for ``frames``, and the ``places`` of models. ``died``: why it was taken
        out."""
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
        access = cost.moved(traffic, self.device.params) / self.ticks
        compute = [measured.compute_busy.get(engine, 0) / self.ticks for engine in range(engines)]
        return Outcome(
            engines,
            engines if self.placed else 1,
            list(frames),
            layers,
            access_busy=access,
            compute_busy=compute,
            switch_time=sum(result.end - result.start for result in moved) / self.ticks,
            preemptions=self.runtime.switches,
            timeline=[replace(span, kind=named.get(span.kind, span.kind)) for span in spans],
            host_time=sum(request.host for request in self.runtime.requests) / self.ticks,
            decision_seconds=list(measured.decision_seconds),
            requests=self._request_runs(spans),
            places=places,
            devices=[DeviceRun(access, compute, None if died is None else f"{type(died).__name__}: {died}")],
        )

    def _request_runs(self, spans: Sequence[Span]) -> list[RequestRun]:
        """Return what became of each request to the run time."""
        requests = [request for request in self.runtime.requests if request.ended is not None]
        busy = {one.number: sum(result.end - result.start for result in one.results) for one in requests}
        for span in spans:
            if {"request", "job"} <= span.details.keys():  # a body up to where it was suspended
                busy[span.details["request"]] += span.end - span.start
        parts: dict[SampleRun, list[RequestRun]] = {}  # of models that run operation by operation, several
        for request in requests:
            for served in sample_runs(request):
                run = self._request_run(request, served, busy[request.number] / len(sample_runs(request)))
                parts.setdefault(served, []).append(run)
        return [_joined(runs) for runs in parts.values()]

    def _request_run(self, request: Request, served: SampleRun, busy: float) -> RequestRun:
        frame, ended = served.run.frame, request.ended
        assert ended is not None
        late = isinstance(request.error, DeadlineMissed)
        return RequestRun(
            frame.stream, frame.number, served.run.model, self._time(served.arrival), self._time(ended),
            busy / self.ticks, request.preempted - request.killed, request.killed, request.repeated, late, self.number,
            request.deferred / self.ticks, "" if request.error is None or late else str(request.error),
        )  # fmt: skip

    def _names(self) -> dict[str, str]:
        """Return the scenario's names of models by those of their images, as far as these are of one model."""
        names: dict[str, set[str]] = {}
        for request in self.runtime.requests:
            names.setdefault(request.model.name, set()).add(sample_runs(request)[0].run.model)
        return {image: found.pop() for image, found in names.items() if len(found) == 1}

    def _layer(self, run: GroupRun, inputs: int) -> LayerRun:
        asked, decision = sample_runs(run.request)[0].run, run.decision  # the first of those that share it
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


def _joined(parts: Sequence[RequestRun]) -> RequestRun:
    """Return the run of a model whose parts ran one behind the other."""
    return replace(
        parts[-1],
        busy=sum(part.busy for part in parts),
        suspended=sum(part.suspended for part in parts),
        killed=sum(part.killed for part in parts),
        started_over=sum(part.started_over for part in parts),
        deferred=sum(part.deferred for part in parts),
    )


def of_all(parts: Sequence[Outcome]) -> Outcome:
    """Return what ran on all devices, of each of which ``parts`` has the outcome. Engines are numbered through, and
    tracks of the timeline name the device, where there are several."""
    if len(parts) == 1:
        return parts[0]
    each = parts[0].engines
    return Outcome(
        each * len(parts),
        parts[0].queues,
        parts[0].frames,
        sorted(
            (replace(run, engine=each * n + run.engine) for n, part in enumerate(parts) for run in part.layers),
            key=lambda run: run.end,
        ),
        access_busy=sum(part.access_busy for part in parts),
        compute_busy=[busy for part in parts for busy in part.compute_busy],
        switch_time=sum(part.switch_time for part in parts),
        preemptions=sum(part.preemptions for part in parts),
        timeline=[
            replace(span, track=(on_device(n, span.track[0]), span.track[1]))
            for n, part in enumerate(parts)
            for span in part.timeline
        ],
        host_time=sum(part.host_time for part in parts),
        decision_seconds=[seconds for part in parts for seconds in part.decision_seconds],
        requests=sorted((run for part in parts for run in part.requests), key=lambda run: run.end),
        places=parts[0].places,
        devices=[run for part in parts for run in part.devices],
    )
