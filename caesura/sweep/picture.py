"""Draws a sweep: one self-contained page with a plot of any figure over any other."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bokeh.layouts import row
from bokeh.models import ColumnDataSource, CustomJS, HoverTool, NumeralTickFormatter
from bokeh.models.annotations import Title
from bokeh.models.widgets import DataTable, Select, TableColumn
from bokeh.palettes import Category10
from bokeh.plotting import figure
from bokeh.transform import factor_cmap

from caesura.views import escaped, label, write_page
from sim import visible

_FIRST = (("onchip_bytes", "cycles"), ("antt", "stp"))  #: what is drawn until the reader chooses, if it is there


def write_picture(path: Path, title: str, found: Sequence[dict[str, Any]], labels: Sequence[str]) -> None:
    """Write the page for the rows ``found`` of a sweep, of which ``labels`` are what varied. Rows with errors are in
    its table alone."""
    shown = [one for one in found if not one["error"]]
    numbers = [name for name in (shown[0] if shown else {}) if all(isinstance(one[name], int | float) for one in shown)]
    parts: list[Any] = []
    if numbers:
        parts = _plot(title, shown, numbers, labels)
    columns = _columns(found[0] if found else ())
    whole = ColumnDataSource({column: [_text(one[name]) for one in found] for name, column in columns.items()})
    # Bokeh takes titles of columns for HTML, but what is in cells for text.
    drawn = [TableColumn(field=column, title=escaped(_spoken(name))) for name, column in columns.items()]
    parts.append(DataTable(source=whole, columns=drawn, sizing_mode="stretch_width", height=400, selectable=True))
    write_page(path, title, parts)


def _plot(title: str, shown: Sequence[dict[str, Any]], numbers: list[str], labels: Sequence[str]) -> list[Any]:
    across, up = next((pair for pair in _FIRST if set(pair) <= set(numbers)), (numbers[0], numbers[-1]))
    group = next((name for name in ("model", "policy", *labels) if name in labels), "error")
    columns = _columns(shown[0])
    data = {column: [_shown(one[name]) for one in shown] for name, column in columns.items()}
    data |= {"x": data[columns[across]], "y": data[columns[up]], "group": [_text(one[group]) for one in shown]}
    source = ColumnDataSource(data)
    groups = list(dict.fromkeys(data["group"]))
    palette = [Category10[10][i % 10] for i in range(len(groups))]
    plot = figure(
        title=Title(text=label(title)), height=480, sizing_mode="stretch_width", x_axis_label=label(_spoken(across)),
        y_axis_label=label(_spoken(up)), tools="pan,wheel_zoom,box_zoom,reset,save",
    )  # fmt: skip
    plot.axis.formatter = NumeralTickFormatter(format="0,0.[000]")
    plot.scatter("x", "y", source=source, size=11, color=factor_cmap("group", palette, groups), legend_group="group")
    told = [(_spoken(name), f"@{column}") for name, column in columns.items() if name != "error"]
    plot.add_tools(HoverTool(tooltips=told))
    choices = []
    known = {"columns": [columns[name] for name in numbers], "labels": [label(_spoken(name)) for name in numbers]}
    for axis, name, drawn in (("x", across, plot.xaxis[0]), ("y", up, plot.yaxis[0])):
        options = [(columns[each], visible(each)) for each in numbers]
        choice = Select(title=f"{axis} axis", value=columns[name], options=list[Any](options))
        choice.js_on_change(
            "value",
            CustomJS(
                args={"source": source, "axis": drawn, "to": axis, **known},
                code="source.data[to] = source.data[this.value];"
                "axis.axis_label = labels[columns.indexOf(this.value)]; source.change.emit();",
            ),
        )
        choices.append(choice)
    return [row(*choices), plot]


def _columns(names: Iterable[str]) -> dict[str, str]:
    """Return the columns of a plot's data by what they are called: what is written in templates, where names could be
    read as something else."""
    return {name: f"c{number}" for number, name in enumerate(names)}


def _spoken(name: str) -> str:
    return visible(name.replace("_", " "))


def _shown(value: Any) -> Any:
    return visible(value) if isinstance(value, str) else value


def _text(value: Any) -> str:
    return "" if value is None else visible(str(value))
