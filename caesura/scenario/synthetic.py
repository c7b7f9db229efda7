"""Scenarios on the synthetic machine."""

import random
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import simpy

from caesura.scenario.arrivals import times
from caesura.scenario.outcome import Frame, LayerRun, Outcome
from caesura.scenario.policies import Policies
from caesura.scenario.schema import Closed, ModelSpec, Scenario, ScenarioError, StageSpec, Stream
from sim.synthetic import SwitchCost, SyntheticJob, SyntheticMachine
from sw.runtime.estimates import Estimates
from sw.runtime.forecast import Forecast
from sw.runtime.policies import LayerCost
from sw.runtime.scheduler import Decision, LayerChain, LayerScheduler

Process = Generator[simpy.Event, Any, Any]


class SyntheticRunner:
    """Serves scenarios whose models are given as layers with durations."""

    def run(self, scenario: Scenario, policies: Policies, folder: Path) -> Outcome:
        """See ``Runner``. Raises :class:`ScenarioError` for a model without layers."""
        for name, model in scenario.models.items():
            if not model.layers:
                raise ScenarioError(f"model {name!r} has no layers with durations, which the synthetic backend needs")
        return _Run(scenario, policies, folder).outcome


class _Run:
    """One run: requests arrive, the scheduler decides, the machine reports back."""

    def __init__(self, scenario: Scenario, policies: Policies, folder: Path) -> None:
        machine = scenario.machine
        self._scenario, self._at_arrival = scenario, policies.at_arrival
        self._env = simpy.Environment()
        switch = machine.preemption and SwitchCost(**machine.preemption.model_dump())
        self._machine = SyntheticMachine(self._env, machine.engines, machine.memory, self, switch or None)
        self._cpus = simpy.Resource(self._env, machine.cpus)
        self._truth, self._inputs = _durations(scenario), {n: m.dependencies for n, m in scenario.models.items()}
        self._estimates = Estimates({name: _costs(model) for name, model in scenario.models.items()})
        self._forecast = Forecast(machine.engines, machine.memory)
        self._scheduler = LayerScheduler(
            policies.order(),
            policies.placement(list(machine.initial_waits or [0.0] * machine.engines)),
            self._forecast,
            self._estimates,
            by_priority=machine.preemption is not None,
            inputs=self._inputs,
        )
        self._jobs: dict[tuple[int, int], SyntheticJob] = {}
        self._records: dict[SyntheticJob, LayerRun] = {}
        self._requests: dict[int, tuple[Stream, simpy.Event, int]] = {}  # with the number of layers left
        self._last_load = 0.0
        self._last_end = [0.0] * machine.engines
        self.outcome = Outcome(machine.engines)
        self._serve_all(folder)

    def _serve_all(self, folder: Path) -> None:
        streams = []
        for stream in self._scenario.streams:
            rng = random.Random(f"{self._scenario.seed} {stream.name}")
            serve = self._closed if isinstance(stream.arrivals, Closed) else self._open
            streams.append(self._env.process(serve(stream, times(stream.arrivals, rng, folder))))
        self._env.run(until=self._env.all_of(streams))
        self.outcome.access_busy = self._machine.access_busy
        self.outcome.compute_busy = self._machine.compute_busy
        self.outcome.switch_time = sum(self._machine.switch_time)

    # Requests: arrivals and stages.

    def _open(self, stream: Stream, arrivals: list[float]) -> Process:
        frames = []
        for arrival in arrivals:
            yield self._env.timeout(arrival - self._env.now)
            frames.append(self._env.process(self._frame(stream, simpy.Event(self._env))))
        yield self._env.all_of(frames)

    def _closed(self, stream: Stream, arrivals: list[float]) -> Process:
        assert isinstance(stream.arrivals, Closed)
        left = simpy.Container(self._env, init=stream.arrivals.count)
        yield self._env.all_of([self._env.process(self._user(stream, left)) for _ in arrivals])

    def _user(self, stream: Stream, left: simpy.Container) -> Process:
        """Sends one request after the other while there are some ``left``."""
        assert isinstance(stream.arrivals, Closed)
        frames = []
        while left.level:
            yield left.get(1)
            passed = simpy.Event(self._env)
            frames.append(self._env.process(self._frame(stream, passed)))
            yield passed
            yield self._env.timeout(stream.arrivals.think)
        yield self._env.all_of(frames)

    def _frame(self, stream: Stream, passed: simpy.Event) -> Process:
        """A request through all its stages; ``passed`` when the next one of a closed loop may arrive."""
        now = self._env.now
        number = sum(frame.stream == stream.name for frame in self.outcome.frames)
        frame = Frame(stream.name, number, now, None if stream.deadline is None else now + stream.deadline)
        self.outcome.frames.append(frame)
        waited_for = stream.arrivals.after if isinstance(stream.arrivals, Closed) else None
        for stage in stream.stages:
            yield from self._cpu_stage(stage) if stage.model is None else self._model_stage(stream, stage, frame)
            if stage.name == waited_for and not passed.triggered:
                passed.succeed()
        frame.end = self._env.now
        if not passed.triggered:
            passed.succeed()

    def _cpu_stage(self, stage: StageSpec) -> Process:
        with self._cpus.request() as cpu:
            yield cpu
            yield self._env.timeout(stage.duration)

    def _model_stage(self, stream: Stream, stage: StageSpec, frame: Frame) -> Process:
        assert stage.model is not None
        number, done = len(self._requests), self._env.event()
        priority = stream.priority if stage.priority is None else stage.priority
        self._requests[number] = stream, done, len(self._truth[stage.model])
        self._scheduler.open(LayerChain(number, stage.model, self._env.now, priority, frame.deadline))
        self._decide()
        yield done

    # Decisions.

    def _decide(self) -> None:
        """Schedule while the loader has nothing to do, or at once what is placed on arrival or more urgent."""
        while self._scheduler.open_requests and self._may_decide():
            begin = time.perf_counter()
            decision = self._scheduler.decide(self._env.now)
            self.outcome.decision_seconds.append(time.perf_counter() - begin)
            assert decision is not None
            self._submit(decision)

    def _may_decide(self) -> bool:
        backlog = self._machine.backlog
        if self._at_arrival or not backlog:
            return True
        if self._scenario.machine.preemption is None:
            return False
        return max(r.priority for r in self._scheduler.open_requests) > max(job.priority for job in backlog)

    def _submit(self, decision: Decision) -> None:
        request, layer, now = decision.request, decision.layer, self._env.now
        cost = self._truth[request.model][layer]
        after = [self._jobs[request.number, earlier] for earlier in decision.after]
        job = SyntheticJob(
            len(self._jobs), request.number, layer, decision.engine, *cost[:3], priority=request.priority, after=after
        )
        self._jobs[request.number, layer] = job
        self._records[job] = LayerRun(
            self._requests[request.number][0].name, request.model, layer, decision.engine, now, now,
            decision.passed_over, decision.candidates, decision.start, decision.idle,
        )  # fmt: skip
        self._machine.submit(job)

    # Reports of the machine (``sim.synthetic.MachineObserver``).

    def load_started(self, job: SyntheticJob) -> None:
        """The loader will be free next: choose what it loads then."""
        record = self._records[job]
        record.idle = record.idle[0], self._env.now - max(self._last_load, record.decided)
        self._forecast.load_started((job.request, job.layer), self._env.now)
        self._decide()

    def load_ended(self, job: SyntheticJob) -> None:
        """Correct the estimate."""
        self._last_load = self._env.now
        self._forecast.load_ended((job.request, job.layer), self._env.now)
        self._estimates.correct(self._records[job].model, job.layer, load=job.load)

    def rolled_back(self, job: SyntheticJob) -> None:
        """It will be loaded again."""
        self._forecast.rolled_back((job.request, job.layer))

    def started(self, job: SyntheticJob) -> None:
        """Note how long compute was idle before."""
        record, now = self._records[job], self._env.now
        record.start = now
        record.ready = max([record.decided, *(earlier.end or 0.0 for earlier in job.after)])
        record.idle = now - max(self._last_end[job.engine], record.decided), record.idle[1]
        self._forecast.started((job.request, job.layer), now)

    def ended(self, job: SyntheticJob) -> None:
        """Correct the estimate; the request may have ended."""
        record, now = self._records[job], self._env.now
        record.end, record.preempted = now, job.preempted
        record.load_start, record.load_end = job.load_start or 0.0, job.load_end or 0.0
        self._last_end[job.engine] = now
        self._forecast.ended((job.request, job.layer), now)
        self._estimates.correct(record.model, job.layer, compute=job.compute)
        self._scheduler.ended(job.request, job.layer)
        self.outcome.layers.append(record)
        stream, done, left = self._requests[job.request]
        self._requests[job.request] = stream, done, left - 1
        if left == 1:
            done.succeed()


def _costs(model: ModelSpec) -> list[LayerCost]:
    return [LayerCost(layer.load, layer.compute, layer.bytes) for layer in model.flat_layers]


def _durations(scenario: Scenario) -> dict[str, list[LayerCost]]:
    """True costs: the given ones, each off by up to ``machine.estimate_error`` in either direction."""
    rng, error = random.Random(scenario.seed), scenario.machine.estimate_error
    return {
        name: [
            LayerCost(
                cost.load * (1 + rng.uniform(-error, error)),
                cost.compute * (1 + rng.uniform(-error, error)),
                cost.bytes,
            )
            for cost in _costs(model)
        ]
        for name, model in scenario.models.items()
    }
