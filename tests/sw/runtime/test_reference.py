import pytest

from hw.contract.params import preset
from sw.driver import JobResult
from sw.runtime import reference
from sw.runtime.job_groups import job_groups
from tests.support.preempt_images import walking_image

BASE = preset("base")


def result(job, engine, prologue, body):
    return JobResult(None, job, engine, 1000, 1000 + prologue, 5000, 5000 + body, {})


def test_the_slower_engine_counts_and_jobs_of_one_engine_add_up():
    image = walking_image(BASE, jobs=5)  # layer 0: job 0; layer 1: jobs 1 to 4, on engines 1, 0, 1, 0
    jobs = [result(0, 0, 10, 100), *(result(i, i % 2, 10 * i, 100 * i) for i in range(1, 5))]
    assert reference.durations(image, jobs) == {0: (10, 100), 1: (60, 600)}
    reference.store(image, jobs)
    assert [(x.measured_load, x.measured_compute) for x in image.meta.layers] == [(10, 100), (60, 600)]
    first, second = job_groups(image, image.meta.steps[0])
    assert first.cost[:2] == pytest.approx((10, 100))
    assert second.cost[:2] == pytest.approx((60, 600)) and second.cost.overlap == pytest.approx(30)


def test_layers_of_many_jobs_go_in_parts_and_wait_for_the_windows_of_earlier_ones():
    image = walking_image(preset("tiny"), jobs=9)
    for index, job in enumerate(image.meta.jobs):
        job.window_after = 4 if index >= 4 else 0
    parts = job_groups(image, image.meta.steps[0])
    assert [job for part in parts for job in part.jobs] == list(range(9))
    assert max(len(part.jobs) for part in parts) == 2
    held = {job: number for number, part in enumerate(parts) for job in part.jobs}
    assert [part.holder for part in parts] == [
        max((held[job - 4] for job in part.jobs if job >= 4), default=None) for part in parts
    ]
