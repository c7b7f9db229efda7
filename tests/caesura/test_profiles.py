"""Profiles of runs with known times: every cycle of every engine has one cause."""

import random

import pytest

from caesura.profiles import PARTS, profile
from caesura.views.run_report import losses, profile_table
from hw.contract.job import COUNTERS
from hw.contract.params import preset
from hw.image.image import Image, ImageMeta, JobInfo, LayerInfo
from sw.driver import JobResult

TINY = preset("tiny")  # one engine, 32 MACs
PAIR = TINY.replace(name="pair", engines=2)


def image_of(jobs, params=TINY, macs=(0, 0)):
    layers = [LayerInfo(f"layer{i}", "conv", [], f"y{i}", n) for i, n in enumerate(macs)]
    meta = ImageMeta("net", params.to_dict(), [0] * 8, [], [], [], layers, jobs, [])
    return Image(meta=meta, code=b"", weights=b"")


def ran(job, start, end, engine=0, prologue=(0, 0), **counters):
    values = dict.fromkeys((name for name, _ in COUNTERS), 0) | counters
    return JobResult(None, job, engine, *prologue, start, end, values)


def parts(layer):
    return {name: value for name, value in layer.parts.items() if value}


def test_body():
    waits = {"mac_waiting": 163, "mac_starved": 80, "mac_missing0": 20, "mac_missing1": 60, "mac_missing2": 3}
    result = ran(0, 1000, 1400, mac_busy=200, mac_active=150, mac_empty=30, ld0_busy=300, **waits)
    (layer,) = profile(image_of([JobInfo(0, 0, 0)], macs=(3200,)), [result]).layers
    assert parts(layer) == {
        "peak": 100, "array": 50, "overhead": 50, "empty": 30, "issue": 7,
        "dram": 80, "activations": 20, "accumulators": 60, "weights": 3,
    }  # fmt: skip
    assert (layer.cycles, layer.lost, layer.bound.cycles) == (400, 300, 100)
    assert layer.busiest == ("LD0", 0.75)


def test_what_vec_waited_for():
    jobs = [JobInfo(0, 0, 0), JobInfo(0, 1, 0)]
    results = [ran(0, 0, 500, vec_missing0=40, vec_missing3=90), ran(1, 0, 500, engine=1, vec_missing2=8)]
    (layer,) = profile(image_of(jobs, PAIR), results).layers
    assert layer.vec_waits == {"sums": 20, "own results": 0, "loads": 4, "stores": 45}
    assert layer.to_dict()["vec_waits"]["stores"] == 45


def test_gap_before_a_body():
    jobs = [JobInfo(0, 0, 0), JobInfo(1, 0, 0, prologue_pc=9)]
    results = [ran(0, 1000, 1400), ran(1, 1460, 1500, prologue=(900, 1450))]
    first, second = profile(image_of(jobs), results).layers
    assert first.parts["turnaround"] == 100  # the run began with the other layer's prologue
    assert (second.parts["prologue"], second.parts["turnaround"]) == (50, 10)
    assert (second.cycles, second.share) == (40, 100)  # cycles are the body's, as in every other table


def test_wait_for_another_engine():
    jobs = [JobInfo(0, 0, 0, signal=0), JobInfo(0, 1, 0, signal=0), JobInfo(1, 0, 0, waits=[(0, 2)])]
    results = [ran(0, 1000, 1400), ran(1, 1000, 1600, engine=1), ran(2, 1604, 1700)]
    first, second = profile(image_of(jobs, PAIR), results).layers
    assert second.parts["events"] == 200 / 2
    assert second.parts["turnaround"] == (4 + 100) / 2  # engine 1 had nothing to do during the last job
    assert (first.parts["empty"], first.bodies) == (0, 500)


def test_prologue_and_event_are_not_counted_twice():
    jobs = [JobInfo(0, 0, 0, signal=0), JobInfo(1, 0, 0, prologue_pc=9, waits=[(0, 1)])]
    results = [ran(0, 1000, 1400), ran(1, 1500, 1600, prologue=(1100, 1500))]
    _, second = profile(image_of(jobs), results).layers
    assert (second.parts["prologue"], second.parts["events"]) == (100, 0)


@pytest.mark.parametrize("seed", range(20))
def test_every_cycle_is_accounted_for(seed):
    rng = random.Random(seed)
    jobs, results, free = [], [], [1000, 1000]
    for number in range(rng.randint(1, 12)):
        engine, body = rng.randrange(2), rng.randint(1, 500)
        start = free[engine] + rng.randint(0, 100)
        busy = rng.randint(0, body)
        late = rng.randint(900, start)
        jobs.append(JobInfo(number % 2, engine, 0, waits=[(0, rng.randint(1, 3))], signal=0))
        results.append(
            ran(number, start, start + body, engine, (late - 50, late) if rng.random() < 0.5 else (0, 0),
                mac_busy=busy, mac_active=rng.randint(0, busy), mac_empty=rng.randint(0, body - busy),
                mac_starved=rng.randint(0, body - busy), mac_missing1=rng.randint(0, body - busy))
        )  # fmt: skip
        free[engine] = start + body
    found = profile(image_of(jobs, PAIR, macs=(640, 6400)), results)
    begin = min(job.prologue_start or job.start for job in results)
    assert found.total.cycles == pytest.approx(max(job.end for job in results) - begin)
    assert found.total.cycles == pytest.approx(sum(layer.share for layer in found.layers))
    for layer in found.layers:
        assert min(value for name, value in layer.parts.items() if name != "array") >= 0


def test_order_and_output():
    jobs = [JobInfo(0, 0, 0), JobInfo(1, 0, 0)]
    results = [ran(0, 1000, 1100, mac_busy=100, mac_active=100), ran(1, 1110, 1410, mac_empty=300)]
    found = profile(image_of(jobs, macs=(3200, 0)), results)
    assert [layer.name for layer in found.by_loss()] == ["layer1", "layer0"]
    assert losses(found.layers[1]) == "empty 97%, turnaround 3%"
    report = found.to_dict()
    assert [layer["name"] for layer in report["layers"]] == ["layer1", "layer0"]
    assert report["total"]["cycles"] == 410 and list(report["total"]["parts"]) == list(PARTS)
    assert report["layers"][1]["of_bound"] == 1.0 and report["layers"][0]["of_bound"] == 0.0
    profile_table(found)
