"""Nothing of one tenant is left for another."""

import numpy as np
import pytest

from hw.contract.isa import LV2_SEGMENTS, Op
from hw.contract.job import Fault
from hw.contract.params import preset
from sw.driver import Device, SupervisorFault
from sw.runtime import Runtime, Session
from tests.support.fake_soc import FakeSoc
from tests.support.images import negating_image
from tests.support.preempt_images import walking_image

TINY = preset("tiny")
X = np.random.default_rng(0).uniform(-60, 60, (1, 8, 8)).astype(np.float32)


def leave_something(soc: FakeSoc) -> None:
    for memories in soc.machine.engines:
        for part in (memories.lv1, memories.act, memories.wgt, memories.acc):
            part[...] = 7
    soc.machine.lv2[...] = 9


def found_by(soc: FakeSoc, device: Device, model) -> list[int]:
    """Bytes and numbers that are not zero when the first instruction of ``model`` that reads something is about to
    run: LV1, LV0 and accumulators, and segment 6 of LV2."""
    found = []
    base, size = model.segments[6]

    def look(engine: int, insn) -> None:
        if insn.fields.get("hi") and not found:
            memories = soc.machine.engines[engine]
            parts = (memories.lv1, memories.act, memories.wgt, memories.acc, soc.machine.lv2[base : base + size])
            found.extend(int(np.count_nonzero(part)) for part in parts)

    soc.inject = look
    Session(device, model).run(X)
    return found


@pytest.mark.parametrize("tenants", [("a", "b"), (None, "b"), ("a", None)])
def test_what_another_tenant_left_is_cleared(tenants):
    soc = FakeSoc(TINY)
    device = Device(soc)
    first = device.load(walking_image(TINY, jobs=2), tenant=tenants[0])
    Session(device, first).run(X)
    device.unload(first)
    leave_something(soc)
    assert found_by(soc, device, device.load(walking_image(TINY, jobs=2), tenant=tenants[1])) == [0] * 5


def test_a_ring_of_one_place_has_no_room_for_a_clearing_job_beside_another():
    device = Device(FakeSoc(TINY), ring_log2=0)
    models = [device.load(walking_image(TINY, jobs=2, name=tenant), tenant=tenant) for tenant in "ab"]
    for model in models * 2:
        Session(device, model).run(X)
    runtime = Runtime(device)
    requests = [runtime.submit(model, X) for model in models * 2]
    turns = 0
    while not all(request.done() for request in requests):
        runtime.step()
        turns += 1
        assert turns < 100, "it waits for room that there never is"
    assert [request.error for request in requests] == [None] * 4


def test_one_tenant_finds_what_it_left():
    soc = FakeSoc(TINY)
    device = Device(soc)
    first = device.load(walking_image(TINY), tenant="a")
    Session(device, first).run(X)
    device.unload(first)
    leave_something(soc)
    assert 0 not in found_by(soc, device, device.load(walking_image(TINY), tenant="a"))


def test_an_engine_that_was_reset_is_cleared_again():
    soc = FakeSoc(TINY)
    device = Device(soc)
    model = device.load(walking_image(TINY), tenant="a")
    device.begin(model, 1000)
    soc.hang = True
    device.submit(model, [0], limit=1000)
    device.abort(model)
    soc.hang = False
    leave_something(soc)
    assert found_by(soc, device, model)[:4] == [0] * 4


def test_one_tenant_pays_nothing():
    device = Device(FakeSoc(TINY))
    models = [device.load(negating_image(TINY), tenant="a") for _ in range(2)]
    for model in models * 2:
        Session(device, model).run(np.zeros((1, 8, 8), np.float32))
    assert device.scrubber.cleared == 1 + len(models)  # what was there before: of the engine, and of each one's windows


def test_no_tenant_at_all_pays_nothing():
    device = Device(FakeSoc(TINY))
    free = device.dram.free_bytes
    Session(device, device.load(walking_image(TINY, jobs=2))).run(X)
    assert device.scrubber.cleared == 0 and free - device.dram.free_bytes < 1 << 20


