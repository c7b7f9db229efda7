"""Plots a timeline: a line for each track, spans as bars in the colour of their kind."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from bokeh.models import ColumnDataSource, CustomJSTickFormatter, FactorRange, HoverTool, Range1d
from bokeh.models.annotations import Legend, LegendItem
from bokeh.palettes import Category20
from bokeh.plotting import figure

from caesura.page.document import label
from sim import Span, visible

_MOST = 20_000  #: bars that are drawn: more neither fit in 5 MB nor can be told apart
_LINE = 26  #: height of a line, pixels
_LEGEND = 12  #: kinds that a legend names
_COLOURS = Category20[20]


def timeline(spans: Sequence[Span], unit: str = "cycles") -> figure:
    """Return a figure to zoom into; what a bar stands for is told under the pointer. Where there are more spans than
    can be drawn, short ones that follow each other and look alike are one bar."""
    spans = [_visible(span) for span in spans]
    drawn = thinned(spans)
    begin, end = min((s.start for s in spans), default=0), max((s.end for s in spans), default=1)
    tracks = sorted({span.track for span in spans})
    names = [" / ".join(track) for track in tracks]
    kinds = list(dict.fromkeys(span.kind or span.name for span in sorted(spans, key=lambda s: s.start)))
    colour = {kind: _COLOURS[i % len(_COLOURS)] for i, kind in enumerate(kinds)}
    source = ColumnDataSource(
        {
            "track": [" / ".join(span.track) for span in drawn],
            "left": [span.start for span in drawn],
            "right": [span.end for span in drawn],
            "name": [span.name for span in drawn],
            "kind": [span.kind for span in drawn],
            "colour": [colour[span.kind or span.name] for span in drawn],
            "length": [span.end - span.start for span in drawn],
        }
    )
    plot = figure(
        y_range=FactorRange(factors=names[::-1]), x_range=Range1d(start=begin, end=end, bounds=(begin, end)),
        height=120 + _LINE * len(names), sizing_mode="stretch_width", x_axis_label=label(unit),
        tools="xpan,xwheel_zoom,xbox_zoom,reset,save",
        active_scroll="xwheel_zoom", active_drag="xbox_zoom",
    )  # fmt: skip
    bars: Any = plot.hbar(
        y="track", left="left", right="right", height=0.8, source=source, fill_color="colour", line_color="white",
        line_width=0.3,
    )  # fmt: skip
    if len(kinds) <= _LEGEND:
        first = [next(i for i, span in enumerate(drawn) if (span.kind or span.name) == kind) for kind in kinds]
        entries = [LegendItem(label=kind, renderers=[bars], index=i) for kind, i in zip(kinds, first, strict=True)]
        plot.add_layout(Legend(items=entries, orientation="horizontal"), "above")
    told = [
        ("", "@name"),
        ("of", "@kind"),
        ("from", "@left{0,0}"),
        ("to", "@right{0,0}"),
        (visible(unit), "@length{0,0}"),
    ]
    plot.add_tools(HoverTool(tooltips=told))
    plot.xaxis.formatter = CustomJSTickFormatter(code="return tick.toLocaleString('en')")
    plot.ygrid.grid_line_color = None
    return plot


def _visible(span: Span) -> Span:
    group, name = span.track
    return replace(span, track=(visible(group), visible(name)), name=visible(span.name), kind=visible(span.kind))


def thinned(spans: Sequence[Span], most: int = _MOST) -> list[Span]:
    """Return at most about ``most`` spans: neighbours of one track, kind and name become one where the gap between them
    is shorter than a step, and steps grow until few enough are left."""
    found = sorted(spans, key=lambda span: (span.track, span.start))
    step = 1
    while len(found) > most:
        found = [one for _, track in groupby(found, key=lambda span: span.track) for one in _joined(track, step)]
        step *= 4
    return found


def _joined(track: Iterable[Span], step: int) -> Iterable[Span]:
    """Yield spans of one track; from a step of some size on those of different names are one, too."""
    last: Span | None = None
    for span in track:
        near = last is not None and span.start - last.end < step
        small = last is not None and max(span.end - span.start, last.end - last.start) < step
        if last is not None and near and ((last.name, last.kind) == (span.name, span.kind) or small):
            last = Span(last.track, last.name, last.start, max(last.end, span.end), last.kind, last.details)
            continue
        if last is not None:
            yield last
        last = span
    if last is not None:
        yield last
