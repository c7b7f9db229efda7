"""What parties are told of their jobs, on a fake SoC whose jobs never run unless a test says so."""

from dataclasses import replace

import pytest

from hw.contract.bus import HostCosts
from hw.contract.job import COMPLETION, Fault
from hw.contract.params import preset
from sw.driver.errors import DeviceFault
from sw.driver.memory.allocator import Allocator
from sw.driver.queues.descriptor import Descriptor
from sw.driver.queues.job import DeviceJob, JobState
from sw.driver.queues.job_queues import JobQueues
from sw.driver.queues.registers import RegisterAccess
from tests.support.fake_soc import FakeSoc

BASE = preset("base")


class Recorder:
    """A party that notes what it is told."""

    def __init__(self):
        self.told = []

    def ended(self, job, completion):
        assert job.state is JobState.DONE and job.id == completion["job_id"]
        self.told.append(("ended", job.engine, job))

    def fault_of(self, job, record):
        return DeviceFault(replace(record, job=self.describe(job)))

    def lost(self, engine, jobs):
        assert all(job.state is JobState.LOST for job in jobs)
        self.told.append(("lost", engine, jobs))

    def describe(self, job):
        return f"the test's job {job.id}"


@pytest.fixture
def queues():
    soc = FakeSoc(BASE, costs=HostCosts.free())
    soc.hang = True
    return JobQueues(soc, RegisterAccess(soc), Allocator("DRAM", 0, BASE.dram_bytes), 2)


def retire(queues, job, *, job_id=None, **members):
    engine, job_id = job.engine, job.id if job_id is None else job_id
    soc, queue = queues.bus, f"E{engine}"
    index = soc._regs[f"{queue}.CPL_TAIL"]
    slot = index % 4
    at = soc._regs[f"{queue}.CPL_BASE"] + slot * COMPLETION.size
    soc.write_mem(at, COMPLETION.pack(job_id=job_id, index=index, **members), charge=False)
    soc._regs[f"{queue}.CPL_TAIL"] += 1


def push(queues, engine, party):
    job = DeviceJob(queues.new_id(), engine, Descriptor(((0, 0),) * 8, 0, 0), party)
    queues.engines[engine].add(job)
    assert job.state is JobState.QUEUED and job in queues.jobs
    return job


def test_each_party_is_told_of_its_own_completions(queues):
    first, second = Recorder(), Recorder()
    jobs = [push(queues, 0, first), push(queues, 0, second), push(queues, 1, first)]
    retire(queues, jobs[0]), retire(queues, jobs[1])
    queues.take_completions(0)
    assert first.told == [("ended", 0, jobs[0])] and second.told == [("ended", 0, jobs[1])]
    assert queues.idle() == [0] and queues.jobs == jobs[2:]


def test_parties_are_told_of_jobs_that_a_reset_loses_oldest_first(queues):
    first, second = Recorder(), Recorder()
    jobs = [push(queues, 0, party) for party in (first, second, first)]
    other = push(queues, 1, first)
    queues.reset(0)
    assert first.told == [("lost", 0, [jobs[0], jobs[2]])] and second.told == [("lost", 0, [jobs[1]])]
    retire(queues, other)
    queues.take_completions(1)
    assert first.told[-1] == ("ended", 1, other) and not queues.jobs


def test_an_emptied_engine_tells_nobody(queues):
    party = Recorder()
    job = push(queues, 0, party)
    assert queues.engines[0].take_off() == [job] and job.state is JobState.OFF
    queues.reset(0)
    assert not party.told and queues.engines[0].outstanding == 0 and job.state is JobState.OFF


def test_the_party_names_the_job_of_a_fault(queues):
    party = Recorder()
    job = push(queues, 0, party)
    retire(queues, job, status=int(Fault.BUS))
    with pytest.raises(DeviceFault, match=f"BUS fault in the test's job {job.id}"):
        queues.take_completions(0)
    assert job in queues.jobs and not queues.engines[0].unfinished  # it is its queue's until that is reset
    assert f"the test's job {job.id}" not in str(queues.timed_out(5))
    queues.bus._regs["E0.CURRENT_JOB"] = job.id
    assert f"the test's job {job.id}" in str(queues.timed_out(5))
    queues.reset(0)
    assert party.told == [("lost", 0, [job])] and not queues.jobs


def test_a_completion_of_another_job_is_a_fault_of_the_one_that_retired(queues):
    retire(queues, push(queues, 0, Recorder()), job_id=99)
    with pytest.raises(DeviceFault, match="engine 0: BUS fault in the test's job 1"):
        queues.take_completions(0)


def test_a_fault_of_nobody_is_that_of_the_oldest_job(queues):
    jobs = [push(queues, 0, Recorder()) for _ in range(2)]
    queues.bus._regs["E0.FAULT_JOB"] = jobs[1].id
    for culprit in (jobs[1], jobs[0]):
        with pytest.raises(DeviceFault, match=f"the test's job {culprit.id}"):
            queues.take_completions(0, faulted=True)
        queues.bus._regs["E0.FAULT_JOB"] = 99


def test_ids_begin_again_and_are_never_zero(queues):
    queues._next_id = 0xFFFFFFFF
    assert [queues.new_id(), queues.new_id()] == [0xFFFFFFFF, 1]
