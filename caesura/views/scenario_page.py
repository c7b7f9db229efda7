"""Makes the page of ``caesura scenario --report``: requests of several models under a policy."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bokeh.models import HoverTool, NumeralTickFormatter, Range1d
from bokeh.palettes import Category10
from bokeh.plotting import figure

from caesura.scenario.outcome import Frame, Outcome, spans
from caesura.views.charts import timeline
from caesura.views.page import heading, label, paragraph, table, write_page
from caesura.views.tables import Column, ColumnTable, pairs_table
from sim import visible

_METRICS = (
    "requests", "makespan", "antt", "stp", "fairness", "sla_violation_rate", "compute_utilisation",
    "access_utilisation", "preemptions", "switch_time", "host_time",
)  # fmt: skip
_TIMES = ("mean", "p50", "p90", "p99", "max")


def write_scenario_page(path: Path, result: Mapping[str, Any], outcome: Outcome) -> None:
    """Write the page of a run of a scenario: its ``result`` as ``caesura scenario --json`` prints it, and what
    happened."""
    unit = result["time_unit"]
    title = f"{result['scenario']} under {result['policy']} ({result['backend']})"
    streams = [
        {**stream, **{key: stream["turnaround"].get(key) for key in _TIMES}, "late": stream["sla_violation_rate"]}
        for stream in result["streams"]
    ]
    columns = [Column("name", "stream"), Column("requests"), Column("alone", unit=unit)]
    columns += [*(Column(key, unit=unit) for key in _TIMES), Column("late")]
    parts = [
        heading(title, 1),
        *(paragraph(f"Note: {note}") for note in result["notes"]),
        table(pairs_table("metric", "value", [(name.replace("_", " "), result[name]) for name in _METRICS])),
        heading("Timeline"),
        paragraph("Layers by engine. Drag to zoom, turn the wheel, reset with the arrow."),
        timeline(spans(outcome, unit)),
        heading("Latency"),
        paragraph("Which share of a stream's requests ended within a time, from arrival to end."),
        latencies(outcome.frames, unit), table(ColumnTable("", columns, streams)),
    ]  # fmt: skip
    write_page(path, title, parts)


def latencies(frames: Sequence[Frame], unit: str) -> figure:
    """Return a plot of distribution functions, with a line for each stream."""
    plot = figure(
        height=300, sizing_mode="stretch_width",
        x_axis_label=label(f"turnaround, {unit}"), y_axis_label="share of requests",
        y_range=Range1d(start=0, end=1.02), tools="xpan,xwheel_zoom,xbox_zoom,reset,save",
    )  # fmt: skip
    for number, stream in enumerate(dict.fromkeys(frame.stream for frame in frames)):
        times = sorted(frame.turnaround for frame in frames if frame.stream == stream)
        shares = [(place + 1) / len(times) for place in range(len(times))]
        plot.step(
            [times[0], *times], [0.0, *shares], mode="after", color=Category10[10][number % 10],
            legend_label=visible(stream),
        )  # fmt: skip
    plot.add_tools(HoverTool(tooltips=[(visible(unit), "$x{0,0.[0]}"), ("share", "$y{0.00}")]))
    plot.xaxis.formatter = NumeralTickFormatter(format="0,0.[0]")
    plot.legend.location = "bottom_right"
    return plot
