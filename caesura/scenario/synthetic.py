"""Runs scenarios on the synthetic machine."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path

import simpy

from caesura.scenario.file_table import ScenarioError
from caesura.scenario.model_executor import ModelRun, Process
from caesura.scenario.model_spec import ModelSpec
from caesura.scenario.outcome import Frame, LayerRun, Outcome
from caesura.scenario.policies import Policies
from caesura.scenario.schema import PreemptionSpec, Scenario
from caesura.scenario.serving import serve
from sim.synthetic import SwitchCost, SyntheticJob, SyntheticMachine
from sw.runtime import (
    Decision,
    Estimates,
    Forecast,
    LayerChain,
    LayerGraph,
    LayerRunner,
    LayerScheduler,
    Mechanism,
    Situation,
    choose,
)
from sw.runtime.policies import LayerCost


class SyntheticRunner:
    """Serves scenarios whose models are given as layers with durations."""

    def run(self, scenario: Scenario, policies: Policies, folder: Path) -> Outcome:
        """Run a scenario as ``Runner`` describes it. Raises :class:`ScenarioError` for a model without layers."""
        _check_runnable(scenario)
        return serve(scenario, SyntheticExecutor(scenario, policies), folder)


def _check_runnable(scenario: Scenario) -> None:
    """Raise :class:`ScenarioError` for what only backends that run real models can do."""
    for name, model in scenario.models.items():
        if not model.layers:
            raise ScenarioError(f"model {name!r} has no layers with durations, which the synthetic backend needs")
    if scenario.machine.devices > 1:
        raise ScenarioError(
            f"machine.devices = {scenario.machine.devices}: the synthetic machine is one: leave devices out, or run "
            "real models"
        )
    preemption = scenario.machine.preemption
    if preemption is not None and None in (preemption.dump, preemption.restore, preemption.interval):
        raise ScenarioError(
            "machine.preemption: the synthetic machine needs dump, restore and interval: add them, or run real models"
        )
    if preemption is not None and Mechanism.KILL in preemption.mechanisms:
        raise ScenarioError("machine.preemption.mechanisms: the synthetic machine kills nothing: leave 'kill' out")
    for stream in scenario.streams:
        if stream.late == "drop":
            raise ScenarioError(f"stream {stream.name!r}: the synthetic machine drops nothing: leave late out")


@dataclass
class _OpenRun:
    """Describes a run of a model. ``done`` happens when its last layer has ended."""

    run: ModelRun
    done: simpy.Event


class SyntheticExecutor:
    """Is the synthetic machine as the executor of a layer runner, which decides as the machine reports what happens.

    A ``ModelExecutor`` whose ticks are the scenario's units.
    """

    ticks = 1

    def __init__(self, scenario: Scenario, policies: Policies) -> None:
        machine = scenario.machine
        self.env = simpy.Environment()
        self._at_arrival, self._preemptive = policies.at_arrival, machine.preemption is not None
        self._switch = None if machine.preemption is None else _switch_cost(machine.preemption)
        self._mechanisms = machine.preemption.mechanisms if machine.preemption else []
        self._machine = SyntheticMachine(
            self.env, machine.engines, machine.memory, self, self._switch, machine.partial_loading
        )
        self._truth = _durations(scenario)
        self._estimates = Estimates({name: _costs(model) for name, model in scenario.models.items()})
        forecast = Forecast(machine.engines, machine.memory, partial=machine.partial_loading)
        self._scheduler = LayerScheduler(
            policies.order(),
            policies.placement(
                list(machine.initial_waits or [0.0] * machine.engines), 0.0 if machine.initial_waits_decay else None
            ),
            forecast,
            self._estimates,
            by_priority=self._preemptive,
            graphs={n: LayerGraph(m.dependencies, _blocks(m)) for n, m in scenario.models.items() if m.layers},
        )
        self._decision_seconds: list[float] = []
        self._layers = LayerRunner[_OpenRun, LayerCost](
            self._scheduler, self._decision_seconds, machine.layers_per_decision
        )
        self._runs: list[_OpenRun] = []  #: all, by number of the chain that the scheduler has of each
        self._announced: dict[ModelRun, int] = {}  #: runs that have not been submitted
        self._declined: list[int] = []  #: runs that wait for less urgent ones to end
        self._jobs: dict[tuple[int, int], SyntheticJob] = {}
        self._records: dict[SyntheticJob, LayerRun] = {}
        self._decisions: dict[SyntheticJob, Decision] = {}
        self._last_load = 0.0
        self._last_end = [0.0] * machine.engines
        self._ended: list[LayerRun] = []

    # -- runs of models --------------------------------------------------------------------------------------
    def announce(self, run: ModelRun, delay: float) -> None:
        """Announce a run as ``ModelExecutor`` describes it. The switch to it begins so long ahead that a dump has ended
        when it arrives."""
        self._announced[run] = self._add(run)
        if self._switch is not None:
            self.env.process(self._switch_ahead(self._announced[run], self.env.now + delay, self._switch))

    def submit(self, run: ModelRun) -> simpy.Event:
        """Submit a run as ``ModelExecutor`` describes it."""
        number = self._announced.pop(run, None)
        number = self._add(run) if number is None else number
        if number not in self._layers.steps:  # it was not switched to ahead
            self._begin_or_wait(number)
        return self._runs[number].done

    def _add(self, run: ModelRun) -> int:
        self._runs.append(_OpenRun(run, self.env.event()))
        return len(self._runs) - 1

    def _begin(self, number: int, arrival: float) -> None:
        """Schedule the layers of a run from now on; none loads before ``arrival``."""
        run = self._runs[number].run
        chain = LayerChain(number, run.model, arrival, run.priority, run.frame.deadline)
        self._layers.open(chain, self._runs[number], self._truth[run.model])
        self._layers.turn(self)

    def run(self, served: simpy.Event) -> None:
        """Let time pass as ``ModelExecutor`` describes it."""
        self.env.run(until=served)

    def outcome(self, frames: Sequence[Frame]) -> Outcome:
        """Return what ran, as ``ModelExecutor`` describes it."""
        machine = self._machine
        engines = len(machine.compute_busy)
        moves = [replace(m, models=tuple(self._runs[number].run.model for number in m.requests)) for m in machine.moves]
        return Outcome(
            engines, engines, list(frames), self._ended, machine.access_busy, machine.compute_busy,
            sum(machine.switch_time),
            preemptions=machine.switches, moves=moves, decision_seconds=self._decision_seconds,
        )  # fmt: skip

    # -- preemption ------------------------------------------------------------------------------------------
    def _begin_or_wait(self, number: int) -> None:
        if self._choice(number, 0.0) is Mechanism.WAIT:
            self._declined.append(number)
        else:
            self._begin(number, self.env.now)

    def _switch_ahead(self, number: int, arrival: float, switch: SwitchCost) -> Process:
        """Switch to a run that arrives at ``arrival`` ahead of that."""
        yield self.env.timeout(max(0.0, arrival - switch.dump - switch.interval / 2 - self.env.now))
        notice = arrival - self.env.now
        if notice and self._choice(number, notice) is Mechanism.DUMP:
            self._begin(number, arrival)

    def _choice(self, number: int, notice: float) -> Mechanism | None:
        """Return what to do about less urgent runs for one that arrives in ``notice``, by the same rule as on a device;
        None if none is in its way. On several engines the first that would be free counts."""
        below = max((step.owner.run.priority for step in self._layers.steps.values()), default=0)
        if self._switch is None or self._runs[number].run.priority <= below:
            return None
        waits = [sum(map(self._left, self._machine.on_chip(e))) for e in range(len(self._machine.compute_busy))]
        if not min(waits):
            return None
        dump, restore, halt = self._switch.dump, self._switch.restore, self._switch.interval / 2
        now = Situation(min(waits), 0.0, halt, dump, restore, 1.0, 0.0, killable=False, notice=notice)
        return choose(now, allowed=self._mechanisms)

    def _left(self, job: SyntheticJob) -> float:
        """Return the estimated time that the request of ``job``, the latest that has begun, needs until its end."""
        model, now = self._records[job].model, self.env.now
        next_layer = len(self._truth[model]) - self._layers.steps[job.request].left
        elapsed = 0.0 if job.start is None or job.end is not None else now - job.start
        return max(0.0, self._estimates.remaining(model, next_layer) - elapsed)

    # -- as executor of the layers that are decided on (``sw.runtime.LayerExecutor``) --------------------------------
    def now(self) -> float:
        """Return the simulated time."""
        return self.env.now

    def think(self) -> None:
        """Decide in no time."""

    def room(self, chain: LayerChain) -> bool:
        """Return whether the loader has nothing to do, or something would go ahead of all that it has: what is placed
        on arrival, or more urgent."""
        backlog = self._machine.backlog
        if self._at_arrival or not backlog:
            return True
        if not self._preemptive:
            return False
        return max(r.priority for r in self._scheduler.open_chains) > max(job.priority for job in backlog)

    def push(self) -> None:
        """Leave it to the machine, which begins with what it has as soon as it can."""

    def take(self, decision: Decision) -> None:
        """Give a layer to the machine."""
        chain, layer, now = decision.chain, decision.layer, self.env.now
        step = self._layers.steps[chain.number]
        cost = step.layers[layer]
        after = [self._jobs[chain.number, earlier] for earlier in decision.after]
        job = SyntheticJob(
            len(self._jobs), chain.number, layer, decision.engine, *cost[:3], priority=chain.priority, after=after,
            jobs=len(step.layers), earliest=chain.arrival,
        )  # fmt: skip
        self._jobs[decision.key], self._decisions[job] = job, decision
        self._records[job] = LayerRun(
            step.owner.run.frame.stream, chain.model, layer, decision.engine, now, now,
            decision.passed_over, decision.candidates, decision.start, decision.idle,
        )  # fmt: skip
        self._machine.submit(job)

    # -- reports of the machine (``sim.synthetic.MachineObserver``) --------------------------------------------

    def load_started(self, job: SyntheticJob) -> None:
        """Choose what the loader, which will be free next, loads then."""
        record = self._records[job]
        record.idle = record.idle[0], self.env.now - max(self._last_load, record.decided)
        self._scheduler.load_started(self._decisions[job], self.env.now)
        self._layers.turn(self)

    def load_ended(self, job: SyntheticJob) -> None:
        """Correct the estimate of the load."""
        self._last_load = self.env.now
        self._scheduler.load_ended(self._decisions[job], self.env.now, job.load)

    def rolled_back(self, job: SyntheticJob) -> None:
        """Note that the layer will be loaded again."""
        self._scheduler.rolled_back(self._decisions[job])

    def started(self, job: SyntheticJob) -> None:
        """Note how long compute was idle before."""
        record, now = self._records[job], self.env.now
        record.start = now
        record.ready = max([record.decided, *(earlier.end or 0.0 for earlier in job.after)])
        record.idle = now - max(self._last_end[job.engine], record.decided), record.idle[1]
        self._scheduler.started(self._decisions[job], now)

    def ended(self, job: SyntheticJob) -> None:
        """Correct the estimate of the compute; the request may have ended."""
        record, now = self._records[job], self.env.now
        record.end, record.preempted = now, job.preempted
        record.load_start, record.load_end = job.load_start or 0.0, job.load_end or 0.0
        self._last_end[job.engine] = now
        over = self._layers.ended(self._decisions[job], now, compute=job.compute)
        self._ended.append(record)
        if over:
            self._runs[job.request].done.succeed()
            waiting, self._declined = self._declined, []
            for number in sorted(waiting, key=lambda waits: -self._runs[waits].run.priority):
                self._begin_or_wait(number)


def _switch_cost(spec: PreemptionSpec) -> SwitchCost:
    return SwitchCost(spec.dump or 0.0, spec.restore or 0.0, spec.interval or 0.0)


def _blocks(model: ModelSpec) -> list[int | None]:
    """Return of each layer the number of its block: neighbours with the same name."""
    names = [layer.block for layer in model.flat_layers]
    numbers = list(accumulate((a != b for a, b in pairwise(names)), initial=0))
    return [None if name is None else number for name, number in zip(names, numbers, strict=False)]


def _costs(model: ModelSpec) -> list[LayerCost]:
    return [LayerCost(layer.load, layer.compute, layer.bytes) for layer in model.flat_layers]


def _durations(scenario: Scenario) -> dict[str, list[LayerCost]]:
    """Return true costs: the given ones, each off by up to ``machine.estimate_error`` in either direction."""
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
