"""Runs a scenario under a policy on a backend."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from caesura.certificate.promise_report import promise_fields, promise_reports
from caesura.certificate.promised_run import POLICY, certificate_to_run
from caesura.scenario.alone import times_alone
from caesura.scenario.backends import backend_of, refuse_synthetic, runner_of
from caesura.scenario.machine_choice import on_devices, on_machine
from caesura.scenario.outcome import Outcome, write_outcome
from caesura.scenario.policies import Policies, PolicyChoice, policy_of_scenario
from caesura.scenario.reports import report
from caesura.scenario.schema import Scenario, load_scenario
from caesura.scenario.served import Served
from caesura.views import Progress
from sw.runtime.policies import PlacementChoice


def serve(
    scenario: Scenario | Path | str,
    policy: PolicyChoice | None = None,
    backend: str | None = None,
    *,
    certified: bool = False,
    folder: Path | str | None = None,
    check: bool = False,
    placement: PlacementChoice = "queue_time",
    options: Mapping[str, Any] | None = None,
    trace: Path | None = None,
    page: Path | None = None,
    keep_outputs: bool = True,
    jobs: int | None = None,
    cache: bool = True,
    progress: Progress | None = None,
) -> Served:
    """Serve the requests of a scenario, or of the one in a file, and return how that went.

    Parameters
    ----------
    policy, placement : what decides whose layer is next (by default what the scenario says, or ``idle_time``), and on
        which engine it runs: names, ``module:Class``, ``file.py:Class``, classes or objects of ``caesura.policies``
    backend : by default what the models need, see :func:`backend_of`
    certified : run under the certificate of the scenario, which the run time enforces: its promises are reported, and
        nothing is run if one is refused; the policy is ``fcfs``
    folder : for relative paths in the scenario; by default that of its file, or the current one
    check : compare outputs of every request with those of its model alone, also where its inputs come from a file
    options : of the policy
    trace : where to write a timeline for Perfetto
    page : where to write a page with timeline and plots
    keep_outputs : write outputs to the folders that the scenario names
    jobs, cache : as for ``caesura.compile``
    progress : tells what goes on

    Raises :class:`ScenarioError` for a scenario that cannot be used, ``UsageError`` for an unknown policy or backend,
    ``PromiseRefused`` for a promise that cannot be given, and what a compiler, device or request raises that fails.
    """
    if not isinstance(scenario, Scenario):
        folder = Path(scenario).parent if folder is None else folder
        scenario = load_scenario(scenario)
    if not keep_outputs:
        scenario = scenario.without_outputs()
    where, backend, progress = Path(folder or ""), backend or backend_of(scenario), progress or Progress()
    if policy is None:
        policy = POLICY if certified else policy_of_scenario(scenario.policy, where) or "idle_time"
    policies = Policies.named(policy, placement, options)
    certificate = None
    if certified:
        certificate = certificate_to_run(
            scenario, policies.name, backend, folder=where, jobs=jobs, cache=cache, progress=progress
        )
    runner = runner_of(backend, progress, check=check, jobs=jobs, cache=cache, certificate=certificate)
    progress.task(f"serving {scenario.name} under {policies.name}")
    outcome = runner.run(scenario, policies, where)
    if trace is not None:
        write_outcome(trace, outcome, scenario.time_unit)
    alone = times_alone(runner, scenario, where)
    result = report(scenario, policies.name, backend, outcome, alone.streams, alone.lengths)
    promises = [] if certificate is None else promise_reports(certificate, outcome, scenario.cycles_per_unit)
    if certificate is not None:
        result["promises"] = promise_fields(promises)
    if page is not None:
        progress.task(f"writing {page}")
        from caesura.views import write_scenario_page  # loads the plotting library

        write_scenario_page(page, result, outcome)
    return Served(scenario, outcome, result, promises)


def run_scenario(
    path: Path | str,
    policy: PolicyChoice | None = None,
    backend: str | None = None,
    *,
    certified: bool = False,
    params: Path | None = None,
    changes: Sequence[str] = (),
    devices: int | None = None,
    seen: Callable[[Scenario, Outcome], None] | None = None,
    placement: PlacementChoice = "queue_time",
    options: Mapping[str, Any] | None = None,
    check: bool = False,
    trace: Path | None = None,
    page: Path | None = None,
    keep_outputs: bool = True,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run a scenario file and report its metrics as plain data; see ``caesura.scenario.reports`` for the members.

    ``params``: a file of parameters of the hardware, instead of those of the scenario; ``changes`` to either, such as
    ``engines=4``; ``devices``: how many, instead of those of the scenario. ``seen`` is called with all that happened.
    All else is as for :func:`serve`.
    """
    scenario = load_scenario(path)
    if params is not None or changes:
        refuse_synthetic(backend or backend_of(scenario))
        scenario = on_machine(scenario, None, params, changes)
    if devices is not None:
        scenario = on_devices(scenario, devices)
    served = serve(
        scenario, policy, backend, certified=certified, folder=Path(path).parent, placement=placement, options=options,
        check=check, trace=trace, page=page, keep_outputs=keep_outputs, progress=progress,
    )  # fmt: skip
    if seen is not None:
        seen(served.scenario, served.outcome)
    return served.result
