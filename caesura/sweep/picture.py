"""Draws a sweep: one self-contained page with a plot of any figure over any other. Points are coloured by the label
that tells most of the figure drawn first, shaped by the next, and ringed where they are on the Pareto front."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from bokeh.layouts import row
from bokeh.models import CDSView, ColumnDataSource, CustomJS, HoverTool, IndexFilter, NoOverlap, NumeralTickFormatter
from bokeh.models.annotations import Title
from bokeh.models.widgets import DataTable, Select, TableColumn
from bokeh.palettes import Category10, Viridis256, linear_palette
from bokeh.plotting import figure

from caesura.views import escaped, label, write_page
from sim import visible

_FIRST = (("area", "cycles"), ("antt", "stp"))  #: what is drawn until the reader chooses, if it is there

_SHAPES = ("circle", "square", "triangle", "diamond", "inverted_triangle", "hex", "star", "plus")
_NAMES = ("model", "scenario", "policy", "placement")  #: labels without an order
_MOST_SHADES = 12
_CHARACTER, _PADDING = 8, 16  #: pixels of a table's text


def write_picture(path: Path, title: str, found: Sequence[dict[str, Any]], labels: Sequence[str]) -> None:
    """Write the page for the rows ``found`` of a sweep, of which ``labels`` are what varied. Rows with errors are in
    its table alone."""
    shown = [one for one in found if not one["error"]]
    numbers = [name for name in (shown[0] if shown else {}) if all(_is_number(one[name]) for one in shown)]
    parts: list[Any] = []
    if numbers:
        parts = _plot(title, shown, numbers, labels)
    columns = _columns(found[0] if found else ())
    whole = ColumnDataSource({column: [_text(one[name]) for one in found] for name, column in columns.items()})
    # Bokeh takes titles of columns for HTML, but what is in cells for text.
    drawn = [
        TableColumn(field=column, title=escaped(_spoken(name)), width=_width(_spoken(name), whole.data[column]))
        for name, column in columns.items()
    ]
    table = DataTable(source=whole, columns=drawn, sizing_mode="stretch_width", height=400, selectable=True)
    table.autosize_mode = "none"  # columns that do not fit are scrolled to, not cut off
    parts.append(table)
    write_page(path, title, parts)


def _plot(title: str, shown: Sequence[dict[str, Any]], numbers: list[str], labels: Sequence[str]) -> list[Any]:
    across, up = next((pair for pair in _FIRST if set(pair) <= set(numbers)), (numbers[0], numbers[-1]))
    columns = _columns(shown[0])
    data = {column: [_shown(one[name]) for one in shown] for name, column in columns.items()}
    colour, shape = [*by_effect(shown, labels, up), "", ""][:2]
    groups = [_named(one, colour, shape) for one in shown]
    data |= {
        "x": data[columns[across]], "y": data[columns[up]], "group": groups, "colour": _colours(shown, colour),
        "shape": [_SHAPES[_place(shown, shape, one) % len(_SHAPES)] for one in shown],
    }  # fmt: skip
    source = ColumnDataSource(data)
    plot = figure(
        title=Title(text=label(title)), height=600, sizing_mode="stretch_width", x_axis_label=label(_spoken(across)),
        y_axis_label=label(_spoken(up)), tools="pan,wheel_zoom,box_zoom,reset,save",
    )  # fmt: skip
    plot.axis.formatter = NumeralTickFormatter(format="0,0.[000]")
    plot.xaxis.major_label_policy = NoOverlap()
    best = [place for place, one in enumerate(shown) if one["front"]]
    points = plot.scatter("x", "y", source=source, size=10, color="colour", marker="shape", legend_group="group")
    front = CDSView(filter=IndexFilter(indices=best))
    plot.scatter(
        "x", "y", source=source, view=front, size=18, marker="circle", fill_color=None,
        line_color="#c0392b", line_width=2, legend_label="Pareto front",
    )  # fmt: skip
    plot.legend[0].ncols = 2  # as many as a telephone has room for
    plot.add_layout(plot.legend[0], "below")
    told = [(_spoken(name), f"@{column}") for name, column in columns.items() if name != "error"]
    plot.add_tools(HoverTool(tooltips=told, renderers=[points]))
    choices = []
    known = {"columns": [columns[name] for name in numbers], "labels": [label(_spoken(name)) for name in numbers]}
    for axis, name, drawn in (("x", across, plot.xaxis[0]), ("y", up, plot.yaxis[0])):
        options = [(columns[each], visible(each)) for each in numbers]
        choice = Select(
            title=f"{axis} axis", value=columns[name], options=list[Any](options), sizing_mode="stretch_width"
        )
        choice.js_on_change(
            "value",
            CustomJS(
                args={"source": source, "axis": drawn, "to": axis, **known},
                code="source.data[to] = source.data[this.value];"
                "axis.axis_label = labels[columns.indexOf(this.value)]; source.change.emit();",
            ),
        )
        choices.append(choice)
    return [row(*choices, sizing_mode="stretch_width"), plot]


def by_effect(shown: Sequence[dict[str, Any]], labels: Sequence[str], figure: str) -> list[str]:
    """Return the ``labels`` that differ, those first that tell most of a ``figure``: the share of its variance that is
    between the values of the label, not within them."""
    values = np.array([float(one[figure]) for one in shown])
    varied = [name for name in labels if len({_text(one[name]) for one in shown}) > 1]

    def between(name: str) -> float:
        keys = np.array([_text(one[name]) for one in shown])
        groups = [values[keys == key] for key in dict.fromkeys(keys)]
        return sum(len(group) * float(group.mean() - values.mean()) ** 2 for group in groups)

    return sorted(varied, key=between, reverse=True)


def _place(shown: Sequence[dict[str, Any]], name: str, one: dict[str, Any]) -> int:
    """Return which of the values of a label a row has; 0 without a label."""
    return list(dict.fromkeys(_text(row[name]) for row in shown)).index(_text(one[name])) if name else 0


def _colours(shown: Sequence[dict[str, Any]], name: str) -> list[str]:
    """Return a colour for each row: values in order from dark to light, names in colours that are easily told apart."""
    places = [_place(shown, name, one) for one in shown]
    count = max(places) + 1
    if name in _NAMES or count > _MOST_SHADES:
        return [Category10[10][place % 10] for place in places]
    shades = linear_palette(Viridis256[:-40], count) if count > 1 else Viridis256[:1]
    return [shades[place] for place in places]


def _named(one: dict[str, Any], *names: str) -> str:
    return ", ".join(f"{_spoken(name)} {_text(one[name])}" for name in names if name) or "all"


def _columns(names: Iterable[str]) -> dict[str, str]:
    """Return the columns of a plot's data by what they are called: what is written in templates, where names could be
    read as something else."""
    return {name: f"c{number}" for number, name in enumerate(names)}


def _width(title: str, cells: Iterable[Any]) -> int:
    """Return what a column's longest text takes, in pixels."""
    return _PADDING + _CHARACTER * max(len(title), *(len(cell) for cell in cells))


def _spoken(name: str) -> str:
    return visible(name.replace("_", " "))


def _shown(value: Any) -> Any:
    return visible(value) if isinstance(value, str) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: Any) -> str:
    return "" if value is None else visible(str(value))
