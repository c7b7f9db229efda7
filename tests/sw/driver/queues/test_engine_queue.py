import pytest

from hw.contract.job import COMPLETION, JOB, JobFlag
from hw.contract.params import preset
from sw.driver.device import Device
from sw.driver.errors import DriverError
from sw.driver.queues.job import Job, JobState, Work
from tests.support.fake_soc import FakeSoc


def queue(soc, ring_log2=2):
    device = Device(soc(preset("tiny")), ring_log2=ring_log2)
    return device, device.engines[0]


def stored(device, slot):
    base = device.engines[0].register("RING_BASE")
    return JOB.unpack(device.bus.read_mem(base + slot * JOB.size, JOB.size))


def job(number=0):
    return Job(number, 0, Work(((0, 0),) * 8, 0, 0), party=None)


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
