"""Defines ``caesura sweep``, which runs many machines, models and policies."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, Group
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from caesura.commands.options import Csv, Json, check_form
from caesura.sweep.front import pareto_front
from caesura.sweep.spec import Point, load_sweep
from caesura.views import Column, ColumnTable, json_text, line, percent, say, shown, tell, write
from compiler import cpus
from sim import visible

_PERCENT = {"utilisation", "sla_violation_rate"}
#: On a terminal: few columns, so that they have room.
_SHOWN = {"cycles", "utilisation", "antt", "stp", "fairness", "sla_violation_rate", "preemptions", "area", "front"}
_NAMES = {"model", "scenario", "policy", "placement"}


def sweep(
    file: Annotated[Path, typer.Argument(help="what varies and what is run (.toml); docs/sweeps.md describes it")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="folder (default: out/NAME)")] = None,
    scheduler: Annotated[str | None, typer.Option(help="a Dask scheduler, such as tcp://head:8786")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="processes (default: one for each CPU)")] = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Run many machines, models and policies; what was run before is not run again. Exit code 1 if points failed."""
    from caesura.sweep.run import Store, run_sweep  # loaded where it is used

    check_form(as_json, as_csv)
    chosen, points = load_sweep(file)
    folder, title = output or Path("out") / file.stem, chosen.name or file.stem
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
    if any(one["error"] for one in found):
        raise typer.Exit(1)


def sweep_table(title: str, points: Sequence[Point], figures: Sequence[Mapping[str, Any]]) -> ColumnTable:
    """Return a table with a row for each point: labels, figures, whether it is on the Pareto front, and ``error``,
    which is empty where all went well."""
    labels = label_names(points)
    columns = list(dict.fromkeys(name for one in figures for name in one if name != "error"))
    rows = [
        {
            **{name: point.labels.get(name) for name in labels},
            **{name: one.get(name) for name in columns},
            **({"front": best} if columns else {}),
            "error": one.get("error", ""),
        }
        for point, one, best in zip(points, figures, _front(points, figures), strict=True)
    ]
    return ColumnTable(
        title,
        [_column(name) for name in dict.fromkeys((*labels, *columns, *(["front"] if columns else []), "error"))],
        rows,
    )


def _front(points: Sequence[Point], figures: Sequence[Mapping[str, Any]]) -> list[bool]:
    return pareto_front([{**one, **point.labels} for point, one in zip(points, figures, strict=True)])


def label_names(points: Sequence[Point]) -> list[str]:
    """Return the keys of the labels, which name what varies."""
    return list(dict.fromkeys(name for point in points for name in point.labels))


def to_terminal(table: ColumnTable, points: Sequence[Point]) -> Group:
    """Return what a terminal shows: the table without columns that are empty, and below it what went wrong."""
    known = {*label_names(points), *_SHOWN}
    names = [
        column.key
        for column in table.columns
        if column.key in known and any(row[column.key] not in (None, "") for row in table.rows)
    ]
    wrong = [
        line(f"{_label(point)}: {row['error']}") for point, row in zip(points, table.rows, strict=True) if row["error"]
    ]
    return Group(table.only(*names).rich(), *wrong)


def _column(name: str) -> Column:
    title = visible(name).replace("_", "\n")
    if name == "front":
        return Column(name, title, text=lambda best: "*" if best else "")
    return Column(name, title, number=name not in _NAMES, cut=True, text=percent if name in _PERCENT else shown)


def _label(point: Point) -> str:
    return ", ".join(f"{name}={value}" for name, value in point.labels.items())
