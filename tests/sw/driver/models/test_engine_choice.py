"""Images run on the engines that are chosen for them: outputs, events, faults, dumps and restores follow the choice."""

import numpy as np
import pytest

from hw.contract.bus import HostCosts
from hw.contract.params import preset
from sw.driver import Device, DeviceFault, DriverError
from sw.driver.models.engine_choice import choose_engines
from tests.support.images import copy_image
from tests.support.preempt_images import smashing_image, walking_image

FOUR = preset("tiny").replace(engines=4)
LIMIT = 10_000_000
HALF = (FOUR.lv2_bytes // 4, FOUR.lv2_bytes // 4)  #: LV2 windows of one of two tenants


def start(device, model, seed=0):
    data = np.random.default_rng(seed).integers(-128, 128, (1, 8, 8)).astype(np.int8)
    model.write_tensor("x", data)
    device.begin(model, LIMIT)
    return model, data, device.submit(model, range(len(model.image.meta.jobs)), limit=LIMIT)


def finish(device, model, data, ids):
    results = device.collect(ids, LIMIT)
    np.testing.assert_array_equal(model.read_tensor("y"), data)
    return results


def run(device, model, seed=0):
    return finish(device, *start(device, model, seed))


def pair(jobs=4, **options):
    return walking_image(FOUR, jobs=jobs, engines=2, **options)


@pytest.mark.parametrize("engines", [(0, 1), (2, 3), (3, 0), (1, 2)])
def test_chosen_at_load(soc, engines):
    device = Device(soc(FOUR))
    model = device.load(pair(), engines=engines)
    for seed in range(2):
        assert [r.engine for r in run(device, model, seed)] == [*engines, *engines]


def test_the_first_engines_unless_told(soc):
    device = Device(soc(FOUR))
    assert device.load(pair()).engines == (0, 1)
    assert device.load(pair(), engines="least_used").engines == (2, 3)
    assert device.load(copy_image(FOUR), engines="least_used").engines == (0,)
    assert device.load(copy_image(FOUR), engines="least_used").engines == (1,)


def test_least_used():
    assert choose_engines(pair(), "least_used", [], 3) == (0, 1)
    assert choose_engines(pair(), "least_used", [(0, 1), (0, 2), (0,)], 4) == (1, 3)


def test_chosen_anew_for_each_inference(soc):
    device = Device(soc(FOUR))
    model = device.load(pair())
    for engines in ((2, 1), (0, 3), (3, 2)):
        device.assign(model, engines)
        assert {r.engine for r in run(device, model)} == set(engines)


def test_no_change_while_jobs_are_outstanding(soc):
    device = Device(soc(FOUR))
    model = device.load(pair())
    started = start(device, model)
    with pytest.raises(DriverError, match="jobs outstanding"):
        device.assign(model, (2, 3))
    finish(device, *started)


@pytest.mark.parametrize(
    ("engines", "message"),
    [
        ((0, 1, 2), "compiled for 2 engines, engines=.* names 3"),
        ((3,), "names 1: name 2, or compile it again"),
        ((2, 2), "names an engine twice"),
        ((2, 4), "no engine 4; its engines are 0 to 3"),
        ((-1, 0), "no engine -1"),
        ("fastest", "engine numbers or 'least_used', not 'fastest'"),
    ],
)
def test_a_bad_choice_is_refused_and_leaves_nothing_allocated(soc, engines, message):
    device = Device(soc(FOUR))
    before = device.dram.free_bytes, device.lv2.free_bytes
    with pytest.raises(DriverError, match=message):
        device.load(pair(), engines=engines)
    assert (device.dram.free_bytes, device.lv2.free_bytes) == before


def test_a_fault_names_the_engine_that_ran_the_job_and_stops_no_other(soc):
    device = Device(soc(FOUR))
    bad = device.load(copy_image(FOUR, "LD2 src_seg=2 dst_seg=6 src=32 len=64 hi=64 hi1=1 hi0=1\nEND"), engines=[3])
    good = device.load(pair(), engines=(1, 0))
    started = start(device, good)
    with pytest.raises(DeviceFault) as caught:
        run(device, bad)
    assert caught.value.record.engine == 3
    device.abort(bad)
    assert device.bus.resets == [3]
    finish(device, *started)


POINTS = len(pair().meta.cancel_points)


@pytest.mark.parametrize("engines", [(0, 1), (2, 0), (3, 1)])
@pytest.mark.parametrize(
    "point", [pytest.param(i, marks=() if i % 9 == 0 else pytest.mark.slow) for i in range(0, 2 * POINTS, 3)]
)
def test_preempting_one_tenant_leaves_the_other_alone(soc, point, engines):
    """The victim loses all that lies on its engines; the other tenant runs on, on the other two."""
    print("seed", point)
    device = Device(soc(FOUR, seed=point, costs=HostCosts.free()))
    others = tuple(e for e in range(4) if e not in engines)
    victim = device.load(pair(windows=HALF), engines=engines)
    other = device.load(pair(jobs=6, name="other", windows=HALF), engines=others)
    urgent = device.load(smashing_image(FOUR, engines=2, windows=HALF))
    started, beside = start(device, victim, 1), start(device, other, 2)
    for _ in range(point):
        device.bus.step()
    suspension = device.suspend(engines, urgent, verify=True)
    assert suspension.models in ([], [victim])
    assert {job.model for queue in suspension.queues.values() for job in queue} <= {victim}
    device.assign(urgent, engines)
    device.admit(urgent)
    assert {r.engine for r in run(device, urgent)} <= set(engines)
    device.resume(suspension)
    finish(device, *started)
    assert not any(r.resumed for r in finish(device, *beside))
    assert device.bus.resets.count(others[0]) == device.bus.resets.count(others[1]) == 0


def test_half_of_a_model_cannot_be_suspended(soc):
    device = Device(soc(FOUR))
    started = start(device, device.load(pair(), engines=(1, 2)))
    with pytest.raises(DriverError, match=r"also has jobs on engines \[2\]: suspend all"):
        device.suspend([0, 1])
    finish(device, *started)
