"""Runs a scenario under a policy on a backend."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from caesura.api import UsageError
from caesura.scenario import synthetic
from caesura.scenario.alone import ScenarioRunner, times_alone
from caesura.scenario.hardware import on_machine
from caesura.scenario.model_report import ModelReport, model_reports
from caesura.scenario.outcome import Outcome, spans
from caesura.scenario.policies import Policies
from caesura.scenario.reports import report
from caesura.scenario.rtl import RtlRunner
from caesura.scenario.schema import Scenario, load_scenario
from caesura.views import Progress
from sim import BACKENDS, write_trace

SYNTHETIC = "synthetic"  #: the backend without models
RUNNERS = (SYNTHETIC, *BACKENDS)  #: backends that can run scenarios


def runner_of(backend: str, progress: Progress, *, check: bool = False) -> ScenarioRunner:
    """Return the runner of a backend. ``check``: outputs of all requests shall be compared with those of their models
    alone. Raises ``UsageError`` for an unknown backend, and for one that has no outputs to check."""
    if backend not in RUNNERS:
        raise UsageError(f"backend {backend!r} cannot run scenarios; use {', '.join(RUNNERS)}")
    if backend != SYNTHETIC:
        return RtlRunner(backend, progress=progress, check=check)
    if check:
        raise UsageError("outputs are to be checked, which the synthetic machine has not: choose another backend")
    return synthetic.SyntheticRunner()


@dataclass(frozen=True)
class Served:
    """Says how a scenario was served: what happened, and the metrics of that. ``result``: as plain data, see
    :func:`caesura.scenario.reports.report`."""

    scenario: Scenario
    outcome: Outcome
    result: dict[str, Any]

    @cached_property
    def models(self) -> list[ModelReport]:
        """Return how each model fared, in the order of the scenario."""
        return model_reports(self.scenario, self.outcome)

    @property
    def mismatches(self) -> list[str]:
        """Return a line for each request whose outputs are others than those of its model alone."""
        return self.outcome.mismatches


def serve(
    scenario: Scenario | Path | str,
    policy: str = "idle_time",
    backend: str | None = None,
    *,
    folder: Path | str | None = None,
    check: bool = False,
    placement: str = "queue_time",
    options: Mapping[str, Any] | None = None,
    trace: Path | None = None,
    page: Path | None = None,
    keep_outputs: bool = True,
    progress: Progress | None = None,
) -> Served:
    """Serve the requests of a scenario, or of the one in a file, and return how that went.

    Parameters
    ----------
    policy, placement : what decides whose layer is next, and on which engine it runs
    backend : by default what the models need, see :func:`backend_of`
    folder : for relative paths in the scenario; by default that of its file, or the current one
    check : compare outputs of every request with those of its model alone, also where its inputs come from a file
    options : of the policy
    trace : where to write a timeline for Perfetto
    page : where to write a page with timeline and plots
    keep_outputs : write outputs to the folders that the scenario names
    progress : tells what goes on

    Raises :class:`ScenarioError` for a scenario that cannot be used, ``UsageError`` for an unknown policy or backend,
    and what a compiler, device or request raises that fails.
    """
    if not isinstance(scenario, Scenario):
        folder = Path(scenario).parent if folder is None else folder
        scenario = load_scenario(scenario)
    if not keep_outputs:
        scenario = scenario.without_outputs()
    where, backend, progress = Path(folder or ""), backend or backend_of(scenario), progress or Progress()
    runner, policies = runner_of(backend, progress, check=check), Policies.named(policy, placement, options)
    progress.task(f"serving {scenario.name} under {policy}")
    outcome = runner.run(scenario, policies, where)
    if trace is not None:
        write_trace(trace, spans(outcome, scenario.time_unit))
    alone = times_alone(runner, scenario, where)
    result = report(scenario, policy, backend, outcome, alone.streams, alone.lengths)
    if page is not None:
        progress.task(f"writing {page}")
        from caesura.views import write_scenario_page  # loads the plotting library

        write_scenario_page(page, result, outcome)
    return Served(scenario, outcome, result)


def run_scenario(
    path: Path | str,
    policy: str = "idle_time",
    backend: str | None = None,
    *,
    params: Path | None = None,
    changes: Sequence[str] = (),
    seen: Callable[[Scenario, Outcome], None] | None = None,
    placement: str = "queue_time",
    options: Mapping[str, Any] | None = None,
    check: bool = False,
    trace: Path | None = None,
    page: Path | None = None,
    keep_outputs: bool = True,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run a scenario file and report its metrics as plain data; see ``caesura.scenario.reports`` for the members.

    ``params``: a file of parameters of the hardware, instead of those of the scenario; ``changes`` to either, such as
    ``engines=4``. ``seen`` is called with all that happened. ``how``, and all else, is as for :func:`serve`.
    """
    scenario = load_scenario(path)
    if params is not None or changes:
        if (backend or backend_of(scenario)) == SYNTHETIC:
            raise UsageError(
                "--params and --set change hardware, which the synthetic machine has not: choose a --backend"
            )
        scenario = on_machine(scenario, None, params, changes)
    served = serve(
        scenario, policy, backend, folder=Path(path).parent, placement=placement, options=options, check=check,
        trace=trace, page=page, keep_outputs=keep_outputs, progress=progress,
    )  # fmt: skip
    if seen is not None:
        seen(served.scenario, served.outcome)
    return served.result


def backend_of(scenario: Scenario) -> str:
    """Return ``synthetic`` if all models have durations, otherwise the fast model of the hardware, which needs no
    build."""
    return SYNTHETIC if all(scenario.models[name].layers for name in scenario.used_models) else "model"
