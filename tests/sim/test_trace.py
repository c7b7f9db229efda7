import json

import pytest

from sim.trace import Counter, Span, trace_events, write_trace

SPANS = [
    Span(("engine 1", "executor"), "conv2", 5000, 9000, "net"),
    Span(("engine 0", "loader"), "conv1: weights", 0, 500, "net", {"bytes": 64}),
    Span(("engine 0", "executor"), "conv1", 500, 4500, "net"),
]


def test_spans_become_complete_events_in_microseconds():
    events = [e for e in trace_events(SPANS)["traceEvents"] if e["ph"] == "X"]
    conv2 = next(e for e in events if e["name"] == "conv2")
    assert (conv2["ts"], conv2["dur"], conv2["cat"], conv2["args"]) == (5.0, 4.0, "net", {"cycles": 4000})
    assert next(e for e in events if "weights" in e["name"])["args"]["bytes"] == 64
    assert len(events) == len(SPANS)


def test_tracks_of_a_group_share_a_process():
    named = {(e["pid"], e["tid"]): e["args"]["name"] for e in trace_events(SPANS)["traceEvents"] if e["ph"] == "M"}
    assert named == {
        (1, 0): "engine 0", (1, 1): "executor", (1, 2): "loader", (2, 0): "engine 1", (2, 1): "executor",
    }  # fmt: skip


def test_a_span_that_ends_before_it_starts_is_refused():
    with pytest.raises(ValueError, match="'x' on a/b ends at 1, before 2"):
        trace_events([Span(("a", "b"), "x", 2, 1)])


def test_the_file_is_json(tmp_path):
    write_trace(tmp_path / "t.json", SPANS)
    assert json.loads((tmp_path / "t.json").read_text()) == trace_events(SPANS)


def test_counters_stand_in_the_group_of_their_spans():
    track = "engine 0", "MAC"
    counters = [Counter(track, 4500, {"active": 0.0}), Counter(track, 500, {"active": 75.0})]
    events = trace_events(SPANS, counters)["traceEvents"]
    found = [e for e in events if e["ph"] == "C"]
    assert [(e["name"], e["ts"], e["args"]) for e in found] == [
        ("MAC", 0.5, {"active": 75.0}), ("MAC", 4.5, {"active": 0.0}),
    ]  # fmt: skip
    assert {e["pid"] for e in found} == {1}
    (alone,) = [e for e in trace_events([], counters[:1])["traceEvents"] if e["name"] == "process_name"]
    assert alone["args"]["name"] == "engine 0"
