"""Jobs of models: what is outstanding, which one holds a window, and what the ended ones say."""

import pytest

from hw.contract.bus import HostCosts
from hw.contract.params import preset
from sw.driver import Device
from sw.driver.queues.job import JobState
from tests.support.images import copy_image

BASE, LIMIT = preset("base"), 1_000_000


@pytest.fixture
def device(soc):
    return Device(soc(BASE, costs=HostCosts.free()))


def test_a_job_from_its_queue_to_its_result(device):
    model = device.load(copy_image(BASE, engines=2))
    device.begin(model, LIMIT)
    first, second = jobs = device.submit(model, [0, 1], limit=0)
    assert device.outstanding == jobs and first.state is second.state is JobState.QUEUED
    assert device.jobs.engines_of(model) == [0, 1] and device.jobs.models([1]) == device.jobs.models() == [model]
    results = device.collect(jobs, LIMIT)
    assert [(r.job, r.engine, r.resumed) for r in results] == [(0, 0, False), (1, 1, False)]
    assert results[0].start < results[0].end <= results[1].start
    assert [job.result for job in jobs] == results and first.state is second.state is JobState.DONE
    assert device.outstanding == device.jobs.models() == device.jobs.engines_of(model) == []


def test_jobs_that_an_abort_loses_have_no_result(device):
    model = device.load(copy_image(BASE, engines=2))
    device.begin(model, LIMIT)
    jobs = device.submit(model, [0, 1], limit=0)
    device.abort(model)
    assert {job.state for job in jobs} == {JobState.LOST} and not any(job.result for job in jobs)
    assert not device.outstanding


def test_the_window_of_a_job_is_held_by_the_one_before(device):
    model = device.load(copy_image(BASE, engines=2))
    model.predecessors[1] = 0
    device.begin(model, LIMIT)
    (first,) = device.submit(model, [0], limit=0)
    assert device.submit(model, [1], limit=0) == []  # on another engine, whose loader could not wait for it
    device.collect([first], LIMIT)
    (second,) = device.submit(model, [1], limit=0)
    device.collect([second], LIMIT)
