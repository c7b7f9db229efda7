"""Scenarios on the RTL: real models, compiled to lie side by side in LV2 where that has room."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np

from caesura import api
from caesura.bench import benchmarks
from caesura.inputs import Sample, random_samples
from caesura.scenario.arrivals import times
from caesura.scenario.outcome import Frame, LayerRun, Outcome
from caesura.scenario.policies import Policies
from caesura.scenario.schema import Closed, ModelSpec, Scenario, ScenarioError, Stream
from compiler.backend.options import Options
from compiler.ir import CompileError
from hw.contract.image import Image
from hw.contract.params import SocParams
from sim.backends import DEFAULT_BACKEND
from sw.driver import Device
from sw.driver.memory.ranges import normalise
from sw.runtime.group_run import GroupRun
from sw.runtime.preemption_mechanism import Mechanism, Situation, choose
from sw.runtime.reference import durations, store
from sw.runtime.request import Request
from sw.runtime.runtime import Runtime
from sw.runtime.session import Session

CYCLES = {"cycles": 1, "ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}  #: at a nominal 1 GHz
_SAMPLES = 2  #: different inputs of each model, used in turn


class RtlRunner:
    """Serves scenarios whose models are given as ``onnx`` or ``workload`` on an RTL backend.

    Every request's outputs are compared with those of its model run by itself; ``mismatches`` lists what differed in
    the latest run. Images are compiled once for each share of LV2. ``rule``: what to do on a more urgent arrival.
    """

    def __init__(self, backend: str = DEFAULT_BACKEND, rule: Callable[[Situation], Mechanism] = choose) -> None:
        self._backend, self._rule = backend, rule
        self._images: dict[tuple[Path, SocParams, int, int], Image] = {}
        self.mismatches: list[str] = []
        self.alone: dict[str, Alone] = {}  #: by model, of the latest runs

    def run(self, scenario: Scenario, policies: Policies, folder: Path) -> Outcome:
        """See ``Runner``. Raises :class:`ScenarioError` for a model without a file, and what compiler and driver raise;
        the error of a request that fails."""
        params = api.resolve(scenario.machine.preset).replace(**scenario.machine.params)
        images = self._compile(scenario, params, folder)
        device = api.open(params, self._backend)
        try:
            run = _Run(scenario, policies, folder, device.driver, images, self._rule)
            self.mismatches = run.mismatches
            self.alone |= run.alone
            return run.outcome
        finally:
            device.close()

    def _compile(self, scenario: Scenario, params: SocParams, folder: Path) -> dict[str, Image]:
        engines = 1 if scenario.machine.placed else params.engines
        used = {s.model for stream in scenario.streams for s in stream.stages if s.model is not None}
        fixed = {name: scenario.models[name].lv2_limit for name in used}
        left = params.lv2_bytes - sum((size or 0) * copies(scenario, name) for name, size in fixed.items())
        shares = sum(copies(scenario, name) for name, size in fixed.items() if size is None)
        share = max(0, left) // max(1, shares) // params.lv1_word * params.lv1_word
        images = {}
        for name in sorted(used):
            path, size = _file(name, scenario.models[name], folder), fixed[name]
            limit = share if size is None else size
            try:
                images[name] = self._image(path, params, engines, limit)
            except CompileError:
                if size is not None:
                    raise
                # Its share is too small: it takes turns with the others.
                images[name] = self._image(path, params, engines, 0)
        return images

    def _image(self, path: Path, params: SocParams, engines: int, limit: int) -> Image:
        key = (path, params, engines, limit)  # all of params: estimates depend on the DRAM's timing, digests do not
        if key not in self._images:
            self._images[key] = api.compile(path, params, engines=engines, options=Options(lv2_limit=limit))
        return self._images[key]


def copies(scenario: Scenario, model: str) -> int:
    """How often ``model`` is loaded: as told, or so that requests of a closed loop need not wait for each other."""
    told = scenario.models[model].copies
    if told is not None:
        return told
    loops = [
        stream.arrivals.concurrency
        for stream in scenario.streams
        if isinstance(stream.arrivals, Closed) and any(stage.model == model for stage in stream.stages)
    ]
    return min(2, max(loops, default=1))


def _file(name: str, model: ModelSpec, folder: Path) -> Path:
    if model.onnx is not None:
        return folder / model.onnx
    if model.workload is not None:
        return benchmarks("workloads", f"model {name!r} (workload {model.workload!r})").workload(model.workload)
    raise ScenarioError(
        f"model {name!r} has only layers with durations, which backend 'synthetic' runs; give onnx or workload"
    )


@dataclass
class _InFlight:
    """A request of a stream: ``stage`` is the one it is at."""

    stream: Stream
    frame: Frame
    stage: int = 0
    passed: bool = False  #: a closed loop has been told to go on


class Alone(NamedTuple):
    """Cycles of one inference that runs by itself: memory access and compute of all layers, and as the host sees it."""

    load: int
    compute: int
    latency: int


class _Tag(NamedTuple):
    """What a request to the run time is for. ``sample``: number of its inputs."""

    flight: _InFlight
    model: str
    sample: int


class _Run:
    """One run. Times are cycles since its beginning until they go into the outcome."""

    def __init__(
        self, scenario: Scenario, policies: Policies, folder: Path, device: Device, images: dict[str, Image],
        rule: Callable[[Situation], Mechanism],
    ) -> None:  # fmt: skip
        self._scenario, self._device, self._at_arrival = scenario, device, policies.at_arrival
        self._unit = _cycles_per_unit(scenario)
        self._models = {
            name: [device.load(image) for _ in range(copies(scenario, name))] for name, image in images.items()
        }
        self._samples = {name: random_samples(image, _SAMPLES, scenario.seed) for name, image in images.items()}
        self.alone: dict[str, Alone] = {}
        self._expected = self._run_alone()
        self._next = dict.fromkeys(self._models, 0)
        self._left: dict[str, int] = {}
        self._cpus = [0.0] * scenario.machine.cpus
        self.mismatches: list[str] = []
        self._runtime = Runtime(
            device, policies.order, policies.placement, placed=scenario.machine.placed,
            preemptive=scenario.machine.preemption is not None,
            at_arrival=policies.at_arrival, rule=rule, on_end=self._ended, initial_waits=scenario.machine.initial_waits,
        )  # fmt: skip
        self._origin = device.bus.cycle
        self.outcome = Outcome(device.params.engines)
        self._serve(folder)
        self._report()

    def _run_alone(self) -> dict[tuple[str, int], Sample]:
        outputs = {}
        for name, models in self._models.items():
            session = Session(self._device, models[0])
            for i, sample in enumerate(self._samples[name]):
                outputs[name, i], stats = session.run(sample)
                layers = durations(models[0].image, stats.jobs).values()
                loads, computes = (sum(layer[what] for layer in layers) for what in (0, 1))
                store(models[0].image, stats.jobs)
                self.alone[name] = Alone(loads, computes, stats.latency)
        return outputs

    def _serve(self, folder: Path) -> None:
        for stream in self._scenario.streams:
            rng = Random(f"{self._scenario.seed} {stream.name}")
            arrivals = times(stream.arrivals, rng, folder)
            self._left[stream.name] = (
                stream.arrivals.count - len(arrivals) if isinstance(stream.arrivals, Closed) else 0
            )
            for time in arrivals:
                self._arrive(stream, time * self._unit)
        self._runtime.run_until_done()

    # -- requests --------------------------------------------------------------------------------------------
    def _arrive(self, stream: Stream, at: float) -> None:
        number = sum(frame.stream == stream.name for frame in self.outcome.frames)
        arrival = at / self._unit
        frame = Frame(stream.name, number, arrival, None if stream.deadline is None else arrival + stream.deadline)
        self.outcome.frames.append(frame)
        self._go_on(_InFlight(stream, frame), at)

    def _go_on(self, flight: _InFlight, at: float) -> None:
        """Run stages on the CPU until one needs the accelerator."""
        stages = flight.stream.stages
        while flight.stage < len(stages):
            stage = stages[flight.stage]
            if stage.model is not None:
                self._submit(flight, stage.model, stage.priority, at)
                return
            at = self._compute_on_cpu(stage.duration * self._unit, at)
            self._stage_ended(flight, at)
        flight.frame.end = at / self._unit
        self._pass(flight, at)

    def _compute_on_cpu(self, duration: float, at: float) -> float:
        cpu = min(range(len(self._cpus)), key=lambda i: self._cpus[i])
        self._cpus[cpu] = max(at, self._cpus[cpu]) + duration
        return self._cpus[cpu]

    def _submit(self, flight: _InFlight, model: str, priority: int | None, at: float) -> None:
        number = self._next[model]
        self._next[model] += 1
        loaded = self._models[model]
        deadline = flight.frame.deadline
        before = flight.stream.stages[flight.stage - 1] if flight.stage else None
        self._runtime.submit(
            loaded[number % len(loaded)],
            self._samples[model][number % _SAMPLES],
            priority=flight.stream.priority if priority is None else priority,
            deadline=None if deadline is None else self._origin + deadline * self._unit,
            arrival=self._origin + round(at),
            announced=before is not None and before.announced,
            tag=_Tag(flight, model, number % _SAMPLES),
        )

    def _ended(self, request: Request) -> None:
        flight, model, sample = _tag(request)
        if request.error is not None:
            raise request.error
        assert request.ended is not None and request.outputs is not None
        expected = self._expected[model, sample]
        if not all(np.array_equal(request.outputs[name], expected[name]) for name in expected):
            self.mismatches.append(f"{flight.stream.name} {flight.frame.number}: outputs of {model} differ")
        at = request.ended - self._origin
        self._stage_ended(flight, at)
        self._go_on(flight, at)

    def _stage_ended(self, flight: _InFlight, at: float) -> None:
        name = flight.stream.stages[flight.stage].name
        flight.stage += 1
        if isinstance(flight.stream.arrivals, Closed) and flight.stream.arrivals.after == name:
            self._pass(flight, at)

    def _pass(self, flight: _InFlight, at: float) -> None:
        """The next request of a closed loop may arrive."""
        stream = flight.stream
        if isinstance(stream.arrivals, Closed) and not flight.passed and self._left[stream.name]:
            self._left[stream.name] -= 1
            self._arrive(stream, at + stream.arrivals.think * self._unit)
        flight.passed = True

    # -- results ---------------------------------------------------------------------------------------------
    def _report(self) -> None:
        measured, outcome = self._runtime.measured, self.outcome
        outcome.compute_busy = [measured.compute_busy.get(e, 0) / self._unit for e in range(outcome.engines)]
        loads = [
            (r.prologue_start, r.prologue_end) for run in self._runtime.groups for r in run.results if r.prologue_start
        ]
        outcome.access_busy = sum(end - start for start, end in normalise(loads)) / self._unit
        outcome.decision_seconds = measured.decision_seconds
        moved = [result for operation in self._device.operations for result in operation.results]
        outcome.switch_time = sum(result.end - result.start for result in moved) / self._unit
        ends: dict[int, int] = {}
        for run in self._runtime.groups:
            outcome.layers.append(self._layer(run, ends.get(run.request.number, 0)))
            ends[run.request.number] = run.end

    def _layer(self, run: GroupRun, inputs: int) -> LayerRun:
        flight, model, _ = _tag(run.request)
        decision = run.decision
        since = run.request.arrival if self._at_arrival else run.decided  # a queue is joined at once, whatever is busy
        return LayerRun(
            flight.stream.name, model, run.index, decision.engine, self._time(run.decided),
            self._time(max(since, inputs)), decision.passed_over, decision.candidates, self._time(decision.start),
            _scaled(decision.idle, self._unit), self._time(run.load_start), self._time(run.load_end),
            self._time(run.start), self._time(run.end), _scaled(run.idle, self._unit),
            sum(result.resumed for result in run.results),
        )  # fmt: skip

    def _time(self, cycle: float) -> float:
        return (cycle - self._origin) / self._unit


def _scaled(idle: tuple[float, float], unit: int) -> tuple[float, float]:
    return idle[0] / unit, idle[1] / unit


def _tag(request: Request) -> _Tag:
    assert isinstance(request.tag, _Tag)
    return request.tag


def _cycles_per_unit(scenario: Scenario) -> int:
    if scenario.time_unit not in CYCLES:
        raise ScenarioError(f"time_unit {scenario.time_unit!r} is no time on this backend; use {', '.join(CYCLES)}")
    return CYCLES[scenario.time_unit]
