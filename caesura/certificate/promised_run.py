"""Finds the certificate that a scenario is to run under, and refuses what contradicts it."""

from pathlib import Path

from caesura.api import UsageError
from caesura.certificate.certificate import Certificate, admit
from caesura.certificate.certificate_report import told_refusals
from caesura.scenario.file_table import ScenarioError
from caesura.scenario.schema import Scenario
from caesura.views.progress import Progress
from sw.runtime import Mechanism

POLICY = "fcfs"  #: under which scenarios run that have a certificate


class PromiseRefused(ScenarioError):
    """Says that a scenario does not run, as streams may miss the deadlines that they are promised. ``certificate`` has
    all of it."""

    def __init__(self, certificate: Certificate) -> None:
        self.certificate = certificate
        super().__init__("\n".join(told_refusals(certificate)))


def certificate_to_run(
    scenario: Scenario, policy: str, backend: str, *, folder: Path, jobs: int | None = None, cache: bool = True,
    progress: Progress | None = None,
) -> Certificate:  # fmt: skip
    """Return the certificate that ``scenario`` is to run under; see :func:`caesura.admit`.

    Raises ``UsageError`` for a policy or a backend that is not covered, :class:`ScenarioError` for what the scenario
    has that is not, and :class:`PromiseRefused` if a stream is refused.
    """
    if policy != POLICY:
        raise UsageError(
            f"policy {policy!r} is not covered by certificates, under which layers run first come, first served: leave "
            f"it out, or choose {POLICY}"
        )
    if backend == "synthetic":
        raise UsageError("certificates are for compiled models, which the synthetic machine has not: choose a backend")
    _check(scenario)
    found = admit(scenario, folder=folder, jobs=jobs, cache=cache, progress=progress)
    if not found.accepted:
        raise PromiseRefused(found)
    return found


def _check(scenario: Scenario) -> None:
    """Raise :class:`ScenarioError` for what a run does not do that has a certificate."""
    machine = scenario.machine
    if machine.layers_per_decision != 1:
        raise ScenarioError(
            f"machine.layers_per_decision = {machine.layers_per_decision}: certificates count with decisions on one "
            "layer at a time; remove it"
        )
    mechanisms = [] if machine.preemption is None else machine.preemption.mechanisms
    if Mechanism.KILL in mechanisms or (mechanisms and Mechanism.DUMP not in mechanisms):
        raise ScenarioError(
            f"machine.preemption.mechanisms = {[str(one.value) for one in mechanisms]}: certificates count with a dump "
            "of who is in the way, and with nothing else; remove it"
        )
    for stream in scenario.streams:
        if stream.late == "drop":
            raise ScenarioError(
                f"stream {stream.name!r}: late = 'drop' aborts requests, at the cost of others on their engines, which "
                "no bound has; remove it"
            )
