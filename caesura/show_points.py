"""What ``caesura info`` prints about cancellation points."""

from statistics import median
from typing import Any

from rich.table import Table

from caesura.show import table
from hw.contract.image import CancelPoint, Image
from hw.contract.spaces import Space

_PER_PE = (Space.LV0_ACT, Space.LV0_WGT)


def live_bytes(image: Image, point: CancelPoint, dirty: bool) -> int:
    """Bytes of all memories together that are live at ``point``: those to dump (``dirty``), or those to load again."""
    pes = image.params.pes
    return sum(r.size * (pes if r.space in _PER_PE else 1) for r in point.live if r.dirty == dirty)


def point_fields(image: Image) -> dict[str, Any]:
    """Number of points, and median and largest of their figures (empty without points), for JSON."""
    return {"points": len(image.meta.cancel_points), **{name: spread for name, spread in _spreads(image)}}


def _spreads(image: Image) -> list[tuple[str, dict[str, float]]]:
    points = image.meta.cancel_points
    figures = {
        "interval": [point.estimated_interval for point in points],
        "worst_interval": [point.worst_interval for point in points],
        "dirty_bytes": [live_bytes(image, point, True) for point in points],
        "clean_bytes": [live_bytes(image, point, False) for point in points],
        "reloads": [len(point.reload) for point in points],
    }
    return [(name, {"median": median(values), "largest": max(values)}) for name, values in figures.items() if values]


def points_summary(image: Image) -> Table:
    """Median and largest interval (estimated cycles from passing a point to halting at the next) and live bytes."""
    summary = table(f"{len(image.meta.cancel_points)} cancellation points", "", ">median", ">largest")
    for name, spread in _spreads(image):
        summary.add_row(name.replace("_", " "), f"{spread['median']:,.0f}", f"{spread['largest']:,.0f}")
    return summary


def points_table(image: Image) -> Table:
    """Every point with its place, interval and live bytes."""
    columns = ("layer", ">point", ">job", ">PC", ">interval", ">dirty", ">clean", ">reloads", "dirty by memory")
    points = table("cancellation points", *columns)
    for point in image.meta.cancel_points:
        sizes: dict[str, int] = {}
        for r in point.live:
            if r.dirty:
                sizes[r.space] = sizes.get(r.space, 0) + r.size
        points.add_row(
            image.meta.layers[image.meta.jobs[point.job].layer].name,
            str(point.point),
            str(point.job),
            str(point.pc),
            f"{point.estimated_interval:,}",
            f"{live_bytes(image, point, True):,}",
            f"{live_bytes(image, point, False):,}",
            str(len(point.reload)),
            ", ".join(f"{space} {size:,}" for space, size in sizes.items()),
        )
    return points
