"""Plots on-chip memory over time: what of LV2 holds data, and what of it weights."""

from collections.abc import Sequence

from bokeh.models import NumeralTickFormatter, Range1d
from bokeh.plotting import figure

from hw.contract.isa import Segment
from hw.contract.spaces import Space
from hw.image import LiveRange
from sw.driver import JobResult


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
    return plot
