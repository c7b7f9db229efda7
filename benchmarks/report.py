"""What ``caesura bench`` does: measures the figures of a benchmark and reports one row for each."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Group

from benchmarks import BENCHES, USUAL_BACKENDS
from benchmarks.figures import Row, select
from benchmarks.lab import Lab
from caesura import UsageError, __version__, resolve
from caesura.views import ColumnTable, Progress, bench_table, line
from hw.contract.params import SocParams
from sim import BACKENDS, DEFAULT_BACKEND


@dataclass(frozen=True)
class BenchReport:
    """The rows of one benchmark."""

    bench: str
    preset: str
    backend: str
    rows: list[Row]

    @property
    def ok(self) -> bool:
        """Return whether every row meets what it must."""
        return all(row.ok for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: ``bench, preset, backend, version, rows``."""
        return {
            "bench": self.bench,
            "preset": self.preset,
            "backend": self.backend,
            "version": __version__,
            "rows": [row.to_dict() for row in self.rows],
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """For comma-separated values: all but the details."""
        return self._table().without("verdict").fields()

    def to_tables(self) -> Group:
        """For a terminal."""
        head = line(f"{self.bench} on {self.preset} ({self.backend})")
        return Group(head, self._table().without("ok", "skipped").rich())

    def _table(self) -> ColumnTable:
        return bench_table(
            [{**row.to_dict(), "skipped": row.skipped, "explanation": row.explanation} for row in self.rows]
        )


def run_bench(
    name: str,
    preset: str | SocParams,
    backend: str | None,
    *,
    only: Sequence[str] = (),
    everything: bool = False,
    check_layers: bool = False,
) -> BenchReport:
    """Measure the figures of benchmark ``name``; see ``benchmarks.figures.select`` for the selection. Without a
    ``backend`` it is measured on its usual one.

    Raises :class:`UsageError` for an unknown benchmark, backend or figure, ``ParamError`` for an unknown preset.
    """
    if name not in BENCHES:
        raise UsageError(f"no benchmark named {name!r}; known are {', '.join((*BENCHES, 'trust'))}")
    backend = backend or USUAL_BACKENDS.get(name, DEFAULT_BACKEND)
    if backend not in BACKENDS:
        raise UsageError(f"no backend named {backend!r}; known are {', '.join(BACKENDS)}")
    params = resolve(preset)
    chosen = select(importlib.import_module(f"benchmarks.{name}").figures(), only, everything)
    with Progress() as progress, Lab(params, backend, progress, check_layers=check_layers) as lab:
        rows = []
        for figure in chosen:
            progress.task(figure.name)
            rows.append(figure.row(lab))
        return BenchReport(name, params.name, backend, rows)


def run_trust(
    backend: str, *, seconds: float, seed: int, campaigns: Sequence[str], full: bool, progress_file: Path | None
) -> BenchReport:
    """Run the campaigns of ``benchmarks.trust`` that are named, or all; see ``run_campaigns`` there."""
    from benchmarks.trust.campaigns import run_campaigns
    from benchmarks.trust.soc import PARAMS

    if backend not in BACKENDS:
        raise UsageError(f"no backend named {backend!r}; known are {', '.join(BACKENDS)}")
    with Progress() as progress:
        rows = run_campaigns(
            backend, seconds=seconds, first=seed, only=campaigns, full=full, progress_file=progress_file,
            told=progress.task,
        )  # fmt: skip
    return BenchReport("trust", PARAMS.name, backend, rows)


def run_mutants(*, only: Sequence[str], progress_file: Path | None) -> BenchReport:
    """See which mutants of the product, by name or all, the campaigns of ``benchmarks.trust`` find: see ``run_mutants``
    there."""
    from benchmarks.trust.mutants.run import run_mutants as run
    from benchmarks.trust.soc import PARAMS

    with Progress() as progress:
        rows = run(only, progress_file=progress_file, told=progress.task)
    return BenchReport("trust", PARAMS.name, "mutants", rows)
