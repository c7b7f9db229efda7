from hw.contract.params import preset
from sw.driver.models.job_order import predecessors
from tests.support.preempt_images import walking_image

TINY = preset("tiny")


def test_predecessors_are_jobs_of_the_same_engine_and_inference():
    image = walking_image(TINY, jobs=5)
    for job, after in zip(image.meta.jobs, (0, 1, 4, 2, 4), strict=True):
        job.window_after = after
    assert predecessors(image) == [None, 0, None, 1, 0]
    for index, job in enumerate(image.meta.jobs):
        job.engine = index % 2
    for job, after in zip(image.meta.jobs, (0, 0, 1, 1, 2), strict=True):
        job.window_after = after
    assert predecessors(image) == [None, None, 0, 1, 0]
