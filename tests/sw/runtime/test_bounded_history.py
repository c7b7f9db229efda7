"""What a run time remembers does not grow with the number of requests."""

import gc
import tracemalloc

import numpy as np
import pytest

from hw.contract.params import preset
from sw.driver import Device
from sw.runtime import Mechanism, Runtime
from sw.runtime.runtime import HISTORY
from tests.support.fake_soc import FakeSoc
from tests.support.images import copy_image
from tests.support.preempt_images import smashing_image, walking_image

TINY = preset("tiny")
X = np.full((1, 8, 8), 20, np.float32)


def held_after(serve, count):
    for _ in range(count):
        serve()
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.parametrize("preemptive", [pytest.param(False, marks=pytest.mark.slow), True])
def test_memory_is_flat(preemptive):
    device = Device(FakeSoc(TINY))
    runtime = Runtime(device, "fcfs", preemptive=preemptive, rule=lambda _: Mechanism.DUMP, history=20)
    long, urgent = device.load(walking_image(TINY, jobs=3)), device.load(smashing_image(TINY))
    short = device.load(copy_image(TINY))

    def serve():
        if preemptive:
            runtime.submit(long, X)
            runtime.submit(urgent, X, priority=1, arrival=device.bus.cycle + 3000, announced=True)
        runtime.submit(short, X)
        runtime.run_until_done()
        device.bus.resets.clear()  # the stand-in remembers them all

    tracemalloc.start()
    try:
        first = held_after(serve, 60 if preemptive else 200)  # until all that is bounded is full
        count = 120 if preemptive else 1000  # what others of this process leave is some thousand bytes in all
        grown = held_after(serve, count) - first
    finally:
        tracemalloc.stop()
    assert grown < 60 * count, f"{grown / count:.0f} bytes for each request"  # a list of requests: some 10,000 each
    assert len(runtime.requests) == len(runtime.groups) == len(runtime.measured.decision_seconds) == 20
    assert len(device.operations) == (20 if preemptive else 0)
    assert (runtime.switches > 20) == preemptive


def test_the_newest_are_remembered_and_all_if_wanted():
    device = Device(FakeSoc(TINY))
    model = device.load(copy_image(TINY))
    bounded, unbounded = Runtime(device), Runtime(device, history=None)
    for runtime in (bounded, unbounded):
        for _ in range(HISTORY + 5):
            runtime.submit(model, X).result()
    assert [request.number for request in bounded.requests] == list(range(5, HISTORY + 5))
    assert [request.number for request in unbounded.requests] == list(range(HISTORY + 5))
