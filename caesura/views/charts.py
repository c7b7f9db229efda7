"""Plots what pages show: where layers lost their cycles, memory over time, timelines, latencies, figures of benches,
differences, and what less LV2 costs."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from bokeh.models import (
    ColumnDataSource,
    CustomJSTickFormatter,
    DataRange1d,
    FactorRange,
    FixedTicker,
    HoverTool,
    NoOverlap,
    NumeralTickFormatter,
    Range1d,
)
from bokeh.models.annotations import Legend, LegendItem
from bokeh.palettes import Category10, Category20
from bokeh.plotting import figure

from caesura.profiles import PARTS, LayerProfile, Profile
from caesura.scenario.outcome import Frame
from caesura.views.page import label
from hw.contract.isa import Segment
from hw.contract.spaces import Space
from hw.image import LiveRange
from sim import Span, distinct_names, visible
from sw.driver import JobResult

_LINE = 22  #: height of a layer or a figure, pixels
_TRACK = 26  #: height of a track, pixels
_MOST = 20_000  #: bars that are drawn: more neither fit in 5 MB nor can be told apart
_NAME = 44  #: characters of a layer's name, at most
_LEGEND_COLUMNS = 3  #: of a legend below or above a plot: as many as 400 pixels have room for
_LEGEND = 12  #: kinds that a legend names
_COLOURS = Category20[20]
_BAD, _GOOD = "#e34a33", "#41ab5d"


def layer_cycles(profile: Profile) -> figure:
    """Return bars of the layers' shares of the run in cycles, in parts: what peak would have taken, and each cause of
    loss; a mark tells where the bound lies."""
    names = _names(profile.layers)
    data: dict[str, list] = {
        "layer": names,
        "whole": [visible(layer.name) for layer in profile.layers],
        "bound": [layer.bound.cycles for layer in profile.layers],
    }
    data["limit"] = [layer.bound.limit for layer in profile.layers]
    data["share"] = [layer.share for layer in profile.layers]
    data |= {part: [layer.parts[part] for layer in profile.layers] for part in PARTS}
    used = [part for part in PARTS if any(data[part])]
    lines = len(names) + len(used) // _LEGEND_COLUMNS
    plot = figure(
        y_range=FactorRange(factors=names[::-1]), x_range=DataRange1d(start=0), height=150 + _LINE * lines,
        sizing_mode="stretch_width", x_axis_label="share of the run in cycles",
        tools="xpan,xwheel_zoom,xbox_zoom,reset,save",
    )  # fmt: skip
    source = ColumnDataSource(data)
    colours = ["#2c7fb8", *Category20[20][2:]][: len(used)]
    bars = plot.hbar_stack(used, y="layer", height=0.8, color=colours, source=source, legend_label=used)
    for bar, part in zip(bars, used, strict=True):
        told = [("layer", "@whole"), (part, f"@{part}{{0,0}}"), ("share", "@share{0,0}")]
        plot.add_tools(HoverTool(renderers=[bar], tooltips=told))
    marks = plot.scatter("bound", "layer", source=source, marker="dash", angle=1.5708, size=16, color="black",
                         legend_label="roofline")  # fmt: skip
    plot.add_tools(HoverTool(renderers=[marks], tooltips=[("roofline", "@bound{0,0}"), ("limited by", "@limit")]))
    plot.xaxis.formatter = NumeralTickFormatter(format="0,0")
    plot.xaxis.major_label_policy = NoOverlap()
    plot.legend.label_text_font_size, plot.legend.ncols = "11px", _LEGEND_COLUMNS
    plot.add_layout(plot.legend[0], "below")
    return plot


def _names(layers: list[LayerProfile]) -> list[str]:
    """Return names that differ; the plot knows layers by them."""
    seen: dict[str, int] = {}
    found = []
    short = distinct_names([visible(layer.name) for layer in layers], _NAME)
    for layer in layers:
        name = short[visible(layer.name)]
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found


def lv2_use(jobs: Sequence[JobResult]) -> tuple[list[int], list[int], list[int]]:
    """Return, at each time at which they change, bytes of tensors that are still needed, and bytes of weight windows
    that are loaded or being loaded: from the live ranges of the image and the times of the jobs."""
    tensors: dict[int, int] = {}
    windows: list[tuple[int, int]] = []
    for job in jobs:
        info = job.model.image.meta.jobs[job.job]
        tensors[job.start] = sum(one.size for one in info.live if one.space == Space.LV2 and not _weights(one))
        _, size = info.window
        if size:
            windows += [(job.prologue_start or job.start, size), (job.end, -size)]
    times = sorted({*tensors, *(time for time, _ in windows), *(job.end for job in jobs)})
    held, loaded, now, sums = [], [], 0, 0
    changes = sorted(windows)
    for time in times:
        now = tensors.get(time, now)
        while changes and changes[0][0] <= time:
            sums += changes.pop(0)[1]
        held.append(now)
        loaded.append(sums)
    return times, held, loaded


def _weights(live: LiveRange) -> bool:
    """Return whether the range is a weight window, loaded ahead."""
    return not live.dirty and live.source_segment == Segment.WEIGHTS


def memory_plot(jobs: Sequence[JobResult], lv2_bytes: int) -> figure:
    """Return a plot with steps of tensors, and of weights above them."""
    times, held, loaded = lv2_use(jobs)
    plot = figure(
        height=240, sizing_mode="stretch_width", x_axis_label="cycles", y_axis_label="bytes of LV2",
        y_range=Range1d(start=0, end=lv2_bytes * 1.05), tools="xpan,xwheel_zoom,xbox_zoom,reset,save",
    )  # fmt: skip
    both = [a + b for a, b in zip(held, loaded, strict=True)]
    plot.varea_step(times, [0] * len(times), held, step_mode="after", color="#2c7fb8", legend_label="tensors")
    plot.varea_step(times, held, both, step_mode="after", color="#fdae61", legend_label="weight windows")
    plot.line([min(times, default=0), max(times, default=1)], [lv2_bytes] * 2, color="black", line_dash="dashed")
    plot.axis.formatter = NumeralTickFormatter(format="0,0")
    plot.xaxis.major_label_policy = NoOverlap()
    return plot


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
    lines = len(names) + min(len(kinds), _LEGEND) // _LEGEND_COLUMNS
    plot = figure(
        y_range=FactorRange(factors=names[::-1]), x_range=Range1d(start=begin, end=end, bounds=(begin, end)),
        height=120 + _TRACK * lines, sizing_mode="stretch_width", x_axis_label=label(unit),
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
        plot.add_layout(Legend(items=entries, ncols=_LEGEND_COLUMNS), "above")
    told = [
        ("", "@name"),
        ("of", "@kind"),
        ("from", "@left{0,0}"),
        ("to", "@right{0,0}"),
        (visible(unit), "@length{0,0}"),
    ]
    plot.add_tools(HoverTool(tooltips=told))
    plot.xaxis.formatter = CustomJSTickFormatter(code="return tick.toLocaleString('en')")
    plot.xaxis.major_label_policy = NoOverlap()
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


def bench_figures(rows: Sequence[Mapping[str, Any]], unit: str) -> figure:
    """Return bars of values, in green what is met; marks tell where each must be, and would be best."""
    known = [row for row in rows if row["value"] is not None]
    names = list(dict.fromkeys(visible(row["name"]) for row in known))
    source = ColumnDataSource(
        {
            "name": [visible(row["name"]) for row in known],
            "value": [row["value"] for row in known],
            "must": [row["must"] for row in known],
            "aim": [row["aim"] for row in known],
            "colour": [_GOOD if row["ok"] else _BAD for row in known],
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
    plot.xaxis.major_label_policy = NoOverlap()
    return plot


def latencies(frames: Sequence[Frame], unit: str) -> figure:
    """Return a plot of distribution functions, with a line for each stream; requests that were dropped never end."""
    plot = figure(
        height=300, sizing_mode="stretch_width",
        x_axis_label=label(f"turnaround, {unit}"), y_axis_label="share of requests",
        y_range=Range1d(start=0, end=1.02), tools="xpan,xwheel_zoom,xbox_zoom,reset,save",
    )  # fmt: skip
    for number, stream in enumerate(dict.fromkeys(frame.stream for frame in frames)):
        all_times = [frame.turnaround for frame in frames if frame.stream == stream]
        times = sorted(filter(math.isfinite, all_times))
        shares = [(place + 1) / len(all_times) for place in range(len(times))]
        plot.step(
            [*times[:1], *times], [0.0][: len(times)] + shares, mode="after", color=Category10[10][number % 10],
            legend_label=visible(stream),
        )  # fmt: skip
    plot.add_tools(HoverTool(tooltips=[(visible(unit), "$x{0,0.[0]}"), ("share", "$y{0.00}")]))
    plot.xaxis.formatter = NumeralTickFormatter(format="0,0.[0]")
    plot.xaxis.major_label_policy = NoOverlap()
    plot.legend.location = "bottom_right"
    return plot


def differences(changes: Sequence[tuple[str, float]], unit: str) -> figure:
    """Return a bar for each name, to the right in red for what is more than before, to the left in green for less."""
    names = distinct_names([visible(name) for name, _ in changes], _NAME)
    source = ColumnDataSource(
        {
            "name": [names[visible(name)] for name, _ in changes],
            "whole": [visible(name) for name, _ in changes],
            "value": [value for _, value in changes],
            "colour": [_BAD if value > 0 else _GOOD for _, value in changes],
        }
    )
    plot = figure(
        y_range=FactorRange(factors=[*dict.fromkeys(source.data["name"])][::-1]),
        height=90 + _LINE * max(1, len(changes)), sizing_mode="stretch_width",
        x_axis_label=label(unit), tools="xpan,xwheel_zoom,reset,save",
    )  # fmt: skip
    plot.hbar(y="name", right="value", height=0.7, source=source, color="colour")
    plot.add_tools(HoverTool(tooltips=[("", "@whole"), ("difference", "@value{+0,0.[000]}")]))
    plot.xaxis.formatter = NumeralTickFormatter(format="0,0.[000]")
    plot.xaxis.major_label_policy = NoOverlap()
    return plot


def lv2_curve(sizes: Sequence[int], values: Sequence[int], unit: str) -> figure:
    """Return a line of what an inference costs in ``unit`` against bytes of LV2."""
    plot = figure(
        height=260, sizing_mode="stretch_width", x_axis_label="bytes of LV2", y_axis_label=label(unit),
        x_axis_type="log", y_range=DataRange1d(start=0), tools="xpan,xwheel_zoom,reset,save",
    )  # fmt: skip
    source = ColumnDataSource({"size": list(sizes), "value": list(values)})
    plot.line("size", "value", source=source, color="#2c7fb8", line_width=2)
    plot.scatter("size", "value", source=source, color="#2c7fb8", size=8)
    plot.add_tools(HoverTool(tooltips=[("LV2", "@size{0,0}"), (visible(unit), "@value{0,0}")]))
    plot.xaxis.ticker = FixedTicker(ticks=list(sizes))
    plot.axis.formatter = NumeralTickFormatter(format="0,0")
    plot.xaxis.major_label_policy = NoOverlap()
    return plot
