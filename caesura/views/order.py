"""Shows what the order search did, as a table and as fields for JSON."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table

from caesura.views.progress import Progress
from caesura.views.tables import table_of
from sim import MODEL

if TYPE_CHECKING:  # the compiler is loaded where it is used
    from compiler import MeasuredBuild, OrderReport, SubgraphReport


def order_table(reports: "Sequence[OrderReport]") -> Table:
    """Return a row for each subgraph with a choice of orders; times are estimated cycles."""
    heads = ("subgraph", "layers", "orders", "tried", "source", "worst", "best", "lower bound")
    rows = [
        (
            part.name,
            str(len(part.operators)),
            str(part.orders),
            part.tried,
            *map(_cycles, (part.source, part.worst, part.best, part.lower_bound)),
        )
        for part in _with_choice(reports)
    ]
    return table_of("order search", heads, rows).rich()


def order_fields(reports: "Sequence[OrderReport]") -> list[dict[str, Any]]:
    """Return everything of every subgraph."""
    return [report.to_dict() for report in reports]


def has_choice(reports: "Sequence[OrderReport]") -> bool:
    """Return whether any subgraph has more than one order."""
    return bool(_with_choice(reports))


def measured_line(measured: "MeasuredBuild", backend: str) -> str:
    """Return what measuring orders on ``backend`` did, in one line."""
    place = "the fast model" if backend == MODEL else f"the RTL ({backend})"
    gain = 100 * (1 - measured.cycles / measured.priced)
    programs = f"{measured.tried:,} program{'s' if measured.tried != 1 else ''}"
    return (
        f"{programs} measured on {place}: {measured.cycles:,.0f} cycles, "
        f"{measured.priced:,.0f} in the order found by price ({gain:.1f} % fewer)"
    )


def measured_fields(measured: "MeasuredBuild | None") -> dict[str, Any]:
    """Return what measuring orders did as fields; there are none if nothing was measured."""
    if measured is None:
        return {}
    return {"measured": {"tried": measured.tried, "cycles": measured.cycles, "cycles_by_price": measured.priced}}


def tell_measured(progress: Progress, tried: int, cycles: float) -> None:
    """Tell a line of progress."""
    progress.task(f"order: {tried:,} program{'s' if tried != 1 else ''} measured, {cycles:,.0f} cycles at best")


def _with_choice(reports: "Sequence[OrderReport]") -> "list[SubgraphReport]":
    return [part for report in reports for part in report.subgraphs if not part.orders.at_most(1)]


def _cycles(value: float) -> str:
    return f"{value:,.0f}" if math.isfinite(value) else ""
