"""A recorded run whose jobs change places takes as long as a run of the model in that order."""

import random
from functools import cache

import pytest

from benchmarks.accuracy_cases import whole_networks
from benchmarks.workloads import workload
from compiler.backend.options import Options
from compiler.compile import compile_model
from hw.contract.params import preset
from sim.model.bus import ModelBus
from sim.retiming.orders import OrderError
from sim.retiming.recorded import RecordedRun, cycles_of
from sw.driver import Device

TINY = preset("tiny")
LIMIT = 10_000_000


@cache
def compiled(name, params, engines=1):
    case = next((case for case in whole_networks(params) if case.name == name), None)
    path = case.path() if case else workload(name)
    return compile_model(path, params, engines=engines, options=Options(lv2_limit=params.lv2_bytes // 2), name=name)


def run(images, sequence, params=TINY, engines=None):
    """The history of the jobs of ``sequence``, each a model and a number of its jobs, and their job_ids."""
    bus = ModelBus(params, data=False)
    bus.record(bursts=True)
    device = Device(bus)
    models = [device.load(image, engines=engines) for image in images]
    for model in models:
        device.begin(model, LIMIT)
    ids = {one: device.submit(models[one[0]], [one[1]], limit=LIMIT)[0] for one in sequence}
    device.collect(list(ids.values()), LIMIT)
    return bus.history, ids


def interleaved(images, turns):
    """Jobs of models in the order of ``turns``, each of which is the number of a model."""
    jobs = [iter(range(len(image.meta.jobs))) for image in images]
    return [(model, next(jobs[model])) for model in turns]


def turns_of(images):
    return [model for model, image in enumerate(images) for _ in image.meta.jobs]


@pytest.mark.parametrize(
    "names",
    [
        ("squeezenet_small", "digits"),
        pytest.param(("mobilenetv2_small", "resnet50_small"), marks=pytest.mark.slow),
    ],
    ids=lambda names: names[0],
)
def test_jobs_of_two_models_in_random_orders(names):
    seed = 5
    rng = random.Random(seed)
    images = [compiled(name, TINY) for name in names]
    first = turns_of(images)
    history, ids = run(images, interleaved(images, first))
    recorded = RecordedRun(TINY, history)
    assert recorded.price().cycles == pytest.approx(cycles_of(history), rel=0.002)
    errors = []
    for turns in [first, first[::-1], *(rng.sample(first, len(first)) for _ in range(4))]:
        sequence = interleaved(images, turns)
        expected = cycles_of(run(images, sequence)[0])
        priced = recorded.price(order=[ids[one] for one in sequence])
        assert len(priced.jobs) == len(sequence)
        errors.append(abs(priced.cycles / expected - 1))
    assert max(errors) < 0.025, f"seed {seed}: {errors}"
    assert sum(errors) / len(errors) < 0.008, f"seed {seed}: {errors}"


def test_another_order_and_another_dram_at_once():
    images = [compiled(name, TINY) for name in ("squeezenet_small", "digits")]
    turns = turns_of(images)
    history, ids = run(images, interleaved(images, turns))
    sequence = interleaved(images, turns[::-1])
    order = [ids[one] for one in sequence]
    recorded = RecordedRun(TINY, history)
    slower = recorded.price(TINY.replace(dram_latency=300), order=order)
    bodies = sorted((job.start, job.job_id) for job in slower.jobs)
    assert [job for _, job in bodies] == order
    assert slower.cycles > recorded.price(order=order).cycles


def test_orders_that_break_dependencies_are_refused():
    images = [compiled(name, TINY) for name in ("squeezenet_small", "digits")]
    history, ids = run(images, interleaved(images, turns_of(images)))
    recorded, order = RecordedRun(TINY, history), list(ids.values())
    swapped = [order[1], order[0], *order[2:]]
    with pytest.raises(OrderError, match=f"job {order[1]} depends on job {order[0]} of the same model"):
        recorded.price(order=swapped)
    for wrong in (order[:-1], [*order, order[0]], [*order[:-1], 999]):
        with pytest.raises(OrderError, match="each recorded job once"):
            recorded.price(order=wrong)


def test_models_that_share_a_part_of_lv2_keep_their_order():
    """There is room for two halves of LV2: the third model lies where another one does."""
    images = [compiled("digits", TINY)] * 3
    turns = turns_of(images)
    history, ids = run(images, interleaved(images, turns))
    order = [ids[one] for one in interleaved(images, turns[::-1])]
    with pytest.raises(OrderError, match="use the same part of LV2"):
        RecordedRun(TINY, history).price(order=order)


def test_a_model_on_two_engines_in_its_own_order():
    """Its jobs wait for each other's events."""
    params = TINY.replace(name="two engines", engines=2, lv2_bytes=64 << 10)
    image = compiled("digits", params, engines=2)
    history, ids = run([image], interleaved([image], turns_of([image])), params)
    recorded = RecordedRun(params, history)
    assert recorded.price(order=list(ids.values())).cycles == pytest.approx(cycles_of(history), rel=0.02)
