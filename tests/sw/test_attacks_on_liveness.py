"""What an image does to hold others up ends with its own request: on the RTL and on the fast model."""

import numpy as np
import pytest

from hw.contract.params import preset
from sim.backends import DEFAULT_BACKEND, MODEL
from sim.dram import DramFault
from sim.simulators import open_simulator
from sw.driver import Device, DeviceFault, DeviceTimeout, DriverError
from sw.driver.limits import AFTER_DEADLINE, BEGINNING, BODY
from sw.runtime import DeadlineMissed, Mechanism, Runtime, Session, State
from tests.support.attacking_images import Attack, circle, crumbs, everything_dirty
from tests.support.preempt_images import smashing_image, walking_image

TINY = preset("tiny")
TWO = TINY.replace(name="tiny2", engines=2)
X = np.random.default_rng(0).uniform(-60, 60, (1, 8, 8)).astype(np.float32)
EXPECTED = ((np.clip(np.rint(X / np.float32(0.5)) + 3, -128, 127) - 3) * np.float32(0.5)).reshape(1, 64)
MOST = 1 << 40  #: cycles that an image may claim
SHORT = 40_000  #: cycles that a body of a test may take
RTL = pytest.param(DEFAULT_BACKEND, id="rtl")
LONG_RTL = pytest.param(DEFAULT_BACKEND, id="rtl", marks=pytest.mark.slow)


def opened(backend, params=TINY):
    return Device(open_simulator(params, backend))


def exact(request):
    np.testing.assert_array_equal(request.result()["out"], EXPECTED)


def served(runtime, cycles):
    """Run until all requests have ended, within so many cycles."""
    bus = runtime.device.bus
    end = bus.cycle + cycles
    while not all(request.done() for request in runtime.requests):
        runtime.step()
        assert bus.cycle < end, [(r.number, r.state) for r in runtime.requests]
    runtime.run_until_done()


def usable(device, *models):
    """Nothing is left over, and other requests are exact."""
    runtime = Runtime(device)
    assert not device.outstanding and not device.suspensions and not device.transferring
    for request in [runtime.submit(model, X) for model in models]:
        exact(request)


# -- faults that name no job ---------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", [DramFault.SLVERR, DramFault.DECERR])
@pytest.mark.parametrize("backend", [MODEL, RTL])
def test_a_fault_of_all_memory_while_a_descriptor_is_fetched_has_an_owner(backend, kind):
    """The engine cannot say whose it is: it has not read it. That of a job which clears memories is tried again."""
    device = opened(backend)
    models = [device.load(walking_image(TINY, name=tenant), tenant=tenant) for tenant in "ab"]
    again = failed = 0
    for after in range(0, 1200, 75):
        runtime = Runtime(device, "fcfs")
        device.bus.set_dram_fault(kind, after=after, cycles=300)
        requests = [runtime.submit(model, X) for model in models]
        served(runtime, 10**6)
        device.bus.set_dram_fault(DramFault.NONE)
        for request in requests:
            again += request.repeated
            if request.state is State.DONE:
                exact(request)
            else:
                failed += 1
                assert isinstance(request.error, DeviceFault) and "unknown" not in str(request.error)
    assert again and failed
    usable(device, *models)
    device.bus.close()


@pytest.mark.parametrize("backend", [MODEL, RTL])
def test_clearing_that_always_fails_ends_the_request_it_is_for(backend):
    """Of two engines, with the memory of one ring broken: the other one goes on, and nobody tries for ever."""
    device = opened(backend, TWO)
    struck, other = [
        device.load(walking_image(TWO, name=name, engines=1), [engine], tenant=name)
        for engine, name in enumerate(("struck", "other"))
    ]
    ring, _ = device.engines[0].memory
    runtime = Runtime(device)
    device.bus.set_dram_fault(DramFault.SLVERR, ring, 64 * 256, cycles=10**6)
    requests = [runtime.submit(model, X) for model in (struck, other, other)]
    served(runtime, 10**6)
    assert isinstance(requests[0].error, DeviceFault)
    for request in requests[1:]:
        exact(request)
        assert not request.repeated
    device.bus.set_dram_fault(DramFault.NONE)
    usable(device, struck, other)
    device.bus.close()


