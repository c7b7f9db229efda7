"""Writes timelines as Chrome trace JSON, which https://ui.perfetto.dev and chrome://tracing show.

A timeline is a list of spans on named tracks, and of counters. Nothing here knows what a span stands for.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sim.visible_text import visible

CYCLES_PER_US = 1000  #: nominal 1 GHz: a trace viewer wants time, the simulators count cycles


@dataclass(frozen=True)
class Span:
    """Describes something that lasted from cycle ``start`` to cycle ``end`` on ``track``, a group and a line in it.

    ``kind`` chooses the colour: spans of one kind look alike. ``details`` are shown when the span is selected.
    """

    track: tuple[str, str]
    name: str
    start: int
    end: int
    kind: str = ""
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Counter:
    """Says what ``values`` are from ``cycle`` on, until the next record of the same ``track``: a group and a name in
    it. A viewer stacks them."""

    track: tuple[str, str]
    cycle: int
    values: dict[str, float]


def trace_events(spans: Iterable[Span], counters: Iterable[Counter] = ()) -> dict[str, Any]:
    """Return the trace as one JSON object; raises ValueError for a span that ends before it starts."""
    spans = sorted(spans, key=lambda span: (span.start, -span.end))
    counters = sorted(counters, key=lambda counter: counter.cycle)
    groups = {each.track[0] for each in spans} | {each.track[0] for each in counters}
    tracks = list(dict.fromkeys(span.track for span in spans))
    events: list[dict[str, Any]] = []
    for pid, group in enumerate(sorted(groups), 1):
        events.append(_name("process_name", pid, 0, group))
        for tid, track in enumerate(sorted(track for track in tracks if track[0] == group), 1):
            events.append(_name("thread_name", pid, tid, track[1]))
            events += [_event(span, pid, tid) for span in spans if span.track == track]
        events += [_counter(counter, pid) for counter in counters if counter.track[0] == group]
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def write_trace(path: str | Path, spans: Iterable[Span], counters: Iterable[Counter] = ()) -> None:
    """Write the trace of ``spans`` and ``counters`` to ``path``."""
    Path(path).write_text(json.dumps(_shown(trace_events(spans, counters))))


def _shown(value: Any) -> Any:
    """Return ``value`` with all text as a viewer should show it."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible(key): _shown(each) for key, each in value.items()}
    return [_shown(each) for each in value] if isinstance(value, list) else value


def _name(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}


def _counter(counter: Counter, pid: int) -> dict[str, Any]:
    ts = counter.cycle / CYCLES_PER_US
    return {"name": counter.track[1], "ph": "C", "ts": ts, "pid": pid, "args": counter.values}


def _event(span: Span, pid: int, tid: int) -> dict[str, Any]:
    if span.end < span.start:
        raise ValueError(f"span {span.name!r} on {'/'.join(span.track)} ends at {span.end}, before {span.start}")
    return {
        "name": span.name,
        "cat": span.kind or span.name,
        "ph": "X",
        "ts": span.start / CYCLES_PER_US,
        "dur": (span.end - span.start) / CYCLES_PER_US,
        "pid": pid,
        "tid": tid,
        "args": {"cycles": span.end - span.start, **span.details},
    }
