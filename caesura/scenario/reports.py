"""Computes the metrics of the field from what happened in a scenario."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group
from rich.text import Text

from caesura.certificate.promise_report import promises_table
from caesura.scenario.device_report import device_notes, device_reports, device_tables
from caesura.scenario.model_report import model_reports, time_text
from caesura.scenario.outcome import Frame, LayerRun, Outcome
from caesura.scenario.schema import Scenario
from caesura.views import line, table_of
from sw.runtime import metrics
from sw.runtime.policies import PLACEMENT

_OF_THE_RUN = (
    "makespan", "antt", "stp", "fairness", "compute_utilisation", "access_utilisation", "preemptions", "host_time",
)  # fmt: skip


_SET_BACK = ("suspended", "killed", "started_over")


def report(
    scenario: Scenario, policy: str, backend: str, outcome: Outcome, alone: Mapping[str, float],
    of_lengths: Mapping[tuple[str, int], float] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return the metrics as plain data for JSON. ``alone``: turnaround of one request of each stream with nothing else
    on the machine, and ``of_lengths`` of one of each length.

    ``antt``, ``stp`` and ``fairness`` compare with that; a program in their definitions is a stream. Waits are those of
    operators whose inputs exist. Errors of prediction are mean absolute errors; those of idle times also as a share of
    the mean duration of a layer. Requests that were dropped have no turnaround, and made no progress.
    """
    frames, span = outcome.frames, outcome.makespan
    ended = [frame for frame in frames if frame.dropped is None]

    def single(frame: Frame) -> float:
        return (of_lengths or {}).get((frame.stream, frame.length or 0), alone[frame.stream])

    progress = {
        name: [single(f) / f.turnaround if f.turnaround else 1.0 for f in frames if f.stream == name] for name in alone
    }
    singles = [single(frame) for frame in ended]
    return {
        "scenario": scenario.name,
        "policy": policy,
        "backend": backend,
        "time_unit": scenario.time_unit,
        "notes": _notes(policy, outcome),
        "requests": len(frames),
        "makespan": span,
        "antt": metrics.antt([frame.turnaround for frame in ended], singles) if ended and all(singles) else None,
        "stp": metrics.stp(progress),
        "fairness": metrics.fairness(progress) if ended else None,
        "sla_violation_rate": metrics.sla_violation_rate((frame.end, frame.deadline) for frame in frames),
        "compute_utilisation": metrics.utilisation(sum(outcome.compute_busy), span * outcome.engines),
        "access_utilisation": metrics.utilisation(outcome.access_busy, span * outcome.device_count),
        "preemptions": outcome.preemptions,
        **{
            name: sum(getattr(run, name) for run in outcome.requests)
            for name in ("suspended", "killed", "started_over")
        },
        "dropped": len(frames) - len(ended),
        "checked": outcome.checked,
        "mismatches": outcome.mismatches,
        "switch_time": outcome.switch_time,
        "host_time": outcome.host_time,
        "turnaround": _distribution([frame.turnaround for frame in ended]),
        "wait": _distribution([layer.wait for layer in outcome.layers]),
        "passed_over_most": max((layer.passed_over for layer in outcome.layers), default=0),
        "prediction": _prediction(outcome.layers),
        "decision_us": _distribution([1e6 * seconds for seconds in outcome.decision_seconds]),
        "streams": [_stream(name, time, frames) for name, time in alone.items()],
        "models": [asdict(one) for one in model_reports(scenario, outcome)],
        "devices": [asdict(one) for one in device_reports(outcome)],
    }


def _notes(policy: str, outcome: Outcome) -> list[str]:
    notes = device_notes(outcome)
    if outcome.mismatches:
        told, more = outcome.mismatches[0], len(outcome.mismatches) - 1
        notes.append(f"outputs are NOT those of the models alone: {told}{f', and {more} more' if more else ''}")
    if policy in PLACEMENT and outcome.queues == 1:
        several = outcome.engines > outcome.device_count
        way_out = "set machine.placed = true, on several engines" if several else "raise machine.engines"
        notes.append(f"{policy} chooses among queues of engines, and here is one: this is fcfs; {way_out}")
    return notes


def _stream(name: str, alone: float, frames: Sequence[Frame]) -> dict[str, Any]:
    mine = [frame for frame in frames if frame.stream == name]
    return {
        "name": name,
        "requests": len(mine),
        "alone": alone,
        "dropped": sum(frame.dropped is not None for frame in mine),
        "turnaround": _distribution([frame.turnaround for frame in mine if frame.dropped is None]),
        "sla_violation_rate": metrics.sla_violation_rate((frame.end, frame.deadline) for frame in mine),
    }


def _distribution(values: Sequence[float]) -> dict[str, float]:
    tails = {f"p{percent}": metrics.percentile(values, percent) for percent in (50, 90, 99)}
    return {"mean": sum(values) / len(values), **tails, "max": max(values)} if values else {}


def _prediction(layers: Sequence[LayerRun]) -> dict[str, float]:
    """Return how far expectations were off."""
    error = metrics.prediction_error
    idle = error([sum(layer.expected_idle) for layer in layers], [sum(layer.idle) for layer in layers])
    duration = sum(layer.end - layer.start for layer in layers) / max(1, len(layers))
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
        f"{time_text(result['makespan'])} {unit}"
    )
    totals = [
        *(
            (name.replace("_", " "), _figure(result[name]))
            for name in ("antt", "stp", "fairness", "sla_violation_rate")
        ),
        *((name.replace("_", " "), f"{result[name]:.1f} %") for name in ("compute_utilisation", "access_utilisation")),
        ("preemptions", str(result["preemptions"])),
        *(
            (name.replace("_", " "), str(result[name]))
            for name in ("killed", "started_over", "dropped")
            if result[name]
        ),
    ]
    if result["host_time"]:
        totals.append((f"models' steps on the CPU, {unit}", time_text(result["host_time"])))
    heads = ("stream", ">requests", f">alone, {unit}", ">mean", ">p50", ">p90", ">p99", ">late")
    streams = [
        (
            stream["name"], str(stream["requests"]), time_text(stream["alone"]),
            *(time_text(stream["turnaround"].get(key)) for key in ("mean", "p50", "p90", "p99")),
            f"{stream['sla_violation_rate']:.1%}",
        )
        for stream in result["streams"]
    ]  # fmt: skip
    tables = (
        table_of("", ("metric", ">value"), totals), table_of("", heads, streams), *device_tables(result["devices"]),
    )  # fmt: skip
    promises = [promises_table(result["promises"]).rich()] if "promises" in result else []
    return Group(head, *_note_lines([result]), *(table.rich() for table in tables), *promises)


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
            one["policy"].rpartition(":")[2], time_text(one["makespan"]),
            *(_figure(one[key]) for key in ("antt", "stp", "fairness")),
            f"{one['sla_violation_rate']:.1%}", f"{one['compute_utilisation']:.1f}%",
            str(one["preemptions"]), *(time_text(one["turnaround"].get(key)) for key in ("p50", "p99")),
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