# -- what never ends -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("claim", [0, MOST])
@pytest.mark.parametrize("backend", [MODEL, LONG_RTL])
def test_a_body_ends_by_the_limit_of_the_driver_whatever_it_claims(backend, claim):
    device = opened(backend)
    long, other = device.load(Attack("body", claim).image(TINY)), device.load(walking_image(TINY))
    runtime = Runtime(device, "round_robin")
    first, second = runtime.submit(long, X), runtime.submit(other, X)
    served(runtime, BODY + 10**5)
    assert isinstance(first.error, DeviceFault) and first.error.record.code.name == "CYCLE_LIMIT"
    exact(second)
    usable(device, other)
    device.bus.close()


@pytest.mark.parametrize("backend", [MODEL, LONG_RTL])
def test_a_prologue_ends_by_the_limit_of_the_driver(backend):
    """Also where another's job on another engine waits for one behind it: who delays it is to blame."""
    device = opened(backend, TWO)
    attack = device.load(Attack("prologue", MOST).image(TWO), [0], body_cycles=SHORT)
    other = device.load(walking_image(TWO, jobs=4), body_cycles=SHORT)
    runtime = Runtime(device, "round_robin")
    first, second = runtime.submit(attack, X), runtime.submit(other, X)
    served(runtime, BEGINNING + 10 * SHORT)
    assert isinstance(first.error, DeviceTimeout) and first.error.model is attack
    exact(second)
    usable(device, other)
    device.bus.close()


@pytest.mark.parametrize("backend", [MODEL, LONG_RTL])
def test_events_that_never_come_end_the_request_that_waits_for_them(backend):
    device = opened(backend, TWO)
    attack = device.load(circle(TWO), body_cycles=SHORT)
    others = [device.load(walking_image(TWO, jobs=4, name=f"m{i}"), body_cycles=SHORT) for i in range(2)]
    runtime = Runtime(device, "round_robin")
    requests = [runtime.submit(model, X) for model in (others[0], attack, others[1])]
    served(runtime, 3 * BEGINNING)
    assert isinstance(requests[1].error, DeviceTimeout) and requests[1].error.model is attack
    for request in (requests[0], requests[2]):
        exact(request)
    usable(device, *others)
    device.bus.close()


@pytest.mark.parametrize("backend", [MODEL, LONG_RTL])
def test_deadlines_of_bodies_that_hang_side_by_side_end_on_time(backend):
    device = opened(backend)
    models = [device.load(Attack("body", MOST, name=f"m{i}").image(TINY)) for i in range(2)]
    other = device.load(walking_image(TINY))
    runtime = Runtime(device, "round_robin")
    deadline = device.bus.cycle + 50_000
    late = [runtime.submit(model, X, deadline=deadline) for model in models]
    honest = runtime.submit(other, X)
    served(runtime, 2 * AFTER_DEADLINE)
    for request in late:
        assert isinstance(request.error, DeadlineMissed)
        assert request.ended - deadline < AFTER_DEADLINE + 10_000
    exact(honest)
    device.bus.close()


def test_a_session_waits_no_longer_than_jobs_may_take():
    device = opened(MODEL)
    model = device.load(Attack("prologue", MOST).image(TINY))
    begin = device.bus.cycle
    with pytest.raises(DeviceTimeout, match=r"'attack' .* keeps engine 0 for more than \d+ cycles"):
        Session(device, model).run(X)
    assert device.bus.cycle - begin < BEGINNING + BODY + 10**6
    usable(device, device.load(walking_image(TINY)))


