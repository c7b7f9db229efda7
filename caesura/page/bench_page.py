"""Makes the page of ``caesura bench --report``: figures against what they must reach."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bokeh.models import ColumnDataSource, FactorRange, HoverTool
from bokeh.models.ui import UIElement
from bokeh.plotting import figure

from caesura.bench_rows import bench_table
from caesura.page.document import heading, label, paragraph, table, write_page
from sim import visible

_LINE = 22  #: height of a figure, pixels


def write_bench_page(path: Path, result: Mapping[str, Any]) -> None:
    """Write the page of a benchmark's ``result``, as ``caesura bench --json`` prints it."""
    title = f"{result['bench']} on {result['preset']} ({result['backend']})"
    figures = bench_table(result["rows"]).without("ok", "skipped", "explanation")
    parts: list[UIElement] = [heading(title, 1), paragraph(f"Caesura {result['version']}.")]
    for unit in dict.fromkeys(row["unit"] for row in result["rows"]):
        parts += [heading(f"Figures in {unit}"), _plot([row for row in result["rows"] if row["unit"] == unit], unit)]
    write_page(path, title, [*parts, heading("All figures"), table(figures)])


def _plot(rows: Sequence[Mapping[str, Any]], unit: str) -> figure:
    """Return bars of values, in green what is met; marks tell where each must be, and would be best."""
    known = [row for row in rows if row["value"] is not None]
    names = list(dict.fromkeys(visible(row["name"]) for row in known))
    source = ColumnDataSource(
        {
            "name": [visible(row["name"]) for row in known],
            "value": [row["value"] for row in known],
            "must": [row["must"] for row in known],
            "aim": [row["aim"] for row in known],
            "colour": ["#41ab5d" if row["ok"] else "#e34a33" for row in known],
        }
    )
    plot = figure(
        y_range=FactorRange(factors=names[::-1]), height=90 + _LINE * max(1, len(names)), sizing_mode="stretch_width",
        x_axis_label=label(unit), tools="xpan,xwheel_zoom,reset,save",
    )  # fmt: skip
    plot.hbar(y="name", right="value", height=0.7, source=source, color="colour")
    for mark, colour in (("must", "black"), ("aim", "#888888")):
        plot.scatter(
            mark, "name", source=source, marker="dash", angle=1.5708, size=16, color=colour, legend_label=mark
        )  # fmt: skip
    plot.add_tools(HoverTool(tooltips=[(key, f"@{key}") for key in ("name", "value", "must", "aim")]))
    return plot
