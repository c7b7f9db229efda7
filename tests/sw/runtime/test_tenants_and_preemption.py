"""Preemption between tenants: engines are clear for the other, and exact for the one that comes back."""

from functools import partial

import numpy as np
import pytest

from hw.contract.isa import Op
from hw.contract.params import preset
from sw.driver import Device
from sw.runtime import Mechanism, Runtime
from tests.support.fake_soc import FakeSoc
from tests.support.preempt_images import smashing_image, walking_image

TINY = preset("tiny")
X = np.random.default_rng(0).uniform(-60, 60, (1, 8, 8)).astype(np.float32)
EXPECTED = ((np.clip(np.rint(X / np.float32(0.5)) + 3, -128, 127) - 3) * np.float32(0.5)).reshape(1, 64)


def served(soc, tenants, urgent, arrival, made=Device):
    """Requests of models of ``tenants`` side by side, and one of the tenant ``urgent`` that preempts them."""
    device = made(soc)
    runtime = Runtime(device, "round_robin", preemptive=True, rule=lambda situation: Mechanism.DUMP)
    long = [device.load(walking_image(TINY, jobs=6, name=f"walk{i}"), tenant=t) for i, t in enumerate(tenants)]
    other = device.load(smashing_image(TINY), tenant=urgent)
    requests = [runtime.submit(model, X) for model in long]
    requests.append(runtime.submit(other, X, priority=1, arrival=device.bus.cycle + arrival))
    runtime.run_until_done()
    for request in requests:
        np.testing.assert_array_equal(request.result()["out"], EXPECTED)
    assert not device.suspensions and all(request.preempted for request in requests[:-1])
    return device, requests


@pytest.mark.parametrize("arrival", range(1000, 13_000, 600))
def test_tenants_that_are_preempted_together_are_exact(arrival):
    """Jobs that clear an engine between them may be in the ring when it halts."""
    served(FakeSoc(TINY), "ab", "c", arrival)


@pytest.mark.parametrize("arrival", range(1000, 13_000, 1200))
def test_jobs_wait_for_what_clears_in_a_ring_of_one_place(arrival):
    served(FakeSoc(TINY), "ab", "c", arrival, partial(Device, ring_log2=0))


@pytest.mark.parametrize("arrival", range(1500, 9000, 500))
def test_private_memories_are_clear_for_the_other(arrival):
    soc, found, back = FakeSoc(TINY), [], []

    def look(engine, insn):
        memories = soc.machine.engines[engine]
        if insn.fields.get("fill") == 165 and not found:  # the urgent one begins
            found.extend(np.count_nonzero(m) for m in (memories.lv1, memories.act, memories.wgt, memories.acc))
        if found and insn.op is Op.ST2 and insn["dst_seg"] == 4:  # the other is back
            back.append(np.count_nonzero(memories.lv1 == 90))

    soc.inject = look
    served(soc, "a", "b", arrival)
    assert found == [0] * 4
    assert back and max(back) < 300


def test_one_tenant_pays_nothing_for_preemption():
    device, _ = served(FakeSoc(TINY), "aa", "a", 3000)
    assert device.scrubber.cleared == 1 + 3  # what was there before: of the engine, and of the windows of each model


def test_copies_of_a_suspended_task_are_cleared_when_given_back():
    soc, areas, device = FakeSoc(TINY), [], None

    def look(engine, insn):
        areas.extend(at for task in device.suspensions for at in task.areas)

    def made(*args, **options):
        nonlocal device
        device = Device(*args, **options)
        soc.inject = look
        return device

    served(soc, "a", "b", 3000, made)
    assert areas
    for at in set(areas):
        assert not device.dram.holds(at) and not any(soc.read_mem(at, 64))


def test_windows_that_lie_apart_are_cleared_one_by_one():
    """What lies between them is not the model's own."""
    soc = FakeSoc(TINY)
    device = Device(soc)
    first = device.load(walking_image(TINY, jobs=2), tenant="a")
    second = device.load(walking_image(TINY, jobs=2, name="other"), tenant="b")
    for model in (first, second):
        model.move_windows(0, TINY.lv2_bytes // 2)
    soc.machine.lv2[...] = 9
    device.begin(first, 10**6)
    device.begin(second, 10**6)
    low, high = second.windows()
    assert not soc.machine.lv2[low[0] : low[1]].any() and not soc.machine.lv2[high[0] : high[1]].any()
    assert (soc.machine.lv2[low[1] : high[0]] == 9).all()