def test_dram_is_clear_after_unload():
    soc = FakeSoc(TINY)
    device = Device(soc)
    model = device.load(walking_image(TINY, jobs=2))
    Session(device, model).run(X)
    segments = [entry for i, entry in enumerate(model.segments) if i not in LV2_SEGMENTS and entry[1]]
    assert any(any(soc.read_mem(base, size)) for base, size in segments)
    device.unload(model)
    assert not any(any(soc.read_mem(base, size)) for base, size in segments)


def fail_once(soc: FakeSoc, op: Op) -> None:
    """The next ``op`` that clears something faults."""

    def inject(engine: int, insn) -> Fault | None:
        if insn.op is not op or insn["hi"] or insn["fill"]:
            return None
        soc.inject = lambda engine, insn: None
        return Fault.BUS

    soc.inject = inject


@pytest.mark.parametrize("op", [Op.LD1, Op.ST1])
def test_a_fault_of_a_job_that_clears_harms_no_later_inference(op):
    soc = FakeSoc(TINY)
    device = Device(soc)
    first, second = (device.load(walking_image(TINY), tenant=tenant) for tenant in "ab")
    second.move_windows(first.segments[6][0], first.segments[7][0])
    session = Session(device, first)
    expected = session.run(X)[0]["out"]
    fail_once(soc, op)
    with pytest.raises(SupervisorFault, match="a job that clears memories for another tenant"):
        Session(device, second).run(X)
    for model in (second, first):
        np.testing.assert_array_equal(Session(device, model).run(X)[0]["out"], expected)


@pytest.mark.parametrize("op", [Op.LD1, Op.ST1])
def test_a_run_time_tries_again_what_clears(op):
    soc = FakeSoc(TINY)
    device = Device(soc)
    first, second = (device.load(walking_image(TINY), tenant=tenant) for tenant in "ab")
    second.move_windows(first.segments[6][0], first.segments[7][0])
    runtime = Runtime(device)
    expected = runtime.submit(first, X).result()["out"]
    fail_once(soc, op)
    np.testing.assert_array_equal(runtime.submit(second, X).result()["out"], expected)
    assert runtime.requests[-1].error is None and not device.scrubber.faulted


@pytest.mark.parametrize("tenant", [None, "b"])
@pytest.mark.parametrize("before", [None, "a", "b"])
def test_a_second_driver_of_a_bus_clears_what_tenants_of_the_first_left(before, tenant):
    """Also where both have the same name: names are a driver's own. The host's own models clear only after tenants."""
    soc = FakeSoc(TINY)
    first = Device(soc)
    model = first.load(walking_image(TINY, jobs=2), tenant=before)
    Session(first, model).run(X)
    first.unload(model)
    leave_something(soc)
    second = Device(soc)
    found = found_by(soc, second, second.load(walking_image(TINY, jobs=2), tenant=tenant))
    if (before, tenant) == (None, None):
        assert 0 not in found and second.scrubber.cleared == 0
    else:
        assert found == [0] * 5


def test_a_tenant_finds_nothing_that_was_there_before_any_driver():
    soc = FakeSoc(TINY)
    leave_something(soc)
    soc.write_mem(0, bytes([5]) * TINY.dram_bytes)
    device = Device(soc)
    model = device.load(walking_image(TINY, jobs=2), tenant="a")
    blocks = [(base, size) for i, (base, size) in enumerate(model.segments) if i not in {0, 1, *LV2_SEGMENTS} and size]
    assert blocks and not any(any(soc.read_mem(base, size)) for base, size in blocks)
    assert found_by(soc, device, model) == [0] * 5


def test_drivers_of_other_buses_inherit_nothing():
    soc = FakeSoc(TINY)
    Device(soc).load(walking_image(TINY), tenant="a")
    assert not Device(FakeSoc(TINY)).ownership.inherited
