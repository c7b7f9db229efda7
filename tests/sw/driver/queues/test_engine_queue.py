import pytest

from hw.contract.bus import HostCosts
from hw.contract.job import COMPLETION, JOB, Fault, JobFlag
from hw.contract.params import preset
from sw.driver.device import Device
from sw.driver.errors import DriverError
from sw.driver.queues.descriptor import Descriptor
from sw.driver.queues.job import DeviceJob, JobState
from tests.support.fake_soc import FakeSoc


def queue(soc, ring_log2=2):
    device = Device(soc(preset("tiny")), ring_log2=ring_log2)
    return device, device.engines[0]


def stored(device, slot):
    base = device.engines[0].register("RING_BASE")
    return JOB.unpack(device.bus.read_mem(base + slot * JOB.size, JOB.size))


def job(number=0):
    return DeviceJob(number, 0, Descriptor(((0, 0),) * 8, 0, 0), party=None)


def test_prologues_wait_for_a_barrier(soc):
    device, q = queue(soc, 3)
    q.add(job())
    q.add(job(), barrier=True, hold=True)
    for after in (0, 1, 2, 9):
        q.add(job(), window_after=after, hold=True)
    assert [stored(device, i)["window_after"] for i in range(6)] == [0, 0, 1, 1, 2, 4]


def test_what_the_ring_does_not_hold_follows_later():
    device, q = queue(FakeSoc, 1)
    jobs = [job(i) for i in range(5)]
    for each in jobs:
        q.add(each, hold=True)
    assert q.outstanding == 5 and q.free == 0
    assert [stored(device, i)["job_id"] for i in range(2)] == [0, 1]
    assert stored(device, 1)["flags"] == JobFlag.INTERRUPT
    assert q.unfinished == q.jobs == jobs and [each.place for each in jobs] == [0, 1, 2, 3, 4]
    assert [each.state for each in jobs] == [JobState.QUEUED] * 2 + [JobState.HELD] * 3
    with pytest.raises(DriverError, match=r"engine 0: the job ring is full \(2 entries\)"):
        q.add(job())
    device.bus._regs["E0.CPL_TAIL"] = 1
    device.bus.write_mem(device.bus._regs["E0.CPL_BASE"], COMPLETION.pack(job_id=0))
    q.take_completions()
    assert stored(device, 0)["job_id"] == 2 and q.outstanding == 4
    assert jobs[2].state is JobState.QUEUED and jobs[0] not in q.jobs


def test_an_emptied_engine_needs_three_accesses(soc):
    device, q = queue(soc)
    q.add(job())
    before = device.bus.cycle
    q.take_off()
    assert q.outstanding == 0
    assert device.bus.cycle - before == 3 * device.bus.costs.register_access


def retired(device, number, place, **members):
    at = device.bus._regs["E0.CPL_BASE"] + place % 4 * COMPLETION.size
    device.bus.write_mem(at, COMPLETION.pack(job_id=number, index=place, **members), charge=False)
    device.bus._regs["E0.CPL_TAIL"] = place + 1


@pytest.mark.parametrize(
    ("members", "since"),
    [
        ({"end": 6_000}, 6_000),  # however late it is taken
        ({"end": 1_000}, 5_000),  # before the next one was there
        ({"end": 90_000}, 20_000),  # damaged: it says what is still to come
        ({"end": 6_000, "status": int(Fault.BUS)}, 20_000),
    ],
)
def test_the_clock_of_a_job_begins_when_the_one_before_has_ended(members, since):
    device, q = queue(FakeSoc)
    device.bus.hang, device.bus.costs = True, HostCosts.free()
    q.add(job(0))
    device.bus.advance(5_000 - device.bus.cycle)
    q.add(job(1))
    device.bus.advance(20_000 - device.bus.cycle)
    retired(device, 0, 0, **members)
    q.take_completions()
    assert q.oldest.id == 1 and q.clock == since


def test_the_clock_does_not_begin_before_a_pause_was_withdrawn():
    device, q = queue(FakeSoc)
    device.bus.hang, device.bus.costs = True, HostCosts.free()
    q.add(job(0)), q.add(job(1))
    device.bus.advance(9_000)
    q.pause()
    assert q.clock is None
    q.go_on()
    withdrawn = device.bus.cycle
    device.bus.advance(9_000)
    retired(device, 0, 0, end=withdrawn - 100)
    q.take_completions()
    assert q.clock == withdrawn


def test_a_ring_that_was_empty_starts_the_clock():
    device, q = queue(FakeSoc)
    device.bus.hang, device.bus.costs = True, HostCosts.free()
    q.add(job(0))
    device.bus.advance(9_000)
    retired(device, 0, 0, end=5_000)
    q.take_completions()
    assert q.clock is None
    device.bus.advance(1_000)
    q.add(job(1))
    assert q.clock == device.bus.cycle
