"""Runs ``caesura sweep`` from command-line arguments to output."""

from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from caesura.json_form import json_text
from caesura.sweep.run import run_sweep
from caesura.sweep.spec import Point, load_sweep
from caesura.sweep.store import Store
from caesura.sweep.table import label_names, sweep_table, to_terminal
from caesura.terminal import line, say, tell, write
from compiler import cpus
from sim import visible


def sweep_command(
    file: Path, output: Path | None, scheduler: str | None, jobs: int | None, as_json: bool, as_csv: bool
) -> int:
    """Run the sweep in ``file`` and write its table and picture to the folder ``output``. Return the number of points
    that ended with an error."""
    sweep, points = load_sweep(file)
    folder, title = output or Path("out") / file.stem, sweep.name or file.stem
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(visible(title), total=len(points))

        def told(done: int, whole: int, point: Point | None) -> None:
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
    return sum(bool(one["error"]) for one in found)
