"""A request that has not ended by its deadline is aborted and says so; others are exact, and its engines are free."""

import math

import numpy as np
import pytest

from hw.contract.bus import HostCosts
from hw.contract.params import preset
from sw.driver import Device, DriverError
from sw.runtime import DeadlineMissed, Mechanism, Runtime, State
from tests.support.fake_soc import FakeSoc
from tests.support.images import negating_image
from tests.support.preempt_images import smashing_image, walking_image
from tests.support.sampled import sampled

TINY, BASE = preset("tiny"), preset("base")
X = np.random.default_rng(0).uniform(-60, 60, (1, 8, 8)).astype(np.float32)
EXPECTED = ((np.clip(np.rint(X / np.float32(0.5)) + 3, -128, 127) - 3) * np.float32(0.5)).reshape(1, 64)


def check(request):
    np.testing.assert_array_equal(request.result()["out"], EXPECTED)
    assert request.ended <= request.last_cycle


def check_missed(request, state, within=2000):
    """Aborted while it was in ``state``, and not long after its deadline."""
    assert request.state is State.FAILED and request.outputs is None
    error = request.error
    assert isinstance(error, DeadlineMissed) and isinstance(error, DriverError)
    assert error.deadline == request.deadline < error.cycle and request.ended - request.deadline < within
    assert 0 <= error.progress <= 1 and error.model == request.model.name
    for text in (request.name, repr(error.model), f"cycle {error.deadline:.0f}", f"was {state.value}", "%"):
        assert text in str(error)


def check_empty(device, runtime, *models):
    """Nothing is left of what was aborted."""
    assert not device.outstanding and not device.suspensions
    assert not any(model.users for model in models)
    for request in [runtime.submit(model, X) for model in models]:
        check(request)
    free = device.dram.free_bytes
    for model in models:
        device.unload(model)
    assert device.dram.free_bytes > free


def alone(jobs=6):
    """Cycles of a request that has the device to itself."""
    device = Device(FakeSoc(TINY))
    runtime = Runtime(device)
    request = runtime.submit(device.load(walking_image(TINY, jobs=jobs)), X)
    runtime.run_until_done()
    return request.ended - request.arrival


