"""The picture of a sweep: one self-contained page with a plot of any figure over any other."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bokeh.layouts import row
from bokeh.models import ColumnDataSource, CustomJS, HoverTool, NumeralTickFormatter
from bokeh.models.widgets import DataTable, Select, TableColumn
from bokeh.palettes import Category10
from bokeh.plotting import figure
from bokeh.transform import factor_cmap

from caesura.page.document import write_page

_FIRST = (("onchip_bytes", "cycles"), ("antt", "stp"))  #: what is drawn until the reader chooses, if it is there


def write_picture(path: Path, title: str, found: Sequence[dict[str, Any]], labels: Sequence[str]) -> None:
    """Write the page for the rows ``found`` of a sweep, of which ``labels`` are what varied. Rows with errors are in
    its table alone."""
    shown = [one for one in found if not one["error"]]
    numbers = [name for name in (shown[0] if shown else {}) if all(isinstance(one[name], int | float) for one in shown)]
    parts: list[Any] = []
    if numbers:
        parts = _plot(title, shown, numbers, labels)
    whole = ColumnDataSource({name: [_text(one[name]) for one in found] for name in (found[0] if found else {})})
    columns = [TableColumn(field=name, title=name.replace("_", " ")) for name in whole.data]
    parts.append(DataTable(source=whole, columns=columns, sizing_mode="stretch_width", height=400, selectable=True))
    write_page(path, title, parts)


def _plot(title: str, shown: Sequence[dict[str, Any]], numbers: list[str], labels: Sequence[str]) -> list[Any]:
    across, up = next((pair for pair in _FIRST if set(pair) <= set(numbers)), (numbers[0], numbers[-1]))
    group = next((name for name in ("model", "policy", *labels) if name in labels), "error")
    data: dict[str, list[Any]] = {name: [one[name] for one in shown] for name in shown[0]}
    data |= {"x": data[across], "y": data[up], "group": [str(value) for value in data[group]]}
    source = ColumnDataSource(data)
    groups = list(dict.fromkeys(data["group"]))
    palette = [Category10[10][i % 10] for i in range(len(groups))]
    plot = figure(
        title=title, height=480, sizing_mode="stretch_width", x_axis_label=across.replace("_", " "),
        y_axis_label=up.replace("_", " "), tools="pan,wheel_zoom,box_zoom,reset,save",
    )  # fmt: skip
    plot.axis.formatter = NumeralTickFormatter(format="0,0.[000]")
    plot.scatter("x", "y", source=source, size=11, color=factor_cmap("group", palette, groups), legend_group="group")
    plot.add_tools(
        HoverTool(tooltips=[(name.replace("_", " "), f"@{{{name}}}") for name in shown[0] if name != "error"])
    )
    choices = []
    for axis, name, drawn in (("x", across, plot.xaxis[0]), ("y", up, plot.yaxis[0])):
        choice = Select(title=f"{axis} axis", value=name, options=list[Any](numbers))
        choice.js_on_change(
            "value",
            CustomJS(
                args={"source": source, "axis": drawn, "to": axis},
                code="source.data[to] = source.data[this.value]; axis.axis_label = this.value.replaceAll('_', ' ');"
                "source.change.emit();",
            ),
        )
        choices.append(choice)
    return [row(*choices), plot]


def _text(value: Any) -> str:
    return "" if value is None else str(value)
