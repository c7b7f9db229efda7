"""Makes the page of ``caesura run --report``: one inference."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from caesura.profiles import profile
from caesura.views.charts import layer_cycles, memory_plot, timeline
from caesura.views.page import heading, paragraph, table, write_page
from caesura.views.profile import layer_table
from caesura.views.run_report import RunReport
from caesura.views.tables import pairs_table
from caesura.views.timeline import run_spans
from hw.image import Image
from sim import InstructionRun
from sw.driver import HandledInterrupt

#: Columns of the layers' table; where the cycles were lost is in the plot above it.
_SHOWN = ("name", "kind", "macs", "cycles", "bound", "reached", "lost")


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
    spans = [replace(span, kind=span.name) for span in run_spans([stats], runs, interrupts)]
    lines = "Jobs by engine, and when units worked." if runs else "Jobs by engine; --units adds a line for each unit."
    parts = [
        heading(f"{report.model} on {report.preset} ({report.backend})", 1),
        paragraph(f"Inputs: {report.inputs}."), *check, *host,
        table(pairs_table("", "", facts)),
        heading("Timeline"), paragraph(f"{lines} Drag to zoom, turn the wheel, reset with the arrow."), timeline(spans),
        heading("Layers: cycles by cause, and the roofline"),
        paragraph("Peak is what the multiply-accumulates take at the peak rate; all else is a loss, by its cause."),
        layer_cycles(where), table(layer_table(where.layers, where.total).only(*_SHOWN)),
        heading("LV2 over time"),
        paragraph("Tensors that are still needed, weight windows from the start of their load on; dashed: all of LV2."),
        memory_plot(stats.jobs, params.lv2_bytes),
    ]  # fmt: skip
    write_page(path, f"{report.model} on {report.preset}", parts)
