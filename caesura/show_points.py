"""Makes what ``caesura info`` prints about cancellation points."""

from statistics import median
from typing import Any

from rich.table import Table

from caesura.terminal import table
from hw.image import Image


def point_fields(image: Image) -> dict[str, Any]:
    """Return the number of points, and median and largest of their figures (empty without points), for JSON."""
    return {"points": len(image.meta.cancel_points), **{name: spread for name, spread in _spreads(image)}}


def _spreads(image: Image) -> list[tuple[str, dict[str, float]]]:
    points = image.meta.cancel_points
    figures = {
        "interval": [point.estimated_interval for point in points],
        "worst_interval": [point.worst_interval for point in points],
        "dirty_bytes": [image.live_bytes(point, dirty=True) for point in points],
        "clean_bytes": [image.live_bytes(point, dirty=False) for point in points],
        "reloads": [len(point.reload) for point in points],
    }
    return [(name, {"median": median(values), "largest": max(values)}) for name, values in figures.items() if values]


def points_summary(image: Image) -> Table:
    """Return the median and largest interval (estimated cycles from passing a point to halting at the next) and live
    bytes."""
    summary = table(f"{len(image.meta.cancel_points)} cancellation points", "", ">median", ">largest")
    for name, spread in _spreads(image):
        summary.add_row(name.replace("_", " "), f"{spread['median']:,.0f}", f"{spread['largest']:,.0f}")
    return summary


def points_table(image: Image) -> Table:
    """Return a table of every point with its place, interval and live bytes."""
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
            f"{image.live_bytes(point, dirty=True):,}",
            f"{image.live_bytes(point, dirty=False):,}",
            str(len(point.reload)),
            ", ".join(f"{space} {size:,}" for space, size in sizes.items()),
        )
    return points


def points_over(image: Image, cap: int) -> str | None:
    """Return a sentence on the points that have more dirty bytes than ``cap`` (0: any), or None if there are none."""
    sizes = [image.live_bytes(point, dirty=True) for point in image.meta.cancel_points]
    over = [size for size in sizes if cap and size > cap]
    if not over:
        return None
    return (
        f"{len(over)} of {len(sizes)} cancellation points have more than {cap:,} dirty bytes, {max(over):,} at most: a "
        "longer --cancel-interval or a smaller --lv2-limit leaves less to move"
    )
