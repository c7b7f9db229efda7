"""``caesura run --trace --units``: a line for each unit, the same on the model and on the RTL."""

import json
from collections import defaultdict

import pytest

from tests.system.command import caesura_command

DIGITS = "examples/digits/digits.onnx"


def lanes(path):
    """Spans by name of the line, in order."""
    events = json.loads(path.read_text())["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    found = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            found[names[event["pid"], event["tid"]]].append(event)
    return found


@pytest.mark.parametrize("backend", ["model", "native"])
def test_units_have_lines(tmp_path, backend):
    file = tmp_path / f"{backend}.json"
    code, out, _ = caesura_command("run", DIGITS, "--backend", backend, "--trace", str(file), "--units", "--json")
    assert code == 0
    found, report = lanes(file), json.loads(out)
    assert {"executor", "LD1", "LD0", "MAC", "VEC", "ST1"} <= set(found)
    bodies = found["executor"]
    first, last = min(e["ts"] for e in bodies), max(e["ts"] + e["dur"] for e in bodies)
    counters = [layer["counters"] for layer in report["layers"]]
    for unit in ("MAC", "VEC", "LD1", "ST1", "LD0"):
        spans = found[unit]
        assert all(first <= e["ts"] and e["ts"] + e["dur"] <= last + 0.001 for e in spans)
        assert {e["name"] for e in spans} <= {e["name"] for e in bodies}
    # MAC takes one instruction at a time but for the few cycles in which it accepts the next.
    busy = sum(counter["mac_busy"] for counter in counters)
    assert 0.9 * busy < sum(e["args"]["cycles"] for e in found["MAC"]) < 1.3 * busy


def test_both_lay_over_each_other(tmp_path):
    found = {}
    for backend in ("model", "native"):
        file = tmp_path / f"{backend}.json"
        assert caesura_command("run", DIGITS, "--backend", backend, "--trace", str(file), "--units")[0] == 0
        found[backend] = lanes(file)
    for unit in ("MAC", "VEC", "ST1"):
        model, rtl = (sorted(found[backend][unit], key=lambda e: e["ts"]) for backend in ("model", "native"))
        assert [e["name"] for e in model] == [e["name"] for e in rtl]
        begin = model[0]["ts"] - rtl[0]["ts"]
        assert all(abs(a["ts"] - b["ts"] - begin) < 0.3 for a, b in zip(model, rtl, strict=True))


def test_lines_without_a_timeline_are_refused():
    code, _, err = caesura_command("run", DIGITS, "--backend", "model", "--units")
    assert code == 2 and "--trace" in err


def test_a_backend_that_cannot_tell(tmp_path):
    code, _, err = caesura_command(
        "run", DIGITS, "--backend", "pysim", "--trace", str(tmp_path / "t.json"), "--units"
    )  # fmt: skip
    assert code == 2 and "use native, cxxrtl or model" in err


def test_the_fast_model_shows_its_units_unasked(tmp_path):
    trace = tmp_path / "trace.json"
    code, _, err = caesura_command("run", DIGITS, "--backend", "model", "--trace", str(trace))
    assert code == 0, err
    assert {"LD2", "LD1", "LD0", "MAC", "VEC", "ST1", "ST2"} <= set(lanes(trace))
