"""Makes the one table of a sweep, and shows it on a terminal."""

from collections.abc import Sequence
from typing import Any

from rich.console import Group
from rich.text import Text

from caesura.sweep.spec import Point
from caesura.sweep.store import Figures
from caesura.terminal import line, table
from sim.visible_text import visible

_PERCENT = {"utilisation", "sla_violation_rate"}
#: On a terminal: few columns, so that they have room.
_SHOWN = {"cycles", "utilisation", "antt", "stp", "fairness", "sla_violation_rate", "preemptions"}
_LARGE = 1000  #: from here on without a fraction
_NAMES = {"model", "scenario", "policy", "placement"}


def rows(points: Sequence[Point], figures: Sequence[Figures]) -> list[dict[str, Any]]:
    """Return a row for each point, all with the same columns: labels, figures, and ``error``, which is empty where all
    went well."""
    labels = list(dict.fromkeys(name for point in points for name in point.labels))
    columns = list(dict.fromkeys(name for one in figures for name in one if name != "error"))
    return [
        {
            **{name: point.labels.get(name) for name in labels},
            **{name: one.get(name) for name in columns},
            "error": one.get("error", ""),
        }
        for point, one in zip(points, figures, strict=True)
    ]


def to_table(title: str, points: Sequence[Point], found: Sequence[dict[str, Any]]) -> Group:
    """Return a table for a terminal without columns that are empty throughout, and below it what went wrong."""
    labels = {name for point in points for name in point.labels}
    names = [
        name for name in (found[0] if found else [])
        if name in labels | _SHOWN and any(row[name] not in (None, "") for row in found)
    ]  # fmt: skip
    shown = table(title, *(f">{name}" for name in names))
    for column, name in zip(shown.columns, names, strict=True):
        column.header = line(visible(name).replace("_", "\n"), lines=True)
        if name in _NAMES:  # cut where there is little room; numbers are not
            column.justify, column.no_wrap, column.max_width = "left", False, None
    for row in found:
        shown.add_row(*(_shown(name, row[name]) for name in names))
    wrong = [line(f"{_label(point)}: {row['error']}") for point, row in zip(points, found, strict=True) if row["error"]]
    return Group(shown, *wrong)


def _label(point: Point) -> str:
    return ", ".join(f"{name}={value}" for name, value in point.labels.items())


def _shown(name: str, value: Any) -> Text:
    return line(_cell(name, value), no_wrap=True, overflow="ellipsis")


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name in _PERCENT:
        return f"{value:.1%}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.3f}" if value < _LARGE else f"{value:,.0f}"
    return str(value)
