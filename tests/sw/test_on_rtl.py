"""The driver on the real RTL: what the fake SoC assumes about rings, faults and resets holds there too."""

import numpy as np
import pytest

from hw.contract.bus import HostCosts
from hw.contract.params import preset
from hw.contract.regs import EngineState
from sim.backends import DEFAULT_BACKEND, MODEL
from sim.simulators import open_simulator
from sw.driver import Device, DeviceFault, DeviceTimeout
from sw.runtime import Session
from tests.support.images import SIZE, copy_image

TINY = preset("tiny")
X = np.random.default_rng(0).uniform(-60, 60, (1, 8, 8)).astype(np.float32)
EXPECTED = ((np.clip(np.rint(X / np.float32(0.5)) + 3, -128, 127) - 3) * np.float32(0.5)).reshape(1, 64)


@pytest.fixture(scope="module", params=[DEFAULT_BACKEND, MODEL])
def device(request):
    bus = open_simulator(TINY, request.param, costs=HostCosts.free())
    yield Device(bus, ring_log2=1)
    bus.close()


@pytest.fixture(scope="module")
def good(device):
    return Session(device, device.load(copy_image(TINY, engines=3)), limit=20_000)


def check(session):
    outputs, stats = session.run(X)
    np.testing.assert_array_equal(outputs["out"], EXPECTED)
    return stats


def test_jobs_events_and_counters(device, good):
    for _ in range(2):
        stats = check(good)
        assert [job.counters["ld2_bytes"] for job in stats.jobs] == [SIZE] * 3
        assert all(job.start < job.end for job in stats.jobs)
        assert stats.jobs[-1].end <= device.cycle_count() <= device.bus.cycle


@pytest.mark.parametrize(
    "body, message",
    [
        ("LD2 src_seg=2 dst_seg=6 src=32 len=64 hi=64 hi1=1 hi0=1\nEND", r"LIMIT fault.*LD2 at PC 0, address 0x40"),
        ("LD2 src_seg=2 dst_seg=6 len=64 hi=64 hi1=1 hi0=1 wait=3\nEND", "SEMAPHORE_UNDERFLOW.*semaphores.* 0x8"),
        ("LD2 src_seg=2 dst_seg=6 len=64 hi=64 hi1=1 hi0=1 signal=4\nEND", "SEMAPHORE_RESIDUE fault"),
    ],
    ids=["limit", "underflow", "residue"],
)
def test_faults_are_named_and_the_device_stays_usable(device, good, body, message):
    model = device.load(copy_image(TINY, body))
    session = Session(device, model, limit=20_000)
    with pytest.raises(DeviceFault, match=message):
        session.run(X)
    check(good)
    device.unload(model)


def test_timeout_and_reset_in_mid_flight(device, good):
    model = device.load(copy_image(TINY, engines=3))
    with pytest.raises(DeviceTimeout, match="engine 0: "):
        Session(device, model, limit=130).run(X)
    assert device.engines[0].state() == EngineState.IDLE
    device.unload(model)
    check(good)


def test_cycle_limit(device, good):
    device.begin(good.model, 10_000)
    ids = device.submit(good.model, [0], limit=10_000, cycle_limit=20)
    with pytest.raises(DeviceFault, match="CYCLE_LIMIT"):
        device.collect(ids, 10_000)
    device.abort(good.model)
    check(good)
