"""Says how promises were kept in a run: the worst that was measured of each stream against its bound."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from caesura.certificate.certificate import Certificate
from caesura.scenario.outcome import Outcome, RequestRun
from caesura.views import Column, ColumnTable
from sw.admission import Response


@dataclass(frozen=True)
class PromiseReport:
    """Says how the promise of one stream was kept. Times are in cycles.

    ``bound``: the worst-case response time of its certificate, from when the rate of the stream lets a request in.
    ``worst`` was measured of those requests that ended, likewise, and ``worst_from_arrival`` from their arrivals; None
    if none ended. ``deferred``: requests that came sooner than the stream may send them; ``violated``: those that took
    longer than the bound. ``failed``: those that failed, the first for the reason ``demoted``; after it the stream was
    best effort. ``started_over``: times that its requests did, which no bound counts with.
    """

    stream: str
    requests: int
    bound: int
    worst: int | None
    worst_from_arrival: int | None
    deferred: int
    violated: int
    failed: int
    demoted: str
    started_over: int

    @property
    def kept(self) -> bool:
        """Return whether all requests ended within the bound."""
        return not self.violated and not self.failed

    @property
    def worst_over_bound(self) -> float | None:
        """Return how near to the bound the worst request came."""
        return None if self.worst is None else round(self.worst / self.bound, 3)


def promise_reports(certificate: Certificate, outcome: Outcome, ticks: int) -> list[PromiseReport]:
    """Return a report of each promised stream. ``ticks``: cycles in a unit of the times in ``outcome``."""
    return [_report(response, outcome.requests, ticks) for response in certificate.responses]


def _report(response: Response, every: Sequence[RequestRun], ticks: int) -> PromiseReport:
    assert response.response is not None
    runs = [run for run in every if run.stream == response.stream.name]
    ended, failed = [run for run in runs if not run.error], [run for run in runs if run.error]
    took = [round((run.end - run.arrival - run.deferred) * ticks) for run in ended]
    return PromiseReport(
        response.stream.name, len(runs), response.response, max(took, default=None),
        max((round((run.end - run.arrival) * ticks) for run in ended), default=None),
        sum(run.deferred > 0 for run in runs), sum(one > response.response for one in took), len(failed),
        failed[0].error if failed else "", sum(run.started_over for run in runs),
    )  # fmt: skip


_COLUMNS = (
    Column("stream", cut=True), Column("requests", number=True), Column("bound", number=True),
    Column("worst", number=True), Column("worst_over_bound", number=True), Column("worst_from_arrival", number=True),
    Column("deferred", number=True), Column("violated", number=True), Column("failed", number=True),
)  # fmt: skip


def promise_fields(reports: Sequence[PromiseReport]) -> list[dict[str, Any]]:
    """Return reports as plain data."""
    return [asdict(one) | {"worst_over_bound": one.worst_over_bound, "kept": one.kept} for one in reports]


def promises_table(rows: Sequence[dict[str, Any]]) -> ColumnTable:
    """Return a line for each of the reports, as data for JSON."""
    table = ColumnTable("promises, in cycles; they hold until an engine fails", _COLUMNS, rows)
    return table if any(row["failed"] for row in rows) else table.without("failed")


def told_violations(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return lines that say which promises were not kept."""
    excused = any(row["failed"] or row["started_over"] for row in rows)
    why = "a request failed or started over, with which promises end" if excused else "please report it"
    told = [
        f"{row['stream']}: {row['violated']} of {row['requests']} requests took longer than their bound of "
        f"{row['bound']:,} cycles: {why}"
        for row in rows
        if row["violated"]
    ]
    return told + [
        f"{row['stream']}: {row['failed']} of {row['requests']} requests failed, and it was best effort after the "
        f"first: {row['demoted']}"
        for row in rows
        if row["failed"]
    ]
