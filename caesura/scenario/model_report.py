"""Reports how each model of a scenario fared on a device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from caesura.scenario.outcome import Frame, ModelPlace, Outcome, RequestRun
from caesura.scenario.schema import Scenario
from caesura.views import Column, ColumnTable, percent
from sw.runtime import metrics


@dataclass(frozen=True)
class ModelReport:
    """Says how one model fared. Times are in the scenario's unit, from the arrival of a request at the model to its
    end there.

    ``engines`` are those of all ``copies``, of which each claims ``lv2_bytes``. ``mean`` and percentiles are of
    requests that ended, None if none did. ``met`` is the share of deadlines that were met, of the streams that run the
    model and have some, otherwise None. ``engine_time`` is its share of the time of all engines in bodies of its jobs,
    without what was lost when it started over. ``suspended``, ``killed`` and ``started_over`` count how often that
    happened, the killed among those that started over; ``dropped`` counts requests that were aborted.
    """

    model: str
    requests: int
    engines: tuple[int, ...]
    copies: int
    lv2_bytes: int
    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None
    met: float | None
    engine_time: float
    suspended: int
    killed: int
    started_over: int
    dropped: int


def model_reports(scenario: Scenario, outcome: Outcome) -> list[ModelReport]:
    """Return a report of each model that ran, in the order of the scenario; none of a machine that runs no models."""
    return [
        _model_report(name, outcome.places[name], scenario, outcome)
        for name in scenario.models
        if name in outcome.places
    ]


def _model_report(name: str, place: ModelPlace, scenario: Scenario, outcome: Outcome) -> ModelReport:
    runs = [run for run in outcome.requests if run.model == name]
    times = [run.end - run.arrival for run in runs if not run.dropped]
    p50, p95, p99 = (metrics.percentile(times, part) if times else None for part in (50, 95, 99))
    streams = {stream.name for stream in scenario.streams if name in stream.models}
    return ModelReport(
        name, len(runs), place.engines, place.copies, place.lv2_bytes,
        sum(times) / len(times) if times else None, p50, p95, p99,
        _met([frame for frame in outcome.frames if frame.stream in streams]),
        metrics.utilisation(sum(run.busy for run in runs), outcome.makespan * outcome.engines) / 100,
        *(_sum(runs, key) for key in ("suspended", "killed", "started_over", "dropped")),
    )  # fmt: skip


def _met(frames: Sequence[Frame]) -> float | None:
    ends = [(frame.end, frame.deadline) for frame in frames]
    return 1 - metrics.sla_violation_rate(ends) if any(deadline is not None for _, deadline in ends) else None


def _sum(runs: Sequence[RequestRun], key: str) -> int:
    return sum(getattr(run, key) for run in runs)


_SET_BACK = ("suspended", "killed", "started_over", "dropped")


def models_tables(rows: Sequence[Mapping[str, Any]], unit: str) -> list[ColumnTable]:
    """Return a table of reports, as data for JSON, and one of what others did to requests, if they did anything."""
    columns = (
        Column("model"),
        Column("requests", number=True),
        Column("engines", text=_engines),
        Column("lv2_bytes", "LV2, bytes", number=True),
        *(Column(key, unit=unit if key == "p50" else "", number=True, text=time_text) for key in ("p50", "p95", "p99")),
        Column("met", number=True, text=percent),
        Column("engine_time", "busy", number=True, text=percent),
    )
    table = ColumnTable("", columns, rows).without(*(["met"] if all(row["met"] is None for row in rows) else []))
    happened = [key for key in _SET_BACK if any(row[key] for row in rows)]
    set_back = ColumnTable("", [Column("model"), *(Column(key, number=True) for key in happened)], rows)
    return [table, *([set_back] if happened else [])]


def _engines(numbers: Sequence[int]) -> str:
    """Return engine numbers, neighbours as a range: ``0-3, 6``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def time_text(value: float | None) -> str:
    """Return a time as text, with one decimal where that is of interest; there is none for None."""
    return "" if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.1f}"
