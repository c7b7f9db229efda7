"""Defines ``caesura sweep``, which runs many machines, models and policies."""

from pathlib import Path
from typing import Annotated

import typer

from caesura.options import Csv, Json, check_form


def sweep(
    file: Annotated[Path, typer.Argument(help="what varies and what is run (.toml); docs/sweeps.md describes it")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="folder (default: out/NAME)")] = None,
    scheduler: Annotated[str | None, typer.Option(help="a Dask scheduler, such as tcp://head:8786")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="processes (default: one for each CPU)")] = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Run many machines, models and policies; what was run before is not run again. Exit code 1 if points failed."""
    from caesura.sweep.command import sweep_command

    check_form(as_json, as_csv)
    if sweep_command(file, output, scheduler, jobs, as_json, as_csv):
        raise typer.Exit(1)
