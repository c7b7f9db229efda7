"""What the driver makes of interrupts that are lost and completions that are damaged."""

import numpy as np
import pytest

from benchmarks.trust.faulty_bus import FaultyBus
from hw.contract.job import COMPLETION, Fault
from hw.contract.params import DRAM_TIMING, preset
from sim.model.bus import ModelBus
from sw.driver import Device, DeviceFault
from sw.driver.limits import BODY, FACTOR, MARGIN, body_limits
from sw.driver.queues import interrupt_wait
from sw.runtime import Runtime, Session
from tests.support.preempt_images import walking_image

TINY = preset("tiny")
X = np.random.default_rng(0).uniform(-60, 60, (1, 8, 8)).astype(np.float32)


@pytest.fixture
def bus():
    return FaultyBus(ModelBus(TINY))


@pytest.mark.parametrize("look_after", [2000, interrupt_wait.LOOK_AFTER])
def test_a_lost_interrupt_costs_time_and_not_the_result(bus, monkeypatch, look_after):
    monkeypatch.setattr(interrupt_wait, "LOOK_AFTER", look_after)
    device = Device(bus)
    model = device.load(walking_image(TINY, jobs=3))
    expected, _ = Session(device, model).run(X)
    runtime = Runtime(device, "fcfs")
    bus.lose_interrupts(1)
    result = runtime.submit(model, X).result()
    assert all(np.array_equal(value, expected[name]) for name, value in result.items())


@pytest.mark.parametrize("byte", [0, 3, 4, 8])
def test_a_damaged_completion_is_a_fault_of_the_job_that_it_was_of(bus, byte):
    device = Device(bus)
    struck, other = (device.load(walking_image(TINY, jobs=2, name=name)) for name in ("struck", "other"))
    expected, _ = Session(device, other).run(X)
    runtime = Runtime(device, "fcfs")
    _, completions = device.engines[0].memory
    slot = device.engines[0].place % device.engines[0].capacity
    bus.damage_next_read(completions + slot * COMPLETION.size + byte, 0x40)
    requests = [runtime.submit(model, X) for model in (struck, other)]
    error = requests[0].exception()
    assert isinstance(error, DeviceFault) and error.record.code == Fault.BUS and "'struck'" in str(error)
    result = requests[1].result()
    assert all(np.array_equal(value, expected[name]) for name, value in result.items())
    runtime.submit(struck, X).result()


def test_cycle_limits_follow_from_the_bounds_of_the_image():
    image = walking_image(TINY, jobs=2)
    assert body_limits(image, TINY) == [BODY, BODY]  # it has none
    for job in image.meta.jobs:
        job.worst_cycles = 1000
    for point in image.meta.cancel_points:
        point.worst_interval = 10
    points = [sum(point.job == job for point in image.meta.cancel_points) for job in range(2)]
    assert body_limits(image, TINY) == [FACTOR * (1000 + 10 * n) + MARGIN for n in points]
    for name in DRAM_TIMING:
        slower = TINY.replace(**{name: 50})
        assert body_limits(image, slower) == [BODY, BODY], name


def test_limits_of_each_job_hold_instead():
    image = walking_image(TINY, jobs=2)
    image.meta.jobs[0].worst_cycles = 1000
    assert body_limits(image, TINY, [7, 1 << 40]) == [7, (1 << 32) - 1]
    with pytest.raises(ValueError, match=r"body_cycles has 3 limits, and image 'walk' has 2 jobs; give one for each"):
        body_limits(image, TINY, [7, 8, 9])


def test_jobs_get_them(bus):
    image = walking_image(TINY, jobs=2)
    for job in image.meta.jobs:
        job.worst_cycles = 1000
    device = Device(bus)
    model = device.load(image)
    device.begin(model, 1000)
    device.submit(model, [0], limit=1000)
    device.submit(model, [1], limit=1000, cycle_limit=7)
    limits = [job.work.cycle_limit for job in device.engines[0].unfinished]
    assert limits[0] > 4 * 1000 and limits[1] == 7
