"""Makes the one table of a benchmark's figures, for terminals, pages and CSV, and the page that shows it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
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


def write_bench_page(path: Path, result: Mapping[str, Any]) -> None:
    """Write the page of a benchmark's ``result``, as ``caesura bench --json`` prints it."""
    from caesura.views.charts import bench_figures  # loads the plotting library
    from caesura.views.page import heading, paragraph, table, write_page

    title = f"{result['bench']} on {result['preset']} ({result['backend']})"
    figures = bench_table(result["rows"]).without("ok", "skipped", "explanation")
    parts: list[Any] = [heading(title, 1), paragraph(f"Caesura {result['version']}.")]
    for unit in dict.fromkeys(row["unit"] for row in result["rows"]):
        parts += [
            heading(f"Figures in {unit}"),
            bench_figures([row for row in result["rows"] if row["unit"] == unit], unit),
        ]
    write_page(path, title, [*parts, heading("All figures"), table(figures)])
