"""``caesura run --trace``: the host, its interrupts, and the hardware's counters beside the engines."""

import json
from itertools import pairwise

import numpy as np
import onnx
import pytest

from caesura.views.timeline import job_counters
from sim.trace import CYCLES_PER_US
from tests.support.onnx_models import Net
from tests.system.command import run_report


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    """Report and events of two inferences of a model with a step on the CPU between convolutions."""
    folder = tmp_path_factory.mktemp("trace")
    net = Net()
    x = net.dq(net.input((1, 4, 8, 8)), 0.031)
    x = net.dq(net.q(net.conv(x, 0.031, (8, 4, 3, 3)), 0.9), 0.9)
    x = net.node("CumSum", [x, net.const(2, np.int64)], name="running")
    x = net.dq(net.q(x, 3.0), 3.0)
    onnx.save(net.model(net.q(net.conv(x, 3.0, (8, 8, 3, 3)), 90.0)), folder / "m.onnx")
    report = run_report(
        folder / "m.onnx", "--fallback", "--backend", "model", "--check", "--samples", 2, "--trace", folder / "t.json"
    )
    return report, json.loads((folder / "t.json").read_text())["traceEvents"]


def lane(events, group, name):
    (pid,) = {e["pid"] for e in events if e["name"] == "process_name" and e["args"]["name"] == group}
    (tid,) = {
        e["tid"] for e in events if e["name"] == "thread_name" and e["pid"] == pid and e["args"]["name"] == name
    }  # fmt: skip
    return [e for e in events if e["ph"] == "X" and (e["pid"], e["tid"]) == (pid, tid)]


def test_steps_on_the_cpu_with_their_cycles(traced):
    report, events = traced
    steps = lane(events, "host", "CPU")
    assert [step["args"]["cycles"] for step in steps] == [report["host_cycles"]] * 2
    assert all("CumSum" in step["args"]["reason"] for step in steps)
    inferences = lane(events, "host", "inferences")
    assert [each["args"]["cycles"] for each in inferences] == [one["latency_cycles"] for one in report["samples"]]


def test_interrupts_follow_the_jobs_that_raise_them(traced):
    _, events = traced
    interrupts = lane(events, "host", "interrupts")
    served = [e for e in interrupts if e["name"] == "engine 0: completion"]
    ends = sorted(e["ts"] + e["dur"] for e in lane(events, "engine 0", "executor"))
    assert len(served) >= 4  # each inference has two steps on the accelerator
    assert all(any(end <= e["ts"] < end + 5 for end in ends) for e in served)
    last = lane(events, "host", "inferences")[1]
    assert all(e["ts"] + e["dur"] <= last["ts"] + last["dur"] for e in interrupts)  # none of the check's runs
    ordered = sorted(interrupts, key=lambda e: e["ts"])
    assert all(a["ts"] + a["dur"] <= b["ts"] + 1e-6 for a, b in pairwise(ordered))


def test_counters_add_up_to_those_of_the_report(traced):
    report, events = traced
    counters = [e for e in events if e["ph"] == "C"]
    last = lane(events, "host", "inferences")[1]["ts"]
    first = [e for e in counters if e["ts"] < last]

    def total(name, value):
        mine = [e for e in first if e["name"] == name]
        return sum((b["ts"] - a["ts"]) * CYCLES_PER_US * a["args"][value] for a, b in pairwise(mine))

    found = [layer["counters"] for layer in report["layers"] if layer["counters"]]
    for name, value, counter, scale in (
        ("MAC, % of cycles", "active", "mac_active", 100),
        ("MAC, % of cycles", "waiting", "mac_waiting", 100),
        ("DRAM, bytes per cycle", "read", "ld2_bytes", 1),
        ("DRAM, bytes per cycle", "written", "st2_bytes", 1),
        ("DRAM ahead, bytes per cycle", "read", "prologue_bytes", 1),
    ):
        expected = sum(one[counter] for one in found)
        assert total(name, value) / scale == pytest.approx(expected, rel=0.01, abs=1), (name, value)
    assert sum(one["mac_active"] for one in found) > 0
    assert all(sum(e["args"].values()) <= 100.001 for e in counters if e["name"].startswith("MAC"))


def test_no_jobs_have_no_counters():
    assert job_counters([]) == []
