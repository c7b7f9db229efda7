"""Plots of hardware: where its modules lie on a part, and what each takes of it."""

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bokeh.models import ColumnDataSource, HoverTool, Range1d
from bokeh.models.annotations import Legend, LegendItem
from bokeh.palettes import Category20, Set3
from bokeh.plotting import figure

from caesura.views.tables import percent
from sim import visible

_COLOURS, _PAPER = Category20[20], Set3[12]  #: of squares, and of what is written on
_LEGEND_COLUMNS = 3  #: as many as 400 pixels have room for
_HEIGHT = 460  #: pixels
_LETTER = 0.02  #: of the width that a letter takes on a small screen
_LINE = 0.045  #: of the height that a line of text takes
_HEADED = 3  #: lines that a box with parts must have room for, so that one of them is its name
_ALL = "all"  #: the row of the whole
_COLOURED = 3  #: levels down to which parts have colours of their own


def floor_plan(floor: Mapping[str, Any]) -> figure:
    """Return a square for each tile of the part that holds cells, coloured by the room that has most of them; ``floor``
    is what :func:`caesura.fpga.floor_plan.floor_plan` returns."""
    rooms = [visible(room) for room in floor["rooms"]]
    columns, rows, room, cells = zip(*floor["tiles"], strict=True) if floor["tiles"] else ((),) * 4
    source = ColumnDataSource(
        {
            "x": list(columns),
            "y": list(rows),
            "room": [rooms[number] for number in room],
            "colour": [_COLOURS[number % len(_COLOURS)] for number in room],
            "cells": list(cells),
        }
    )
    plot = figure(
        height=_HEIGHT + 24 * (1 + len(rooms) // _LEGEND_COLUMNS), sizing_mode="stretch_width",
        x_range=Range1d(start=min(columns, default=0) - 1, end=max(columns, default=1) + 1),
        y_range=Range1d(start=max(rows, default=1) + 1, end=min(rows, default=0) - 1),
        x_axis_label="column of the part", y_axis_label="row", tools="pan,wheel_zoom,box_zoom,reset,save",
    )  # fmt: skip
    tiles: Any = plot.rect("x", "y", width=1, height=1, source=source, fill_color="colour", line_color=None)
    entries = [
        LegendItem(label=name, renderers=[tiles], index=room.index(number))
        for number, name in enumerate(rooms)
        if number in room
    ]
    plot.add_layout(Legend(items=entries, ncols=_LEGEND_COLUMNS, label_text_font_size="11px"), "below")
    plot.add_tools(HoverTool(tooltips=[("", "@room"), ("cells of the tile", "@cells"), ("tile", "@x, @y")]))
    plot.grid.grid_line_color = None
    return plot


class _Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float
    name: str
    size: int
    group: str  #: the module that it shares its colour with
    label: str  #: what there is room for, or ""


def area_map(rows: Sequence[Mapping[str, Any]], kind: str, unit: str) -> figure:
    """Return a treemap: a rectangle for each module as large as what it takes of ``kind``, with those of its parts in
    it; ``rows`` are those of :func:`caesura.fpga.area.by_module`."""
    sizes = {row["module"]: row[kind] for row in rows}
    boxes = list(_boxes(_ALL, sizes, (0.0, 0.0, 1.0, 1.0), _ALL, _ALL, 0))
    groups = list(dict.fromkeys(box.group for box in boxes))
    source = ColumnDataSource(
        {
            **{key: [getattr(box, key) for box in boxes] for key in ("left", "top", "right", "bottom", "size")},
            "name": [visible(box.name) for box in boxes],
            "share": [percent(box.size / max(1, sizes[_ALL])) for box in boxes],
            "colour": [_PAPER[groups.index(box.group) % len(_PAPER)] for box in boxes],
            "label": [visible(box.label) for box in boxes],
        }
    )
    plot = figure(
        height=_HEIGHT, sizing_mode="stretch_width", x_range=Range1d(start=0, end=1), y_range=Range1d(start=1, end=0),
        tools="pan,wheel_zoom,box_zoom,reset,save",
    )  # fmt: skip
    boxed = plot.quad(
        "left", "right", "top", "bottom", source=source, fill_color="colour", line_color="white", line_width=1.5
    )
    plot.text("left", "top", text="label", source=source, text_font_size="11px", text_baseline="top", x_offset=3,
              y_offset=2, text_color="black")  # fmt: skip
    plot.add_tools(
        HoverTool(renderers=[boxed], tooltips=[("", "@name"), (visible(unit), "@size{0,0}"), ("of all", "@share")])
    )
    plot.axis.visible, plot.grid.grid_line_color = False, None
    return plot


def _boxes(
    module: str, sizes: Mapping[str, int], place: tuple[float, float, float, float], group: str, headed: str, level: int
) -> Iterator[_Box]:
    """Yield the box of a module at ``place`` (left, top, right, bottom), then those of its parts one after the other
    along its longer side; what no part has is left free at the end. ``headed`` is the module around it whose name is
    shown, so that it need not be said again."""
    left, top, right, bottom = place
    parts = sorted((name for name in sizes if _parent(name, sizes) == module), key=lambda name: -sizes[name])
    label = module.removeprefix(f"{headed}.")
    high = bottom - top > (_HEADED if parts else 1) * _LINE
    fits = high and right - left > _LETTER * (len(label) + 1)
    yield _Box(*place, module, sizes[module], group, label if fits else "")
    if high:
        top, headed = top + _LINE, module
    height, width = bottom - top, right - left
    for part in parts:
        share = sizes[part] / max(1, sizes[module])
        if width > height:
            inner = (left, top, left := left + share * width, bottom)
        else:
            inner = (left, top, right, top := top + share * height)
        if share > 0:
            yield from _boxes(part, sizes, inner, part if level < _COLOURED else group, headed, level + 1)


def _parent(module: str, known: Container[str]) -> str | None:
    if module == _ALL:
        return None
    parts = module.split(".")
    above = (".".join(parts[:end]) for end in range(len(parts) - 1, 0, -1))
    return next((path for path in above if path in known), _ALL)
