"""Finds what runs a scenario: the synthetic machine, or a device."""

from caesura.api import UsageError
from caesura.scenario.alone import ScenarioRunner
from caesura.scenario.rtl import RtlRunner
from caesura.scenario.schema import Scenario
from caesura.scenario.synthetic import SyntheticRunner
from caesura.views import Progress
from sim import BACKENDS
from sw.admission import Admission

SYNTHETIC = "synthetic"  #: the backend without models
RUNNERS = (SYNTHETIC, *BACKENDS)  #: backends that can run scenarios


def runner_of(
    backend: str, progress: Progress, *, check: bool = False, jobs: int | None = None, cache: bool = True,
    certificate: Admission | None = None,
) -> ScenarioRunner:  # fmt: skip
    """Return the runner of a backend; ``check``, ``jobs``, ``cache`` and ``certificate`` are as for :class:`RtlRunner`.
    Raises ``UsageError`` for an unknown backend, and for one that has no outputs to check."""
    if backend not in RUNNERS:
        raise UsageError(f"backend {backend!r} cannot run scenarios; use {', '.join(RUNNERS)}")
    if backend != SYNTHETIC:
        return RtlRunner(backend, progress=progress, check=check, jobs=jobs, cache=cache, certificate=certificate)
    if check:
        raise UsageError("outputs are to be checked, which the synthetic machine has not: choose another backend")
    return SyntheticRunner()


def backend_of(scenario: Scenario) -> str:
    """Return ``synthetic`` if all models have durations, otherwise the fast model of the hardware, which needs no
    build."""
    return SYNTHETIC if all(scenario.models[name].layers for name in scenario.used_models) else "model"


def refuse_synthetic(backend: str) -> None:
    """Raise ``UsageError`` for a backend that has no hardware to change."""
    if backend == SYNTHETIC:
        raise UsageError("--params and --set change hardware, which the synthetic machine has not: choose a --backend")
