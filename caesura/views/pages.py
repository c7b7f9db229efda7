"""Makes the pages that ``--report`` writes: of an inference, of a scenario under a policy, of a bench, of what differs
between two results, of the LV2 that a model needs, and of a machine on an FPGA."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from caesura.profiles import profile
from caesura.scenario.outcome import Outcome, spans
from caesura.views.bench import bench_table
from caesura.views.charts import (
    bench_figures,
    differences,
    latencies,
    layer_cycles,
    lv2_curve,
    memory_plot,
    timeline,
)
from caesura.views.floor import area_map, floor_plan
from caesura.views.page import heading, paragraph, table, write_page
from caesura.views.run_report import RunReport, layer_table
from caesura.views.tables import Column, ColumnTable, table_of
from caesura.views.timeline import run_spans
from hw.image import Image
from sim import InstructionRun
from sw.driver import HandledInterrupt

#: Columns of the layers' table; where the cycles were lost is in the plot above it.
_SHOWN = ("name", "kind", "macs", "cycles", "bound", "reached", "lost")
_METRICS = (
    "requests", "makespan", "antt", "stp", "fairness", "sla_violation_rate", "compute_utilisation",
    "access_utilisation", "preemptions", "switch_time", "host_time",
)  # fmt: skip
_CAUSES = (
    "Means over the engines. Peak is what the multiply-accumulates take at the peak rate; "
    "all else is a loss, by its cause."
)
_TIMES = ("mean", "p50", "p90", "p99", "max")
_MOST = 40  #: differences that are drawn


def write_run_page(
    path: Path,
    report: RunReport,
    image: Image,
    runs: Sequence[InstructionRun],
    interrupts: Sequence[HandledInterrupt] = (),
) -> None:
    """Write the page of the first sample of ``report``; ``runs``: when units worked, if that was recorded."""
    stats = report.stats[0]
    where = profile(image, stats.jobs)
    params = image.params
    facts: list[tuple[str, Any]] = [
        ("cycles on the accelerator", stats.cycles), ("latency in cycles, the host's part included", stats.latency),
        ("of that steps on the CPU", stats.host), ("MACs", stats.macs),
        ("utilisation of the MAC peak", f"{stats.utilisation:.1%}"), ("MACs per cycle at the peak", params.macs),
        ("roofline, cycles", round(where.total.bound.cycles)), ("limited by", where.total.bound.limit),
        ("instructions", len(image.code) // 64), ("bytes of weights", len(image.weights)),
        ("bytes of LV2 in use", image.meta.lv2_bytes), ("cancellation points", len(image.meta.cancel_points)),
    ]  # fmt: skip
    check = [] if report.check is None else [paragraph(report.check.summary())]
    host = [paragraph(f"on the CPU: {step}") for step in report.host_steps]
    drawn = [replace(span, kind=span.name) for span in run_spans([stats], runs, interrupts)]
    lines = "Jobs by engine, and when units worked." if runs else "Jobs by engine; --units adds a line for each unit."
    parts = [
        heading(f"{report.model} on {report.preset} ({report.backend})", 1),
        paragraph(f"Inputs: {report.inputs}."), *check, *host,
        table(table_of("", ("", ">"), facts)),
        heading("Timeline"), paragraph(f"{lines} Drag to zoom, turn the wheel, reset with the arrow."), timeline(drawn),
        heading("Layers: cycles by cause, and the roofline"),
        paragraph(_CAUSES),
        layer_cycles(where), table(layer_table(where.layers, where.total).only(*_SHOWN)),
        heading("LV2 over time"),
        paragraph("Tensors that are still needed, weight windows from the start of their load on; dashed: all of LV2."),
        memory_plot(stats.jobs, params.lv2_bytes),
    ]  # fmt: skip
    write_page(path, f"{report.model} on {report.preset}", parts)


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
        table(table_of("", ("metric", ">value"), [(name.replace("_", " "), result[name]) for name in _METRICS])),
        heading("Timeline"),
        paragraph("Layers by engine. Drag to zoom, turn the wheel, reset with the arrow."),
        timeline(spans(outcome, unit)),
        heading("Latency"),
        paragraph("Which share of a stream's requests ended within a time, from arrival to end."),
        latencies(outcome.frames, unit), table(ColumnTable("", columns, streams)),
    ]  # fmt: skip
    write_page(path, title, parts)


def write_bench_page(path: Path, result: Mapping[str, Any]) -> None:
    """Write the page of a benchmark's ``result``, as ``caesura bench --json`` prints it."""
    title = f"{result['bench']} on {result['preset']} ({result['backend']})"
    figures = bench_table(result["rows"]).without("ok", "skipped", "explanation")
    parts: list[Any] = [heading(title, 1), paragraph(f"Caesura {result['version']}.")]
    for unit in dict.fromkeys(row["unit"] for row in result["rows"]):
        parts += [
            heading(f"Figures in {unit}"),
            bench_figures([row for row in result["rows"] if row["unit"] == unit], unit),
        ]
    write_page(path, title, [*parts, heading("All figures"), table(figures)])


