"""Runs a scenario under a policy on a backend."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from caesura.api import UsageError, resolve
from caesura.machines import changed, read_machine
from caesura.scenario import synthetic
from caesura.scenario.outcome import Outcome, spans
from caesura.scenario.policies import Policies
from caesura.scenario.reports import report
from caesura.scenario.rtl import RtlRunner
from caesura.scenario.schema import Scenario, Stream, TraceSpec, load_scenario
from caesura.views import Progress
from sim import BACKENDS, write_trace


class Runner(Protocol):
    """Is a backend that can run scenarios."""

    def run(self, scenario: Scenario, policies: Policies, folder: Path) -> Outcome:
        """Serve all requests. ``folder``: where the scenario's file lies, for the paths in it."""
        ...


def _on_device(backend: str, progress: Progress) -> Runner:
    return RtlRunner(backend, progress=progress)


RUNNERS: dict[str, Callable[[Progress], Runner]] = {
    "synthetic": lambda progress: synthetic.SyntheticRunner(),
    **{name: partial(_on_device, name) for name in BACKENDS},
}


def run_scenario(
    path: Path | str,
    policy: str = "idle_time",
    backend: str | None = None,
    *,
    placement: str = "queue_time",
    options: Mapping[str, Any] | None = None,
    trace: Path | None = None,
    params: Path | None = None,
    changes: Sequence[str] = (),
    page: Path | None = None,
    seen: Callable[[Scenario, Outcome], None] | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run a scenario file and report its metrics as plain data; see ``caesura.scenario.reports`` for the members.

    ``backend``: by default what the models need, see :func:`backend_of`. ``trace``: where to write a timeline for
    Perfetto; ``page``: a page with timeline and plots; ``seen`` is called with all that happened; ``progress`` tells
    what goes on. ``params``: a file of parameters of the hardware, instead of those of the scenario; ``changes`` to
    either, such as ``engines=4``.

    Raises :class:`ScenarioError` for a file that cannot be used, ``UsageError`` for an unknown policy or backend.
    """
    scenario, folder = load_scenario(path), Path(path).parent
    backend = backend or backend_of(scenario)
    if backend not in RUNNERS:
        raise UsageError(f"backend {backend!r} cannot run scenarios; use {', '.join(RUNNERS)}")
    policies = Policies.named(policy, placement, options)
    if params is not None or changes:
        if backend == "synthetic":
            raise UsageError(
                "--params and --set change hardware, which the synthetic machine has not: choose a --backend"
            )
        scenario = _on_machine(scenario, params, changes)
    progress = progress or Progress()
    progress.task(f"serving {scenario.name} under {policy}")
    runner = RUNNERS[backend](progress)
    outcome = runner.run(scenario, policies, folder)
    if seen is not None:
        seen(scenario, outcome)
    if trace is not None:
        write_trace(trace, spans(outcome, scenario.time_unit))
    alone = {stream.name: alone_time(runner, scenario, stream, folder) for stream in scenario.streams}
    result = report(scenario, policy, backend, outcome, alone)
    if page is not None:
        progress.task(f"writing {page}")
        from caesura.views import write_scenario_page  # loads the plotting library

        write_scenario_page(page, result, outcome)
    return result


def backend_of(scenario: Scenario) -> str:
    """Return ``synthetic`` if all models have durations, otherwise the fast model of the hardware, which needs no
    build."""
    used = {stage.model for stream in scenario.streams for stage in stream.stages if stage.model is not None}
    return "synthetic" if all(scenario.models[name].layers for name in used) else "model"


def _on_machine(scenario: Scenario, params: Path | None, changes: Sequence[str]) -> Scenario:
    """Return the scenario with other hardware."""
    spec = scenario.machine
    base = read_machine(params) if params else resolve(spec.preset).replace(**spec.params)
    fields = {name: value for name, value in changed(base, changes).to_dict().items() if name != "name"}
    return scenario.model_copy(update={"machine": spec.model_copy(update={"params": fields})})


def alone_time(runner: Runner, scenario: Scenario, stream: Stream, folder: Path) -> float:
    """Return the turnaround of one request of ``stream`` with nothing else on the machine."""
    single = stream.model_copy(update={"arrivals": TraceSpec(kind="trace", times=[0.0])})
    alone = scenario.model_copy(update={"name": f"one request of {stream.name}", "streams": [single]})
    outcome = runner.run(alone, Policies.named("fcfs"), folder)
    return outcome.frames[0].turnaround
