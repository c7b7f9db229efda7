"""Traces of preemptive runs, on a fake SoC."""

import itertools
from collections import defaultdict

import numpy as np
import pytest

from caesura.views.timeline import preemptive_spans
from hw.contract.params import preset
from sim.trace import trace_events
from sw.driver import Device
from sw.runtime.preemption_mechanism import Mechanism
from sw.runtime.runtime import Runtime
from tests.support.fake_soc import FakeSoc
from tests.support.preempt_images import smashing_image, walking_image

TINY = preset("tiny")
X = np.random.default_rng(0).uniform(-60, 60, (1, 8, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def runtime():
    """A long request that was suspended once, and an urgent one."""
    device = Device(FakeSoc(TINY))
    long, urgent = device.load(walking_image(TINY, jobs=6)), device.load(smashing_image(TINY))
    runtime = Runtime(device, "fcfs", preemptive=True, rule=lambda situation: Mechanism.DUMP)
    runtime.submit(long, X)
    runtime.submit(urgent, X, priority=1, arrival=device.bus.cycle + 4500)
    runtime.run_until_done()
    assert [request.error for request in runtime.requests] == [None, None]
    return runtime


@pytest.fixture(scope="module")
def spans(runtime):
    return preemptive_spans(runtime.requests, runtime.spans())


def on(spans, *track):
    return sorted((span for span in spans if span.track == track), key=lambda span: (span.start, -span.end))


def test_every_job_dump_and_restore_is_on_the_executor_and_none_overlap(runtime, spans):
    executor = on(spans, "engine 0", "executor")
    jobs = sum(len(request.results) for request in runtime.requests)
    moves = [span for span in runtime.spans() if span.kind in ("dump", "restore")]
    assert moves and len(executor) == jobs + len(moves) + 1  # the part before the suspension
    for before, after in itertools.pairwise(executor):
        assert before.start < before.end <= after.start
    names = [span.name for span in executor]
    assert sum(name.endswith("(suspended)") for name in names) == 1
    long = runtime.requests[0].model.name
    assert names.index(f"dump: {long}") < names.index(f"restore: {long}")  # whose data they are, not for whom they go


def test_the_suspended_part_ends_at_the_halt_and_the_rest_follows_the_restore(runtime, spans):
    executor = on(spans, "engine 0", "executor")
    (part,) = [span for span in executor if span.name.endswith("(suspended)")]
    (rest,) = [span for span in executor if span.name.endswith("(resumed)")]
    (drain,) = [span for span in runtime.spans() if span.kind == "drain"]
    assert part.end == drain.end
    assert part.details["job"] == rest.details["job"]
    assert part.name.split(" (")[0] == rest.name.split(" (")[0]
    assert rest.start >= max(span.end for span in executor if span.kind == "restore")


def test_dumps_carry_their_bytes(runtime, spans):
    for kind in ("dump", "restore"):
        shown = [span.details["bytes"] for span in on(spans, "engine 0", "executor") if span.kind == kind]
        assert shown == [span.bytes for span in runtime.spans() if span.kind == kind]
        assert sum(shown) > 0


def test_host_pauses_until_the_engine_is_empty_then_resumes(spans):
    pause, drain, resume = on(spans, "host", "run time")
    assert pause.name.startswith("pause: ") and drain.name.startswith("drain engine 0: ")
    assert resume.name.startswith("resume: ")
    assert pause.start == drain.start < drain.end <= pause.end < resume.start


def test_a_line_per_request_shows_waiting_running_and_suspended(runtime, spans):
    first, second = runtime.requests
    lines = [on(spans, "requests", f"{r.number:03} {r.model.name}") for r in runtime.requests]
    shown = [[span.name.split(": ") for span in line] for line in lines]
    names = [request.model.name for request in runtime.requests]
    assert shown[0] == [["running", names[0]], ["suspended", names[0]], ["running", names[0]]]
    assert shown[1] == [["waiting", names[1]], ["running", names[1]]]
    assert lines[1][0].start == second.arrival
    for line in lines:
        for before, after in itertools.pairwise(line):
            assert before.end == after.start
    suspended, urgent = lines[0][1], lines[1][1]
    assert suspended.start <= urgent.start < urgent.end <= suspended.end
    assert lines[0][-1].end == max(result.end for result in first.results)


def test_suspended_tenants_are_told_by_name():
    device = Device(FakeSoc(TINY))
    images = walking_image(TINY, jobs=6), smashing_image(TINY)
    models = [device.load(image, tenant=name) for image, name in zip(images, ("ann", "bob"), strict=True)]
    runtime = Runtime(device, "fcfs", preemptive=True, rule=lambda situation: Mechanism.DUMP)
    for priority, model in enumerate(models):
        runtime.submit(model, X, priority=priority, arrival=device.bus.cycle + 4500 * priority)
    runtime.run_until_done()
    names = {span.name for span in preemptive_spans(runtime.requests, runtime.spans())}
    long = f"{models[0].name} (ann)"
    assert {f"dump: {long}", f"restore: {long}", f"suspended: {long}", f"pause: {long}", f"resume: {long}"} <= names


def test_cycles_of_each_kind_are_separate(runtime):
    cycles = defaultdict(list)
    for span in runtime.spans():
        cycles[span.kind].append(span.cycles)
    assert set(cycles) == {"pause", "drain", "dump", "run", "restore", "resume"}
    assert len(cycles["run"]) == 3
    assert cycles["drain"][0] < cycles["pause"][0]
    assert all(value > 0 for values in cycles.values() for value in values)


def test_the_spans_make_a_trace(spans):
    events = trace_events(spans)["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == len(spans)


def test_a_run_without_preemption_has_no_host_line():
    device = Device(FakeSoc(TINY))
    runtime = Runtime(device, "fcfs", preemptive=True)
    runtime.submit(device.load(walking_image(TINY, jobs=2)), X)
    runtime.run_until_done()
    spans = preemptive_spans(runtime.requests, runtime.spans())
    assert {span.track[0] for span in spans} == {"engine 0", "requests"}
    assert not any("suspended" in span.name or "resumed" in span.name for span in spans)
