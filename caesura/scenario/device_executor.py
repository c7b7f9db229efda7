"""Makes one device or several, and their run times, the model executor of a scenario."""

import contextlib
from collections.abc import Callable, Mapping, Sequence

import simpy

from caesura.scenario.device_outcome import DeviceOutcome, SampleRun, of_all, sample_runs
from caesura.scenario.model_executor import ModelRun, Process
from caesura.scenario.outcome import Frame, ModelPlace, Outcome
from caesura.scenario.output_check import OutputCheck
from caesura.scenario.policies import Policies
from caesura.scenario.schema import MachineSpec, Scenario
from caesura.scenario.served_batches import copies_on
from caesura.scenario.served_model import Alone, ServedModel
from caesura.views import Progress
from sw.admission import Admission
from sw.driver import Device, LoadedModel
from sw.runtime import Arrays, DeadlineMissed, Fleet, FleetRequest, Mechanism, Situation, turns_taken


class _Failed(Exception):
    """Says that a request failed: the run time shall serve no others."""


class DeviceExecutor:
    """Serves models on ``devices``, whose cycles are the ticks; also the ``RequestSource`` of their fleet.

    Devices lead: whenever a run time looks at what has arrived, the processes of the scenario catch up with the device
    that is behind. Time begins with 0 on all of them once every model has run alone on the first, for its durations and
    for the outputs to expect.

    Parameters
    ----------
    models : of each device by name, as they are loaded
    rule : what to do on a more urgent arrival
    keep : called with the outputs of every run of a model
    certificate : which the streams run under, in place of policies and rule; a request that fails ends no others then
    """

    def __init__(
        self, scenario: Scenario, policies: Policies, devices: Sequence[Device],
        models: Sequence[Mapping[str, ServedModel]], rule: Callable[[Situation], Mechanism],
        keep: Callable[[ModelRun, Arrays], None], progress: Progress | None = None,
        certificate: Admission | None = None,
    ) -> None:  # fmt: skip
        self.env, self.ticks = simpy.Environment(), scenario.cycles_per_unit
        self._devices, self._models, self._at_arrival = devices, models[0], policies.at_arrival
        self._loaded = {name: copies_on(name, devices, [each[name] for each in models]) for name in models[0]}
        self.alone: dict[str, Alone] = {}
        self.check = OutputCheck()
        self._keep, self._places = keep, dict[str, dict[tuple[int, int], tuple[tuple[int, ...], int]]]()
        self._progress = progress or Progress()
        if (told := turns_taken(devices[0])) is not None:
            self._progress.note(told)
        for name, model in self._models.items():
            self._progress.task(f"{name} alone")
            for sample in model.first():
                self.check.expect((name, sample), self._run_alone(devices[0], name, sample))
        self._progress.task(f"serving {scenario.name}")
        self._next = dict.fromkeys(self._models, 0)
        self._announced: dict[ModelRun, simpy.Event] = {}
        self._error: Exception | None = None  #: of the first request that failed; nothing is served after it
        self._placed, self._certified = scenario.machine.placed, certificate is not None
        self._origin = max(device.bus.cycle for device in devices)
        for device in devices:
            device.bus.advance(self._origin - device.bus.cycle)
        if certificate is None:
            self._fleet = _fleet(devices, scenario.machine, policies, rule, self._ended)
        else:
            self._fleet = Fleet(devices, None, on_end=self._ended, history=None, certificate=certificate)
        self._called: dict[int, str] = {}
        for runtime in self._fleet.runtimes:
            self._progress.watch(runtime, self._name)

    def run_alone(self, name: str, sample: int) -> Arrays:
        """Return the outputs of a model for a sample, with nothing else on the device: the first that still serves."""
        return self._run_alone(self._devices[self._fleet.alive[0]], name, sample)

    def _run_alone(self, device: Device, name: str, sample: int) -> Arrays:
        outputs, self.alone[name] = self._models[name].alone(device, sample)
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
        cycle = self._cycle(arrival)
        made = SampleRun(run, self._models[run.model].sample_for(number, run), self.env.event(), cycle)
        self._ask(made, cycle, announced=announced)
        return made.done

    def _ask(self, made: SampleRun, cycle: int, *, announced: bool = False) -> None:
        """Ask for what runs next of ``made``, at ``cycle``."""
        run, deadline = made.run, made.run.frame.deadline
        serving, inputs = self._loaded[run.model].part(run, self._models[run.model].samples[made.sample])
        self._fleet.submit(
            serving,
            inputs,
            priority=0 if self._certified else run.priority,
            deadline=None if deadline is None else self._origin + deadline * self.ticks,
            soft_deadline=not run.frame.drop,  # how many are missed is a result of the scenario
            arrival=cycle,
            announced=announced,
            tag=made,
            stream=run.frame.stream if self._certified else None,
        )

    def _note_place(self, name: str, device: int, loaded: LoadedModel) -> None:
        where = loaded.engines, loaded.image.meta.lv2_bytes
        self._places.setdefault(name, {})[device, loaded.number] = where

    def _ended(self, served: FleetRequest) -> None:
        """Let what waits for a request go on. An error is kept: the run time takes it for one of the request."""
        error = served.error if served.request is None else served.request.error
        dropped = isinstance(error, DeadlineMissed)
        failed = error is not None and not dropped
        if error is not None and (served.request is None or (failed and not self._certified)):
            self._error = self._error or error
            return
        request = served.request
        assert request is not None and request.ended is not None and served.device is not None
        made_for = served.how["tag"]
        assert isinstance(made_for, SampleRun)
        run = made_for.run
        self._note_place(run.model, served.device, request.model)
        if served.outputs is not None:
            try:
                outputs = self._loaded[run.model].take(run, request, served.outputs)
                if outputs is None:
                    self._ask(made_for, request.ended)
                    return
                self._take(made_for, outputs)
            except Exception as error:  # of files, of what is loaded next: it ends the scenario, not the run time
                self._error = self._error or error
                return
        self._loaded[run.model].ended(run, dropped=dropped or failed)
        self._fleet.bring(request.ended)
        delay = max(0, request.ended - self._origin - self.env.now)
        self.env.process(self._succeed(made_for.done, delay, dropped or failed))
        self._fleet.bring(request.ended)

    def _take(self, served: SampleRun, outputs: Arrays) -> None:
        run = served.run
        token = f", token {run.token}" if run.tokens > 1 else ""
        self.check.add((run.model, served.sample), f"{run.frame.stream} {run.frame.number}{token}", outputs)
        if run.next_token() is None:
            self._keep(run, outputs)

    def _succeed(self, done: simpy.Event, delay: float, dropped: bool) -> Process:
        yield self.env.timeout(delay)
        done.succeed(dropped)

    # -- time ------------------------------------------------------------------------------------------------
    def run(self, served: simpy.Event) -> None:
        """Let time pass as ``ModelExecutor`` describes it."""
        with contextlib.suppress(_Failed):
            self._fleet.run_until_done(self)
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
        """Return the cycle of devices at ``time``."""
        return self._origin + round(time)

    # -- results ---------------------------------------------------------------------------------------------
    def outcome(self, frames: Sequence[Frame]) -> Outcome:
        """Return what ran, as ``ModelExecutor`` describes it."""
        places = {name: self._place(name) for name in self._places}
        return of_all([
            DeviceOutcome(number, device, runtime, self._origin, self.ticks, self._placed, self._at_arrival)
            .outcome(frames, places, self._fleet.dead.get(number))
            for number, (device, runtime) in enumerate(zip(self._devices, self._fleet.runtimes, strict=True))
        ])  # fmt: skip

    def _name(self, loaded: LoadedModel) -> str:
        """Return the scenario's name of a model that serves a request."""
        if id(loaded) not in self._called:
            requests = [request for runtime in self._fleet.runtimes for request in runtime.requests]
            self._called |= {id(request.model): sample_runs(request)[0].run.model for request in requests}
        return self._called.get(id(loaded), loaded.name)

    def _place(self, name: str) -> ModelPlace:
        """Return where a model stood on devices. One whose layers are placed may stand on any engine."""
        noted = self._places[name].values()
        engines = range(self._devices[0].params.engines) if self._placed else {e for where, _ in noted for e in where}
        return ModelPlace(tuple(sorted(engines)), len(self._models[name].copies), max(size for _, size in noted))


def _fleet(
    devices: Sequence[Device], machine: MachineSpec, policies: Policies, rule: Callable[[Situation], Mechanism],
    on_end: Callable[[FleetRequest], None],
) -> Fleet:  # fmt: skip
    """Return a fleet that decides as the policies and the scenario's machine say."""
    return Fleet(
        devices, policies.order, on_end=on_end, placement=policies.placement if machine.placed else None,
        placed=machine.placed, preemptive=machine.preemption is not None, may_kill=machine.may_kill,
        at_arrival=policies.at_arrival, rule=rule, initial_waits=machine.initial_waits if machine.placed else None,
        initial_waits_decay=machine.initial_waits_decay, layers_per_decision=machine.layers_per_decision,
        history=None,
    )  # fmt: skip
