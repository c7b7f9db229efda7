import numpy as np
import pytest

from hw.contract.params import preset
from sim.model.bus import ModelBus
from sw.driver import Device, JobResult
from sw.runtime import Runtime, Session, reference
from sw.runtime.forecast import Estimates, Forecast
from sw.runtime.job_groups import job_groups
from sw.runtime.policies import LayerCost
from sw.runtime.policies.placement import QueueTime
from sw.runtime.policies.request_order import Fcfs
from sw.runtime.scheduler import LayerChain, LayerScheduler
from tests.support.images import copy_image
from tests.support.preempt_images import walking_image

BASE, TINY = preset("base"), preset("tiny")
X = np.ones((1, 8, 8), np.float32)


def result(job, engine, prologue, body):
    return JobResult(None, job, engine, 1000, 1000 + prologue, 5000, 5000 + body, {})


def test_the_slower_engine_counts_and_jobs_of_one_engine_add_up():
    image = walking_image(BASE, jobs=5)  # layer 0: job 0; layer 1: jobs 1 to 4, on engines 1, 0, 1, 0
    jobs = [result(0, 0, 10, 100), *(result(i, i % 2, 10 * i, 100 * i) for i in range(1, 5))]
    assert reference.durations(image, jobs) == {0: (10, 100, 0), 1: (60, 600, 0)}
    reference.store(image, jobs)
    assert [(x.measured_load, x.measured_compute, x.measured_stream) for x in image.meta.layers] == [
        (10, 100, 0),
        (60, 600, 0),
    ]
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


def test_a_first_run_alone_stores_durations_without_being_asked():
    device = Device(ModelBus(TINY))
    model = device.load(copy_image(TINY))
    assert not reference.measured(model.image)
    _, stats = Session(device, model).run(X)
    assert [(x.measured_load, x.measured_compute) for x in model.image.meta.layers] == [(0, stats.cycles), (0, 0)]
    before = [layer.measured_compute for layer in model.image.meta.layers]
    Session(device, model).run(X)
    assert [layer.measured_compute for layer in model.image.meta.layers] == before  # the first one counts


@pytest.mark.parametrize("together", [False, True])
def test_a_request_stores_durations_if_it_had_the_device_to_itself(together):
    device = Device(ModelBus(BASE))
    models = [device.load(walking_image(BASE, jobs=3, name=name)) for name in "ab"]
    runtime = Runtime(device)
    for number, model in enumerate(models):
        runtime.submit(model, X, arrival=device.bus.cycle + (0 if together else 100_000 * number))
    runtime.run_until_done()
    assert [reference.measured(model.image) for model in models] == [not together] * 2


def test_expected_queue_times_are_those_of_stored_durations():
    """What is measured later corrects the estimates of the order, not the reference."""
    estimates = Estimates({"m": [LayerCost(5, 10)]})
    estimates.correct("m", 0, compute=30)
    assert estimates.layers("m")[0].compute == 20 and estimates.reference("m", 0).compute == 10
    policy = QueueTime([0.0])
    scheduler = LayerScheduler(Fcfs(), policy, Forecast(1, 100), estimates)
    scheduler.open(LayerChain(0, "m"))
    scheduler.decide(0.0)
    assert policy.expected_times == [10]
