"""Is the door to the package ``benchmarks``, which the public interface and the command line do without."""

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from rich.console import RenderableType

from caesura.api import UsageError
from hw.contract.params import SocParams


class BenchResult(Protocol):
    """Holds what a benchmark says; ``benchmarks.report`` makes it."""

    @property
    def ok(self) -> bool:
        """Return whether every row meets what it must."""

    def to_dict(self) -> dict[str, Any]:
        """Return the result as data for JSON."""

    def to_rows(self) -> list[dict[str, Any]]:
        """Return the result as rows for comma-separated values."""

    def to_tables(self) -> RenderableType:
        """Return the result as tables for a terminal."""


def benchmarks(module: str, wanted_by: str) -> ModuleType:
    """Return the module ``benchmarks.<module>``. Raises :class:`UsageError` where the package is not installed."""
    try:
        return importlib.import_module(f"benchmarks.{module}")
    except ModuleNotFoundError as error:
        if error.name not in ("benchmarks", f"benchmarks.{module}"):
            raise
        raise UsageError(
            f"{wanted_by} needs the package 'benchmarks', which is not installed: "
            "run it in a checkout of Caesura, or install Caesura from one (pip install -e .)"
        ) from None


def run_bench(
    name: str,
    preset: str | SocParams,
    backend: str,
    *,
    only: Sequence[str] = (),
    everything: bool = False,
    check_layers: bool = False,
) -> BenchResult:
    """Measure the figures of benchmark ``name``: see ``benchmarks.report.run_bench``. Raises :class:`UsageError`."""
    report = benchmarks("report", "caesura bench")
    return report.run_bench(name, preset, backend, only=only, everything=everything, check_layers=check_layers)


def run_trust(
    backend: str, *, seconds: float, seed: int, campaigns: Sequence[str], full: bool, progress_file: Path | None
) -> BenchResult:
    """Run campaigns that attack the device: see ``benchmarks.report.run_trust``. Raises :class:`UsageError`."""
    report = benchmarks("report", "caesura bench")
    return report.run_trust(
        backend, seconds=seconds, seed=seed, campaigns=campaigns, full=full, progress_file=progress_file
    )


def stale_figures() -> tuple[Sequence[Any], RenderableType]:
    """Return recorded figures that do not hold, and a table of them, as ``benchmarks.ledger.stale`` finds them."""
    stale = benchmarks("ledger.stale", "caesura bench stale")
    rows = stale.stale_rows()
    return rows, stale.to_table(rows)


def record_figures(
    name: str, only: Sequence[str], *, seconds: float, told: Callable[[str], None]
) -> tuple[bool, Sequence[str]]:
    """Record figures, and write the pages that show them: see ``benchmarks.ledger``. Return whether all meet what they
    must, and those left for later."""
    result = benchmarks("ledger.record", "caesura bench --record").record(name, only, seconds=seconds, told=told)
    benchmarks("ledger.pages", "caesura bench --record").main([])
    return result.ok, result.left


def run_mutants(*, only: Sequence[str], progress_file: Path | None) -> BenchResult:
    """See which mutants of the product the campaigns find: ``benchmarks.report.run_mutants``. Raises
    :class:`UsageError`."""
    report = benchmarks("report", "caesura bench")
    return report.run_mutants(only=only, progress_file=progress_file)