def test_while_it_runs_alone():
    device = Device(FakeSoc(TINY))
    model = device.load(walking_image(TINY, jobs=6))
    runtime = Runtime(device)
    request = runtime.submit(model, X, deadline=device.bus.cycle + alone() // 2)
    runtime.run_until_done()
    check_missed(request, State.RUNNING)
    assert 0 < request.error.progress < 1
    with pytest.raises(DeadlineMissed):
        request.result()
    check_empty(device, runtime, model)


def test_one_that_ends_in_time_is_not_touched():
    device = Device(FakeSoc(TINY))
    runtime = Runtime(device)
    request = runtime.submit(device.load(walking_image(TINY)), X, deadline=device.bus.cycle + 10**7)
    check(request)
    endless = runtime.submit(request.model, X, deadline=math.inf)
    check(endless)


def test_a_soft_one_is_for_policies():
    device = Device(FakeSoc(TINY))
    runtime = Runtime(device, "deadline")
    request = runtime.submit(device.load(walking_image(TINY)), X, deadline=device.bus.cycle + 10, soft_deadline=True)
    check(request)
    assert request.ended > request.deadline


def test_one_that_is_no_number_is_refused():
    device = Device(FakeSoc(TINY))
    with pytest.raises(ValueError, match="deadline"):
        Runtime(device).submit(device.load(walking_image(TINY)), X, deadline=math.nan)


@pytest.mark.parametrize("preemptive", [False, True])
def test_while_it_waits_for_its_model(preemptive):
    device = Device(FakeSoc(TINY))
    model = device.load(walking_image(TINY, jobs=8))
    runtime = Runtime(device, preemptive=preemptive)
    first = runtime.submit(model, X)
    second = runtime.submit(model, X, deadline=device.bus.cycle + 3000)
    runtime.run_until_done()
    check(first)
    check_missed(second, State.WAITING)
    assert second.ended < first.ended and not second.error.progress and not first.repeated
    check_empty(device, runtime, model)


@pytest.mark.parametrize("announced", [False, True])
def test_before_it_arrives(announced):
    device = Device(FakeSoc(TINY))
    model = device.load(walking_image(TINY))
    runtime = Runtime(device, preemptive=True)
    now = device.bus.cycle
    request = runtime.submit(model, X, arrival=now + 50_000, deadline=now + 1000, announced=announced)
    runtime.run_until_done()
    check_missed(request, State.WAITING)
    check_empty(device, runtime, model)


@pytest.mark.parametrize("order", ["fcfs", "round_robin"])
def test_while_others_stand_on_its_engine(order):
    """Nobody starts over: what is queued of it runs out."""
    device = Device(FakeSoc(TINY))
    models = [device.load(walking_image(TINY, jobs=6, name=f"walk{i}")) for i in range(3)]
    runtime = Runtime(device, order, ahead=6)
    late = runtime.submit(models[0], X, deadline=device.bus.cycle + alone() // 2)
    others = [runtime.submit(model, X) for model in models[1:]]
    runtime.run_until_done()
    check_missed(late, State.RUNNING, within=alone() * 2)
    for request in others:
        check(request)
        assert not request.repeated
    check_empty(device, runtime, *models)


def test_a_body_that_hangs_beside_others():
    """Its own limit ends it; it is too late all the same, and the others start over."""
    soc = FakeSoc(TINY)
    device = Device(soc)
    models = [device.load(walking_image(TINY, jobs=3, name=f"walk{i}")) for i in range(2)]
    runtime = Runtime(device, "round_robin")
    soc.hang = True
    late = runtime.submit(models[0], X, deadline=device.bus.cycle + 5000)
    other = runtime.submit(models[1], X)
    while not late.done():
        runtime.step()
    soc.hang = False
    runtime.run_until_done()
    check_missed(late, State.RUNNING, within=math.inf)
    check(other)
    check_empty(device, runtime, *models)


def test_a_body_that_hangs_alone_ends_at_the_deadline():
    soc = FakeSoc(TINY)
    device = Device(soc)
    model = device.load(walking_image(TINY, jobs=3))
    runtime = Runtime(device)
    soc.hang = True
    late = runtime.submit(model, X, deadline=device.bus.cycle + 5000)
    assert isinstance(late.exception(), DeadlineMissed)
    soc.hang = False
    check_missed(late, State.RUNNING)
    check_empty(device, runtime, model)


@pytest.mark.parametrize("beside", [0, 1])
def test_while_it_is_suspended(beside):
    device = Device(FakeSoc(TINY))
    long = [device.load(walking_image(TINY, jobs=6, name=f"walk{i}")) for i in range(1 + beside)]
    urgent = device.load(smashing_image(TINY))
    runtime = Runtime(device, "round_robin", preemptive=True, rule=lambda situation: Mechanism.DUMP)
    now = device.bus.cycle
    late, *others = [runtime.submit(model, X) for model in long]
    urgents = [runtime.submit(urgent, X, priority=1, arrival=now + 2000) for _ in range(4)]
    while late.state is not State.SUSPENDED:
        runtime.step()
    late.deadline = device.bus.cycle + 100
    runtime.run_until_done()
    check_missed(late, State.SUSPENDED, within=5000)
    for request in [*urgents, *others]:
        check(request)
    assert not any(request.repeated for request in [*urgents, *others])
    assert late.ended < urgents[-1].ended
    check_empty(device, runtime, *long, urgent)


def test_while_the_cpu_works_for_it():
    device = Device(FakeSoc(TINY, costs=HostCosts(cpu_step=50_000)))
    model, other = device.load(negating_image(TINY, steps=2)), device.load(walking_image(TINY, jobs=4))
    runtime = Runtime(device)
    late = runtime.submit(model, X, deadline=device.bus.cycle + 20_000)
    beside = runtime.submit(other, X, arrival=device.bus.cycle + 15_000)
    runtime.run_until_done()
    check_missed(late, State.RUNNING)
    check(beside)
    assert not beside.repeated
    check_empty(device, runtime, other)


@pytest.mark.parametrize("seed", sampled(range(40), 15))
def test_random_deadlines(seed):
    """Every request ends once, in time or with its error, and the device is as it was."""
    rng = np.random.default_rng(seed)
    print("seed", seed)
    params = TINY if seed % 2 else BASE
    device = Device(FakeSoc(params, seed=seed))
    models = [device.load(walking_image(params, jobs=int(rng.integers(1, 8)), name=f"walk{i}")) for i in range(3)]
    models.append(device.load(smashing_image(params)))
    rule = [lambda situation: Mechanism.DUMP, lambda situation: Mechanism.KILL, lambda situation: Mechanism.WAIT]
    runtime = Runtime(
        device, "round_robin", preemptive=bool(rng.integers(4)), rule=rule[rng.integers(3)], may_kill=True
    )
    now, requests = device.bus.cycle, []
    for _ in range(20):
        arrival = now + int(rng.integers(0, 60_000))
        firm = bool(rng.integers(3))
        requests.append(
            runtime.submit(
                models[rng.integers(len(models))], X, priority=int(rng.integers(4)), arrival=arrival,
                deadline=arrival + float(rng.integers(-1000, 40_000)) if firm else None,
                announced=bool(rng.integers(2)),
            )
        )  # fmt: skip
    for _ in range(20_000):
        if not (runtime._waiting or runtime._started.requests or runtime._priorities.suspended):
            break
        runtime.step()
        if not rng.integers(300):
            requests[rng.integers(len(requests))].cancel()
    assert all(request.done() for request in requests), [r.state for r in requests]
    for request in requests:
        if request.state is State.DONE:
            check(request)
        elif request.state is State.FAILED:
            assert isinstance(request.error, DeadlineMissed), request.error
    device.settle()
    check_empty(device, runtime, *models)