# -- who cannot be suspended ---------------------------------------------------------------------------------
@pytest.mark.parametrize("backend", [MODEL, RTL])
def test_a_table_that_declares_all_of_lv1_and_accumulators_dirty_holds_nobody_up(backend):
    device = opened(backend)
    low, urgent = device.load(everything_dirty(TINY)), device.load(smashing_image(TINY))
    for arrival in range(1400, 4400, 300):
        runtime = Runtime(device, preemptive=True, rule=lambda situation: Mechanism.DUMP)
        now = device.bus.cycle
        first, second = runtime.submit(low, X), runtime.submit(urgent, X, priority=1, arrival=now + arrival)
        served(runtime, 10**6)
        exact(second)
        exact(first)
        usable(device, urgent)
    assert any(result.bytes >= TINY.lv1_bytes // 2 for each in device.operations for result in each.results)
    device.bus.close()


@pytest.mark.parametrize("backend", [MODEL, RTL])
def test_state_in_hundreds_of_pieces_is_dumped_and_comes_back(backend):
    """Also that of a model beside it; nobody fails or starts over."""
    device = opened(backend)
    attack, beside = device.load(crumbs(TINY, jobs=12)), device.load(walking_image(TINY, jobs=6))
    urgent = device.load(smashing_image(TINY))
    for arrival in range(1500, 7500, 700):
        runtime = Runtime(device, "fcfs", preemptive=True, rule=lambda situation: Mechanism.DUMP)
        now = device.bus.cycle
        low = [runtime.submit(model, X) for model in (attack, beside)]
        second = runtime.submit(urgent, X, priority=1, arrival=now + arrival)
        served(runtime, 10**6)
        for request in (second, *low):
            exact(request)
            assert not request.repeated
    jobs = {
        name: max(len(each.results) for each in device.operations if each.name == name) for name in ("dump", "restore")
    }
    assert min(jobs.values()) > 5  # of the supervisor, one after the other
    usable(device, attack, beside, urgent)
    device.bus.close()


@pytest.mark.parametrize("backend", [MODEL, RTL])
def test_an_image_that_leaves_no_dram_for_its_dump_starts_over(backend):
    device = opened(backend)
    image, urgent = walking_image(TINY, jobs=6), device.load(smashing_image(TINY))
    image.meta.segment_sizes[5] = device.dram.largest_block - 8 * 4096
    low = device.load(image)
    runtime = Runtime(device, preemptive=True, rule=lambda situation: Mechanism.DUMP)
    first = runtime.submit(low, X)
    second = runtime.submit(urgent, X, priority=1, arrival=device.bus.cycle + 2500)
    served(runtime, 10**6)
    exact(first)
    exact(second)
    assert second.ended < first.ended and first.repeated == 1 and not device.suspensions
    device.bus.close()


# -- who cannot be brought back ------------------------------------------------------------------------------
@pytest.mark.parametrize("backend", [MODEL, RTL])
def test_a_reload_list_that_never_ends_ends_the_one_that_has_it(backend):
    device = opened(backend)
    attack = device.load(Attack("reload", MOST, jobs=6).image(TINY), body_cycles=SHORT)
    beside, urgent = device.load(walking_image(TINY, jobs=6)), device.load(smashing_image(TINY))
    struck = 0
    for arrival in range(700, 1500, 100):
        runtime = Runtime(device, "fcfs", preemptive=True, rule=lambda situation: Mechanism.DUMP)
        now = device.bus.cycle
        low = [runtime.submit(model, X) for model in (attack, beside)]
        second = runtime.submit(urgent, X, priority=1, arrival=now + arrival)
        third = runtime.submit(urgent, X, priority=1, arrival=now + arrival + 30_000)
        served(runtime, 10**6)
        for request in (low[1], second, third):
            exact(request)
        assert not second.repeated and not third.repeated
        if low[0].state is State.FAILED:
            struck += 1
            assert isinstance(low[0].error, DriverError)
            assert "restore job of the driver, for 'attack'" in str(low[0].error)
        else:
            exact(low[0])
    assert struck
    usable(device, beside, urgent)
    device.bus.close()
