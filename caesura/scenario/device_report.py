"""Reports what each device of a scenario served, and how busy it was."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from caesura.scenario.outcome import Outcome
from caesura.views import Column, ColumnTable
from sw.runtime import metrics


@dataclass(frozen=True)
class DeviceReport:
    """Says what the device of that ``number`` did: runs of models that ended or were dropped there, in all and by
    model, and its utilisation in percent of the makespan. ``died``: why it was taken out, if it was."""

    number: int
    requests: int
    served: dict[str, int]
    compute_utilisation: float
    access_utilisation: float
    died: str | None


def device_reports(outcome: Outcome) -> list[DeviceReport]:
    """Return a report of each device by number; none of the synthetic machine."""
    span = outcome.makespan
    found = []
    for number, device in enumerate(outcome.devices):
        served = Counter(run.model for run in outcome.requests if run.device == number)
        compute = metrics.utilisation(sum(device.compute_busy), span * len(device.compute_busy))
        access = metrics.utilisation(device.access_busy, span)
        found.append(DeviceReport(number, served.total(), dict(sorted(served.items())), compute, access, device.died))
    return found


def device_notes(outcome: Outcome) -> list[str]:
    """Return a sentence on each device that was taken out."""
    return [
        f"device {number} was taken out, and what it served started over on others: {device.died}"
        for number, device in enumerate(outcome.devices)
        if device.died is not None
    ]


def device_tables(rows: Sequence[Mapping[str, object]]) -> list[ColumnTable]:
    """Return a table of reports, as data for JSON, where there are several devices."""
    if len(rows) < 2:
        return []
    columns = (
        Column("number", "device"),
        Column("requests", number=True),
        Column("compute_utilisation", "compute", number=True, text=_percent),
        Column("access_utilisation", "access", number=True, text=_percent),
        Column("served", text=lambda served: ", ".join(f"{name} {count}" for name, count in served.items())),
    )
    return [ColumnTable("", columns, rows)]


def _percent(value: float) -> str:
    return f"{value:.1f} %"
