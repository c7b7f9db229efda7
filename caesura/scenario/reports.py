"""Computes the metrics of the field from what happened in a scenario."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group
from rich.text import Text

from caesura.scenario.outcome import Frame, LayerRun, Outcome
from caesura.scenario.schema import Scenario
from caesura.views import line, table_of
from sw.runtime import metrics
from sw.runtime.policies import PLACEMENT

_OF_THE_RUN = (
    "makespan", "antt", "stp", "fairness", "compute_utilisation", "access_utilisation", "preemptions", "host_time",
)  # fmt: skip


def report(
    scenario: Scenario, policy: str, backend: str, outcome: Outcome, alone: Mapping[str, float]
) -> dict[str, Any]:
    """Return the metrics as plain data for JSON. ``alone``: turnaround of one request of each stream with nothing else
    on the machine.

    ``antt``, ``stp`` and ``fairness`` compare with that; a program in their definitions is a stream. Waits are those of
    operators whose inputs exist. Errors of prediction are mean absolute errors; those of idle times also as a share of
    the mean duration of a layer.
    """
    frames, span = outcome.frames, outcome.makespan
    progress = {
        name: [alone[name] / f.turnaround if f.turnaround else 1.0 for f in frames if f.stream == name]
        for name in alone
    }
    singles = [alone[frame.stream] for frame in frames]
    return {
        "scenario": scenario.name,
        "policy": policy,
        "backend": backend,
        "time_unit": scenario.time_unit,
        "notes": _notes(policy, outcome),
        "requests": len(frames),
        "makespan": span,
        "antt": metrics.antt([frame.turnaround for frame in frames], singles) if all(singles) else None,
        "stp": metrics.stp(progress),
        "fairness": metrics.fairness(progress),
        "sla_violation_rate": metrics.sla_violation_rate((frame.end, frame.deadline) for frame in frames),
        "compute_utilisation": metrics.utilisation(sum(outcome.compute_busy), span * outcome.engines),
        "access_utilisation": metrics.utilisation(outcome.access_busy, span),
        "preemptions": outcome.preemptions,
        "switch_time": outcome.switch_time,
        "host_time": outcome.host_time,
        "turnaround": _distribution([frame.turnaround for frame in frames]),
        "wait": _distribution([layer.wait for layer in outcome.layers]),
        "passed_over_most": max(layer.passed_over for layer in outcome.layers),
        "prediction": _prediction(outcome.layers),
        "decision_us": _distribution([1e6 * seconds for seconds in outcome.decision_seconds]),
        "streams": [_stream(name, single, frames) for name, single in alone.items()],
    }


def _notes(policy: str, outcome: Outcome) -> list[str]:
    if policy in PLACEMENT and outcome.queues == 1:
        way_out = "set machine.placed = true, on several engines" if outcome.engines > 1 else "raise machine.engines"
        return [f"{policy} chooses among queues of engines, and here is one: this is fcfs; {way_out}"]
    return []


def _stream(name: str, alone: float, frames: Sequence[Frame]) -> dict[str, Any]:
    mine = [frame for frame in frames if frame.stream == name]
    return {
        "name": name,
        "requests": len(mine),
        "alone": alone,
        "turnaround": _distribution([frame.turnaround for frame in mine]),
        "sla_violation_rate": metrics.sla_violation_rate((frame.end, frame.deadline) for frame in mine),
    }


def _distribution(values: Sequence[float]) -> dict[str, float]:
    tails = {f"p{percent}": metrics.percentile(values, percent) for percent in (50, 90, 99)}
    return {"mean": sum(values) / len(values), **tails, "max": max(values)} if values else {}


def _prediction(layers: Sequence[LayerRun]) -> dict[str, float]:
    """Return how far expectations were off."""
    error = metrics.prediction_error
    idle = error([sum(layer.expected_idle) for layer in layers], [sum(layer.idle) for layer in layers])
    duration = sum(layer.end - layer.start for layer in layers) / len(layers)
    return {
        "start_error": error([layer.expected_start for layer in layers], [layer.start for layer in layers]),
        "idle_error": idle,
        "idle_error_percent": metrics.utilisation(idle, duration),
    }


def to_table(result: Mapping[str, Any]) -> Group:
    """Return the metrics as a table for a terminal."""
    unit = result["time_unit"]
    head = line(
        f"{result['scenario']} under {result['policy']} ({result['backend']}): {result['requests']} requests in "
        f"{_time(result['makespan'])} {unit}"
    )
    totals = [
        *(
            (name.replace("_", " "), _figure(result[name]))
            for name in ("antt", "stp", "fairness", "sla_violation_rate")
        ),
        *((name.replace("_", " "), f"{result[name]:.1f} %") for name in ("compute_utilisation", "access_utilisation")),
        ("preemptions", str(result["preemptions"])),
    ]
    if result["host_time"]:
        totals.append((f"models' steps on the CPU, {unit}", _time(result["host_time"])))
    heads = ("stream", ">requests", f">alone, {unit}", ">mean", ">p50", ">p90", ">p99", ">late")
    streams = [
        (
            stream["name"], str(stream["requests"]), _time(stream["alone"]),
            *(_time(stream["turnaround"].get(key, 0)) for key in ("mean", "p50", "p90", "p99")),
            f"{stream['sla_violation_rate']:.1%}",
        )
        for stream in result["streams"]
    ]  # fmt: skip
    tables = (table_of("", ("metric", ">value"), totals), table_of("", heads, streams))
    return Group(head, *_note_lines([result]), *(table.rich() for table in tables))


def comparison(results: Sequence[Mapping[str, Any]]) -> Group:
    """Return several policies side by side, for a terminal."""
    first = results[0]
    unit = first["time_unit"]
    head = line(f"{first['scenario']} ({first['backend']}): {first['requests']} requests, times in {unit}")
    heads = (
        "policy",
        *(f">{name}" for name in ["makespan", "ANTT", "STP", "fair", "late", "busy", "switches", "p50", "p99"]),
    )
    rows = [
        (
            one["policy"].rpartition(":")[2], _time(one["makespan"]), *(_figure(one[key]) for key in ("antt", "stp")),
            f"{one['fairness']:.3f}", f"{one['sla_violation_rate']:.1%}", f"{one['compute_utilisation']:.1f}%",
            str(one["preemptions"]), *(_time(one["turnaround"].get(key, 0)) for key in ("p50", "p99")),
        )
        for one in results
    ]  # fmt: skip
    return Group(head, *_note_lines(results), table_of("", heads, rows).rich())


def _note_lines(results: Sequence[Mapping[str, Any]]) -> list[Text]:
    return [line(f"note: {note}", "yellow") for note in dict.fromkeys(note for one in results for note in one["notes"])]


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def to_rows(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each policy and stream; what is of the run as a whole is in each of its rows."""
    return [
        {
            **{name: one[name] for name in ("scenario", "policy", "backend", "time_unit")},
            "stream": stream["name"],
            **{name: stream[name] for name in ("requests", "alone")},
            **{name: stream["turnaround"].get(name) for name in ("mean", "p50", "p90", "p99", "max")},
            "sla_violation_rate": stream["sla_violation_rate"],
            **{name: one[name] for name in _OF_THE_RUN},
        }
        for one in results
        for stream in one["streams"]
    ]


def _time(value: float) -> str:
    """Return a time as text, with one decimal where that is of interest."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}"
