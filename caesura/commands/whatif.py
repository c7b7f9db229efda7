"""Defines ``caesura whatif``, which tells what a change of the machine or of its sources makes of a run."""

from pathlib import Path
from typing import Annotated

import typer

from caesura.commands.diff import show_diff
from caesura.commands.options import Csv, Json, Page, Set, check_form
from caesura.views import Progress
from caesura.whatif import by_parameters, by_sources


def whatif(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(help="an ONNX model")],
    changes: Set = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against", help="compare the sources of this checkout with a commit (default, without --set: HEAD)"
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="show layers whose cycles are equal, too")] = False,
    page: Page = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Run a model before and after a change, of parameters or of the sources, and show what differs, layer by layer.

    Options of caesura run, such as --preset, --engines and --backend, pass through."""
    check_form(as_json, as_csv)
    sources = against is not None or not changes
    with Progress() as progress:
        progress.task(f"running {model.name} before and after the change")
        if sources:
            found = by_sources(model, context.args, changes or (), against or "HEAD")
        else:
            found = by_parameters(model, context.args, changes or ())
    show_diff(found, every=every, page=page, as_json=as_json, as_csv=as_csv)
