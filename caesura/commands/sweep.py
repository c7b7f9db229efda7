"""Defines ``caesura sweep``, which runs many machines, models and policies."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from caesura.commands.options import Csv, Json, check_form
from caesura.views import json_text, line, say, tell, write
from compiler import cpus
from sim import visible

if TYPE_CHECKING:
    from caesura.sweep.spec import Point


def sweep(
    file: Annotated[Path, typer.Argument(help="what varies and what is run (.toml); docs/sweeps.md describes it")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="folder (default: out/NAME)")] = None,
    scheduler: Annotated[str | None, typer.Option(help="a Dask scheduler, such as tcp://head:8786")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="processes (default: one for each CPU)")] = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Run many machines, models and policies; what was run before is not run again. Exit code 1 if points failed."""
    from caesura.sweep.run import Store, run_sweep  # loaded where they are used
    from caesura.sweep.spec import load_sweep
    from caesura.sweep.table import label_names, sweep_table, to_terminal

    check_form(as_json, as_csv)
    chosen, points = load_sweep(file)
    folder, title = output or Path("out") / file.stem, chosen.name or file.stem
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(visible(title), total=len(points))

        def told(done: int, whole: int, point: "Point | None") -> None:
            progress.update(task, completed=done, total=whole)
            if not console.is_terminal:
                what = ": " + ", ".join(f"{name}={value}" for name, value in point.labels.items()) if point else ""
                console.print(line(f"{done} of {whole} points known{what}"), soft_wrap=True)

        figures = run_sweep(points, Store(folder), scheduler=scheduler, jobs=jobs or cpus(), told=told)
    table = sweep_table(title, points, figures)
    found = table.fields()
    (folder / "table.csv").write_text(table.csv())
    (folder / "table.json").write_text(json_text(found, indent=1))
    from caesura.sweep.picture import write_picture

    write_picture(folder / "picture.html", title, found, label_names(points))
    if as_json:
        write(json_text(found))
    elif as_csv:
        write(table.csv())
    else:
        tell(to_terminal(table, points))
        say(f"{folder}: table.csv, table.json, picture.html")
    if any(one["error"] for one in found):
        raise typer.Exit(1)
