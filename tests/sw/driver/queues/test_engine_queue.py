from hw.contract.job import JOB, JobFlag
from hw.contract.params import preset
from sw.driver.device import Device
from tests.support.fake_soc import FakeSoc


def queue(soc, ring_log2=2):
    device = Device(soc(preset("tiny")), ring_log2=ring_log2)
    return device, device.engines[0]


def stored(device, slot):
    base = device.engines[0].register("RING_BASE")
    return JOB.unpack(device.bus.read_mem(base + slot * JOB.size, JOB.size))


def test_prologues_wait_for_a_barrier(soc):
    device, q = queue(soc, 3)
    q.push(magic=1, flags=0, window_after=0)
    q.requeue({"magic": 1, "flags": 0}, barrier=True)
    for after in (0, 1, 2, 9):
        q.requeue({"magic": 1, "flags": 0, "window_after": after})
    assert [stored(device, i)["window_after"] for i in range(6)] == [0, 0, 1, 1, 2, 4]


def test_what_the_ring_does_not_hold_follows_later():
    device, q = queue(FakeSoc, 1)
    for i in range(5):
        q.requeue({"magic": 1, "flags": 0, "job_id": i})
    assert q.outstanding == 5 and q.free == 0
    assert [stored(device, i)["job_id"] for i in range(2)] == [0, 1]
    assert stored(device, 1)["flags"] == JobFlag.INTERRUPT
    assert [members["job_id"] for _, members in q.unfinished] == [0, 1, 2, 3, 4]
    device.bus._regs["E0.CPL_TAIL"] = 1
    q.take_completions()
    assert stored(device, 0)["job_id"] == 2 and q.outstanding == 4


def test_an_emptied_engine_needs_three_accesses(soc):
    device, q = queue(soc)
    q.push(magic=1, flags=0)
    before = device.bus.cycle
    q.empty()
    assert q.outstanding == 0
    assert device.bus.cycle - before == 3 * device.bus.costs.register_access