def write_diff_page(
    path: Path, titles: tuple[str, str], totals: ColumnTable, layers: ColumnTable, changes: Sequence[tuple[str, float]],
    notes: Sequence[str],
) -> None:  # fmt: skip
    """Write the page of what differs between two results of these ``titles``: their ``totals``, and of what they
    consist of, ``layers``, by how much each is more."""
    title = f"{titles[0]}, and {titles[1]}"
    parts: list[Any] = [heading(title, 1), *map(paragraph, notes), table(totals)]
    if changes:
        most = [paragraph(f"The {_MOST} largest.")] if len(changes) > _MOST else []
        parts += [heading("Differences, cycles"), *most, differences(changes[:_MOST], "cycles")]
    if layers.rows:
        parts += [heading("Layers"), paragraph("Cycles, and how much of the MAC peak they used."), table(layers)]
    write_page(path, title, parts)


def write_memory_page(
    path: Path, orders: ColumnTable, notes: Sequence[str], curve: ColumnTable | None,
    points: Sequence[tuple[int, int, int]],
) -> None:  # fmt: skip
    """Write the page of how much LV2 a model needs by the ``orders`` of its layers, and of what less costs: ``points``
    are bytes of LV2, bytes of DRAM and cycles."""
    parts: list[Any] = [heading(orders.title, 1), table(replace(orders, title="")), *map(paragraph, notes)]
    if curve is not None:
        sizes, moved, cycles = zip(*points, strict=True) if points else ((), (), ())
        parts += [heading(curve.title), table(replace(curve, title=""))]
        if points:
            parts += [lv2_curve(sizes, moved, "bytes of DRAM"), lv2_curve(sizes, cycles, "cycles")]
    write_page(path, orders.title, parts)


def write_fpga_page(
    path: Path, title: str, facts: Sequence[ColumnTable], areas: ColumnTable, floor: Mapping[str, Any] | None
) -> None:
    """Write the page of a design on an FPGA: tables of ``facts`` about it, what its modules take (``areas``, with rows
    of :func:`caesura.fpga.area.by_module`), and where they lie, as :func:`caesura.fpga.floor_plan.floor_plan` has it,
    if it was placed."""
    parts: list[Any] = [heading(title, 1)]
    for fact in facts:
        parts += [heading(fact.title.capitalize()), table(replace(fact, title=""))]
    if floor is not None:
        parts += [heading("Floor plan"), paragraph("Each tile in the colour of the module with most of its cells.")]
        parts += [floor_plan(floor)]
    parts += [heading("Look-up tables by module"), area_map(areas.rows, "lut", "LUT")]
    parts += [paragraph(f"{areas.title.capitalize()}."), table(replace(areas, title=""))]
    write_page(path, title, parts)
