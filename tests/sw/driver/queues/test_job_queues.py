"""What owners of jobs are told, on a fake SoC whose jobs never run unless a test says so."""

from dataclasses import replace

import pytest

from hw.contract.job import COMPLETION, Fault
from hw.contract.params import preset
from sim.bus import HostCosts
from sw.driver.errors import DeviceFault
from sw.driver.memory.allocator import Allocator
from sw.driver.queues.job_queues import JobQueues
from sw.driver.queues.registers import RegisterAccess
from tests.support.fake_soc import FakeSoc

BASE = preset("base")


class Recorder:
    """An owner that notes what it is told."""

    def __init__(self):
        self.told = []

    def completed(self, engine, completion):
        self.told.append(("completed", engine, completion["job_id"]))

    def fault_of(self, record):
        return DeviceFault(replace(record, job=self.describe(record.job_id)))

    def lost(self, engine, job_ids):
        self.told.append(("lost", engine, job_ids))

    def describe(self, job_id):
        return f"the test's job {job_id}"


@pytest.fixture
def queues():
    soc = FakeSoc(BASE, costs=HostCosts.free())
    soc.hang = True
    return JobQueues(soc, RegisterAccess(soc), Allocator("DRAM", 0, BASE.dram_bytes), 2)


def retire(queues, engine, job_id, **members):
    soc, queue = queues.bus, f"E{engine}"
    index = soc._regs[f"{queue}.CPL_TAIL"]
    slot = index % 4
    at = soc._regs[f"{queue}.CPL_BASE"] + slot * COMPLETION.size
    soc.write_mem(at, COMPLETION.pack(job_id=job_id, index=index, **members), charge=False)
    soc._regs[f"{queue}.CPL_TAIL"] += 1


def push(queues, engine, owner):
    job_id = queues.new_id()
    queues.push(engine, {"magic": 1, "flags": 0, "job_id": job_id}, owner)
    return job_id


def test_each_owner_is_told_of_its_own_completions(queues):
    first, second = Recorder(), Recorder()
    jobs = [push(queues, 0, first), push(queues, 0, second), push(queues, 1, first)]
    retire(queues, 0, jobs[0]), retire(queues, 0, jobs[1])
    queues.take_completions(0)
    assert first.told == [("completed", 0, jobs[0])] and second.told == [("completed", 0, jobs[1])]
    assert queues.idle() == [0]


def test_owners_are_told_of_jobs_that_a_reset_loses_oldest_first(queues):
    first, second = Recorder(), Recorder()
    jobs = [push(queues, 0, owner) for owner in (first, second, first)]
    other = push(queues, 1, first)
    queues.reset(0)
    assert first.told == [("lost", 0, [jobs[0], jobs[2]])] and second.told == [("lost", 0, [jobs[1]])]
    retire(queues, 1, other)
    queues.take_completions(1)
    assert first.told[-1] == ("completed", 1, other)


def test_an_emptied_engine_tells_nobody(queues):
    owner = Recorder()
    push(queues, 0, owner)
    queues.empty(0)
    queues.reset(0)
    assert not owner.told and queues.engines[0].outstanding == 0


def test_the_owner_names_the_job_of_a_fault(queues):
    owner = Recorder()
    job = push(queues, 0, owner)
    retire(queues, 0, job, status=int(Fault.BUS))
    with pytest.raises(DeviceFault, match=f"BUS fault in the test's job {job}"):
        queues.take_completions(0)
    assert f"the test's job {job}" not in str(queues.timed_out(5))
    queues.bus._regs["E0.CURRENT_JOB"] = job
    assert f"the test's job {job}" in str(queues.timed_out(5))
    queues.reset(0)
    assert owner.told == [("lost", 0, [job])]


def test_a_completion_of_another_job_is_a_fault_of_the_one_that_retired(queues):
    push(queues, 0, Recorder())
    retire(queues, 0, 99)
    with pytest.raises(DeviceFault, match="engine 0: BUS fault in the test's job 1"):
        queues.take_completions(0)


def test_ids_begin_again_and_are_never_zero(queues):
    queues._next_id = 0xFFFFFFFF
    assert [queues.new_id(), queues.new_id()] == [0xFFFFFFFF, 1]
