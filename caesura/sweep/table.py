"""Makes the one table of a sweep, of which a terminal shows some columns."""

from collections.abc import Sequence

from rich.console import Group

from caesura.sweep.run import Figures
from caesura.sweep.spec import Point
from caesura.views import Column, ColumnTable, line, percent, shown
from sim import visible

_PERCENT = {"utilisation", "sla_violation_rate"}
#: On a terminal: few columns, so that they have room.
_SHOWN = {"cycles", "utilisation", "antt", "stp", "fairness", "sla_violation_rate", "preemptions"}
_NAMES = {"model", "scenario", "policy", "placement"}


def sweep_table(title: str, points: Sequence[Point], figures: Sequence[Figures]) -> ColumnTable:
    """Return a table with a row for each point: labels, figures, and ``error``, which is empty where all went well."""
    labels = label_names(points)
    columns = list(dict.fromkeys(name for one in figures for name in one if name != "error"))
    rows = [
        {
            **{name: point.labels.get(name) for name in labels},
            **{name: one.get(name) for name in columns},
            "error": one.get("error", ""),
        }
        for point, one in zip(points, figures, strict=True)
    ]
    return ColumnTable(title, [_column(name) for name in dict.fromkeys((*labels, *columns, "error"))], rows)


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
    return Column(name, title, number=name not in _NAMES, cut=True, text=percent if name in _PERCENT else shown)


def _label(point: Point) -> str:
    return ", ".join(f"{name}={value}" for name, value in point.labels.items())
