"""Makes the one table of a benchmark's figures, for terminals, pages and CSV."""

from collections.abc import Mapping, Sequence
from typing import Any

from caesura.views.tables import Column, ColumnTable

_COLOURS = {"ok": "green", "NOT OK": "bold red", "skipped": "yellow"}
_COLUMNS = (
    Column("name", "figure"),
    Column("value", number=True, text=lambda value: "" if value is None else f"{value:,.2f}"),
    Column("unit"),
    Column("must", number=True, text=lambda value: f"{value:,g}"),
    Column("aim", number=True, text=lambda value: f"{value:,g}"),
    Column("verdict", "", style=lambda verdict: _COLOURS[verdict]),
    Column("ok"),
    Column("skipped"),
    Column("explanation"),
)


def bench_table(figures: Sequence[Mapping[str, Any]]) -> ColumnTable:
    """Return a table with a row for each figure, which is given as JSON has it, with ``skipped`` and ``explanation``
    where they are known."""
    return ColumnTable(
        "", _COLUMNS, [{"skipped": False, "explanation": "", **one, "verdict": _verdict(one)} for one in figures]
    )


def _verdict(figure: Mapping[str, Any]) -> str:
    if figure.get("skipped"):
        return "skipped"
    return "ok" if figure["ok"] else "NOT OK"
