"""Makes a device and its run time the model executor of a scenario."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import simpy

from caesura.samples import Sample, random_samples
from caesura.scenario.model_executor import ModelRun, Process
from caesura.scenario.outcome import Frame, LayerRun, Outcome
from caesura.scenario.policies import Policies
from caesura.scenario.schema import CYCLES, Scenario, ScenarioError
from caesura.views.progress import Progress
from caesura.views.timeline import preemptive_spans
from sim import Span, cost
from sw.driver import Device, LoadedModel
from sw.runtime import GroupRun, Mechanism, Request, Runtime, Session, Situation, durations, turns_taken

_SAMPLES = 2  #: different inputs of each model, used in turn


class Alone(NamedTuple):
    """Holds cycles of one inference that runs by itself: memory access and compute of all layers, and as the host sees
    it."""

    load: int
    compute: int
    latency: int


class _Tag(NamedTuple):
    """Says what a request to the run time is for. ``sample`` is the number of its inputs."""

    run: ModelRun
    sample: int
    done: simpy.Event


class _Failed(Exception):
    """Says that a request failed: the run time shall serve no others."""


class DeviceExecutor:
    """Serves models on a device, whose cycles are the ticks; also the ``RequestSource`` of the run time.

    The device leads: whenever the run time looks at what has arrived, the processes of the scenario catch up with it.
    Time begins with 0 once every model has run alone, for its durations and for the outputs to expect.

    Parameters
    ----------
    models : by name, loaded once or more; requests take the copies in turn
    rule : what to do on a more urgent arrival
    """

    def __init__(
        self, scenario: Scenario, policies: Policies, device: Device, models: Mapping[str, Sequence[LoadedModel]],
        rule: Callable[[Situation], Mechanism], progress: Progress | None = None,
    ) -> None:  # fmt: skip
        self.env, self.ticks = simpy.Environment(), cycles_per_unit(scenario)
        self._device, self._models, self._at_arrival = device, models, policies.at_arrival
        self._samples = {name: random_samples(m[0].image, _SAMPLES, scenario.seed) for name, m in models.items()}
        self.alone: dict[str, Alone] = {}
        self.mismatches: list[str] = []  #: requests whose outputs are not those of their model alone
        self._progress = progress or Progress()
        if (told := turns_taken(device)) is not None:
            self._progress.note(told)
        self._expected = self._run_alone()
        self._progress.task(f"serving {scenario.name}")
        self._next = dict.fromkeys(models, 0)
        self._announced: dict[ModelRun, simpy.Event] = {}
        self._error: Exception | None = None  #: of the first request that failed; nothing is served after it
        machine, self._placed = scenario.machine, scenario.machine.placed
        self._runtime = Runtime(
            device, policies.order, policies.placement if machine.placed else None, placed=machine.placed,
            preemptive=machine.preemption is not None, at_arrival=policies.at_arrival, rule=rule, on_end=self._ended,
            initial_waits=machine.initial_waits if machine.placed else None,
            initial_waits_decay=machine.initial_waits_decay, layers_per_decision=machine.layers_per_decision,
            history=None,
        )  # fmt: skip
        self._origin = device.bus.cycle
        self._called: dict[int, str] = {}
        self._progress.watch(self._runtime, self._name)

    def _run_alone(self) -> dict[tuple[str, int], Sample]:
        outputs = {}
        for name, models in self._models.items():
            self._progress.task(f"{name} alone")
            session = Session(self._device, models[0])
            for i, sample in enumerate(self._samples[name]):
                outputs[name, i], stats = session.run(sample)
                layers = durations(models[0].image, stats.jobs).values()
                loads, computes = sum(layer.load for layer in layers), sum(layer.compute for layer in layers)
                self.alone[name] = Alone(loads, computes, stats.latency)
        return outputs

    # -- runs of models --------------------------------------------------------------------------------------
    def announce(self, run: ModelRun, delay: float) -> None:
        """Announce a run as ``ModelExecutor`` describes it."""
        self._announced[run] = self._submit(run, self.env.now + delay, announced=True)

    def submit(self, run: ModelRun) -> simpy.Event:
        """Submit a run as ``ModelExecutor`` describes it."""
        return self._announced.pop(run, None) or self._submit(run, self.env.now)

    def _submit(self, run: ModelRun, arrival: float, *, announced: bool = False) -> simpy.Event:
        number = self._next[run.model]
        self._next[run.model] += 1
        loaded, sample, done = self._models[run.model], number % _SAMPLES, self.env.event()
        deadline = run.frame.deadline
        self._runtime.submit(
            loaded[number % len(loaded)],
            self._samples[run.model][sample],
            priority=run.priority,
            deadline=None if deadline is None else self._origin + deadline * self.ticks,
            soft_deadline=True,  # how many are missed is a result of the scenario
            arrival=self._cycle(arrival),
            announced=announced,
            tag=_Tag(run, sample, done),
        )
        return done

    def _ended(self, request: Request) -> None:
        run, sample, done = _tag(request)
        if request.error is not None:
            self._error = self._error or request.error
            return
        assert request.ended is not None and request.outputs is not None
        expected = self._expected[run.model, sample]
        if not all(np.array_equal(request.outputs[name], expected[name]) for name in expected):
            self.mismatches.append(f"{run.frame.stream} {run.frame.number}: outputs of {run.model} differ")
        self.run_until(request.ended)
        self.env.process(self._succeed(done, max(0, request.ended - self._origin - self.env.now)))
        self.run_until(request.ended)

    def _succeed(self, done: simpy.Event, delay: float) -> Process:
        yield self.env.timeout(delay)
        done.succeed()

    # -- time ------------------------------------------------------------------------------------------------
    def run(self, served: simpy.Event) -> None:
        """Let time pass as ``ModelExecutor`` describes it."""
        with contextlib.suppress(_Failed):
            self._runtime.run_until_done(self)
        if self._error is not None:
            raise self._error
        if not served.triggered:
            raise RuntimeError("a request of the scenario has not ended, and nothing can happen any more")

    def next_cycle(self) -> int | None:
        """Return when a process of the scenario goes on by itself, as ``RequestSource`` describes it."""
        if self._error is not None:
            raise _Failed
        time = self.env.peek()
        return None if time == simpy.core.Infinity else self._cycle(time)

    def run_until(self, cycle: int) -> None:
        """Let processes of the scenario catch up, as ``RequestSource`` describes it."""
        while (due := self.next_cycle()) is not None and due <= cycle:
            self.env.step()

    def _cycle(self, time: float) -> int:
        """Return the cycle of the device at ``time``."""
        return self._origin + round(time)

    # -- results ---------------------------------------------------------------------------------------------
    def outcome(self, frames: Sequence[Frame]) -> Outcome:
        """Return what ran, as ``ModelExecutor`` describes it."""
        measured, engines = self._runtime.measured, self._device.params.engines
        groups = self._runtime.groups
        traffic = sum(result.traffic.total.bytes for run in groups for result in run.results)
        moved = [result for operation in self._device.operations for result in operation.results]
        layers = []
        ends: dict[int, int] = {}
        for run in groups:
            layers.append(self._layer(run, ends.get(run.request.number, 0)))
            ends[run.request.number] = run.end
        return Outcome(
            engines,
            engines if self._placed else 1,
            list(frames),
            layers,
            access_busy=cost.moved(traffic, self._device.params) / self.ticks,
            compute_busy=[measured.compute_busy.get(engine, 0) / self.ticks for engine in range(engines)],
            switch_time=sum(result.end - result.start for result in moved) / self.ticks,
            preemptions=self._runtime.switches,
            timeline=self._timeline(),
            host_time=sum(request.host for request in self._runtime.requests) / self.ticks,
            decision_seconds=list(measured.decision_seconds),
        )

    def _timeline(self) -> list[Span]:
        """Return everything since the scenario began, which is cycle 0; kinds are the scenario's names of models."""
        names: dict[str, set[str]] = {}
        for name, models in self._models.items():
            names.setdefault(models[0].name, set()).add(name)
        named = {image: found.pop() for image, found in names.items() if len(found) == 1}
        spans = preemptive_spans(
            self._runtime.requests, self._runtime.spans(), self._origin, lambda m: named.get(m.name, m.name)
        )
        return [replace(span, kind=named.get(span.kind, span.kind)) for span in spans]

    def _name(self, loaded: LoadedModel) -> str:
        """Return the scenario's name of a model that serves a request."""
        if id(loaded) not in self._called:
            self._called |= {id(request.model): _tag(request).run.model for request in self._runtime.requests}
        return self._called.get(id(loaded), loaded.name)

    def _layer(self, run: GroupRun, inputs: int) -> LayerRun:
        asked, decision = _tag(run.request).run, run.decision
        since = run.request.arrival if self._at_arrival else run.decided  # a queue is joined at once, whatever is busy
        return LayerRun(
            asked.frame.stream, asked.model, run.index, decision.engine, self._time(run.decided),
            self._time(max(since, inputs)), decision.passed_over, decision.candidates, self._time(decision.start),
            self._scaled(decision.idle), self._time(run.load_start), self._time(run.load_end),
            self._time(run.start), self._time(run.end), self._scaled(run.idle),
            sum(result.resumed for result in run.results),
        )  # fmt: skip

    def _time(self, cycle: float) -> float:
        return (cycle - self._origin) / self.ticks

    def _scaled(self, idle: tuple[float, float]) -> tuple[float, float]:
        return idle[0] / self.ticks, idle[1] / self.ticks


def _tag(request: Request) -> _Tag:
    assert isinstance(request.tag, _Tag)
    return request.tag


def cycles_per_unit(scenario: Scenario) -> int:
    """Return the cycles of the scenario's unit of time; raises :class:`ScenarioError` for a unit that is no time."""
    if scenario.time_unit not in CYCLES:
        raise ScenarioError(f"time_unit {scenario.time_unit!r} is no time on this backend; use {', '.join(CYCLES)}")
    return CYCLES[scenario.time_unit]
