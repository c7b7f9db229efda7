"""Steps of a model on the CPU: they take their time, and others run meanwhile."""

import numpy as np
import pytest

from hw.contract.bus import HostCosts
from hw.contract.params import preset
from sim.model.bus import ModelBus
from sw.driver import Device
from sw.runtime import Mechanism, Runtime, State
from tests.support.images import negating_image
from tests.support.preempt_images import smashing_image, walking_image

TINY = preset("tiny")
X = np.full((1, 8, 8), 5, np.float32)
STEP = 50_000  #: cycles of a call
COSTS = HostCosts(cpu_step=STEP)


def device_of(*images):
    device = Device(ModelBus(TINY, costs=COSTS))
    return device, [device.load(image) for image in images]


def check(request, negations):
    value = 13 if negations % 2 == 0 else -13
    assert set(request.result()["out"].ravel()) == {np.float32((value - 3) * 0.5)}


def test_a_request_ends_when_its_step_does():
    _, (model,) = found = device_of(negating_image(TINY, steps=2))
    runtime = Runtime(found[0])
    request = runtime.submit(model, X)
    runtime.run_until_done()
    check(request, 2)
    assert 2 * STEP < request.host < request.ended - request.started < 2 * STEP + 10_000


def test_others_run_meanwhile():
    device, (slow, *others) = device_of(
        negating_image(TINY), *(walking_image(TINY, jobs=2, name=f"m{i}") for i in range(3))
    )
    runtime = Runtime(device)
    first = runtime.submit(slow, X)
    later = [runtime.submit(model, X, arrival=device.bus.cycle + 5000 * i) for i, model in enumerate(others, 1)]
    runtime.run_until_done()
    check(first, 1)
    for request in later:
        check(request, 0)
        assert request.started < first.ended and request.ended < first.ended
        assert request.ended - request.arrival < STEP / 2


def test_the_cpu_does_one_step_at_a_time():
    device, models = device_of(*(negating_image(TINY, name=name) for name in "ab"))
    runtime = Runtime(device)
    requests = [runtime.submit(model, X) for model in models]
    runtime.run_until_done()
    ends = sorted(request.ended for request in requests)
    assert ends[1] - ends[0] >= STEP
    for request in requests:
        check(request, 1)


@pytest.mark.parametrize("rule", Mechanism)
def test_a_more_urgent_request_comes_while_the_cpu_works(rule):
    device, (slow, long, urgent) = device_of(
        negating_image(TINY, steps=2), walking_image(TINY, jobs=4), smashing_image(TINY)
    )
    runtime = Runtime(device, preemptive=True, rule=lambda situation: rule, may_kill=True)
    first = runtime.submit(slow, X)
    second = runtime.submit(long, X, arrival=device.bus.cycle + 5000)
    third = runtime.submit(urgent, X, priority=1, arrival=device.bus.cycle + 6600)
    runtime.run_until_done()
    check(first, 2), check(second, 0), check(third, 0)
    assert second.preempted == (rule is not Mechanism.WAIT)
    assert device.suspensions == []


def test_a_request_can_be_cancelled_while_the_cpu_works():
    device, (model,) = device_of(negating_image(TINY, steps=2))
    runtime = Runtime(device)
    request = runtime.submit(model, X)
    while request.on_cpu is None:
        runtime.step()
    assert request.cancel()
    runtime.run_until_done()
    assert request.state is State.CANCELLED and request.host < 2 * STEP
    again = runtime.submit(model, X)
    runtime.run_until_done()
    check(again, 2)
