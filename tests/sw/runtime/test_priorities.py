import itertools
import re

import numpy as np
import pytest

from hw.contract.isa import Op
from hw.contract.job import Fault
from hw.contract.params import preset
from sw.driver import Device, DeviceFault
from sw.driver.errors import SupervisorFault
from sw.runtime.preemption_mechanism import Mechanism, choose
from sw.runtime.request import State
from sw.runtime.runtime import Runtime
from tests.support.fake_soc import FakeSoc
from tests.support.preempt_images import smashing_image, walking_image

TINY, BASE = preset("tiny"), preset("base")
X = np.random.default_rng(0).uniform(-60, 60, (1, 8, 8)).astype(np.float32)
EXPECTED = ((np.clip(np.rint(X / np.float32(0.5)) + 3, -128, 127) - 3) * np.float32(0.5)).reshape(1, 64)


def always(choice):
    return lambda situation: choice


def runtime_of(device, rule):
    return Runtime(device, "fcfs", preemptive=True, rule=rule)


def check(request):
    assert request.error is None
    np.testing.assert_array_equal(request.outputs["out"], EXPECTED)


@pytest.mark.parametrize("choice", Mechanism)
def test_urgent_request_by_each_choice(choice):
    device = Device(FakeSoc(TINY))
    long, urgent = device.load(walking_image(TINY, jobs=6)), device.load(smashing_image(TINY))
    runtime = runtime_of(device, always(choice))
    first = runtime.submit(long, X)
    second = runtime.submit(urgent, X, priority=1, arrival=device.bus.cycle + 4500)
    runtime.run_until_done()
    check(first), check(second)
    assert first.preempted == (choice is not Mechanism.WAIT)
    assert (second.ended < first.ended) == (choice is not Mechanism.WAIT)
    kinds = {span.kind for span in runtime.spans()}
    assert kinds == ({"pause", "drain", "dump", "run", "resume", "restore"} if choice is Mechanism.DUMP else {"run"})
    if choice is Mechanism.DUMP:
        assert sum(r.resumed for r in first.results) == 1
        for span in runtime.spans():
            assert 0 < span.begin <= span.end
        dumped = sum(span.bytes for span in runtime.spans() if span.kind == "dump")
        assert 0 < dumped <= 2 * 64  # of the job that stopped, and what the next one finds


@pytest.mark.parametrize(("duration", "preempted"), [(2000, 0), (2_000_000, 1)])
def test_by_default_a_dump_must_save_more_than_it_costs(duration, preempted):
    """What is left of the running request counts whole, however little of it is queued."""
    device, seen = Device(FakeSoc(TINY)), []
    image = walking_image(TINY, jobs=6)
    for layer in image.meta.layers:
        layer.estimated_compute = duration

    def rule(situation):
        seen.append(situation)
        return choose(situation)

    long, urgent = device.load(image), device.load(smashing_image(TINY))
    runtime = Runtime(device, "fcfs", preemptive=True, rule=rule, ahead=1, gain=0)
    first = runtime.submit(long, X)
    second = runtime.submit(urgent, X, priority=1, arrival=device.bus.cycle + 2000)
    runtime.run_until_done()
    check(first), check(second)
    assert first.preempted == preempted
    assert len(seen) == 1 and seen[0].remaining > 0.8 * duration
    if preempted:
        work = (seen[0].dump_bytes + seen[0].restore_bytes) / seen[0].bandwidth + 2 * seen[0].switch
        assert work < seen[0].remaining


def test_equal_priority_keeps_order_and_one_model_runs_one_at_a_time():
    device = Device(FakeSoc(BASE))
    model, other = device.load(walking_image(BASE, jobs=3)), device.load(walking_image(BASE, jobs=2))
    runtime = runtime_of(device, always(Mechanism.DUMP))
    requests = [runtime.submit(model, X), runtime.submit(other, X), runtime.submit(model, X, priority=5, arrival=3000)]
    runtime.run_until_done()
    for request in requests:
        check(request)
    assert not requests[0].preempted and not requests[2].preempted
    # The most urgent one waits for its own model, not for the other.
    assert requests[0].ended <= requests[2].ended < requests[1].ended


@pytest.mark.parametrize("seed", range(24))
def test_random_arrivals(seed):
    print("seed", seed)
    random = np.random.default_rng(seed)
    params = (TINY, BASE)[seed % 2]
    device = Device(FakeSoc(params, seed=seed), ring_log2=int(random.integers(0, 4)))
    images = [walking_image(params, jobs=int(random.integers(1, 7)), name=f"m{i}") for i in range(3)]
    images.append(smashing_image(params, engines=params.engines))
    models = [device.load(image) for image in images]
    runtime = runtime_of(device, lambda situation: Mechanism(random.choice(["dump", "dump", "dump", "kill", "wait"])))
    for _ in range(10):
        runtime.submit(
            models[random.integers(4)], X, priority=int(random.integers(0, 5)), arrival=int(random.integers(0, 60_000))
        )
    runtime.run_until_done()
    for request in runtime.requests:
        check(request)
    assert device.suspensions == []


@pytest.mark.parametrize("op", [Op.ST2, Op.LD2])
@pytest.mark.parametrize("times", [1, 9])
def test_failing_dump_and_restore_are_tried_again(op, times):
    soc = FakeSoc(TINY)
    device = Device(soc)
    long, urgent = device.load(walking_image(TINY, jobs=4)), device.load(smashing_image(TINY))
    failures = []

    def inject(engine, insn):
        if insn.op is op and soc._bodies[engine].job["tag"] >> 16 == 0xFFFF and len(failures) < times:
            failures.append(insn)
            return Fault.BUS
        return None

    runtime = runtime_of(device, always(Mechanism.DUMP))
    requests = [runtime.submit(long, X), runtime.submit(urgent, X, priority=1, arrival=device.bus.cycle + 4000)]
    soc.inject = inject
    runtime.run_until_done()
    if times == 1:
        for request in requests:
            check(request)
    else:  # only the request whose state is moved fails, and it fails once
        failed, other = requests
        assert isinstance(failed.error, SupervisorFault) and failed.state is State.FAILED
        assert re.search(r"BUS fault in a (dump|restore) job of the driver", str(failed.error))
        check(other)
    assert failures


def test_fault_fails_its_request_only():
    soc = FakeSoc(TINY)
    device = Device(soc)
    long, urgent = device.load(walking_image(TINY, jobs=4)), device.load(smashing_image(TINY))
    runtime = runtime_of(device, always(Mechanism.DUMP))
    first = runtime.submit(long, X)
    second = runtime.submit(urgent, X, priority=1, arrival=device.bus.cycle + 4000)
    soc.inject = lambda engine, insn: Fault.BUS if insn.op is Op.LD1 and insn["fill"] == 90 else None
    runtime.run_until_done()
    check(first)
    assert isinstance(second.error, DeviceFault) and second.outputs is None


def test_what_ends_may_submit_what_follows():
    device = Device(FakeSoc(TINY))
    model = device.load(walking_image(TINY, jobs=2))
    heard = []

    def on_end(request):
        heard.append(request)
        if len(heard) < 3:
            runtime.submit(model, X, arrival=device.bus.cycle + 500)

    runtime = Runtime(device, "fcfs", preemptive=True, on_end=on_end)
    runtime.submit(model, X)
    runtime.run_until_done()
    assert heard == runtime.requests and len(heard) == 3
    for before, after in itertools.pairwise(heard):
        assert after.started >= before.ended + 500
    for request in heard:
        check(request)


@pytest.mark.parametrize("params", [TINY, BASE], ids=lambda p: p.name)
@pytest.mark.parametrize("choice", Mechanism)
def test_an_announced_request_is_switched_to_ahead(params, choice):
    waits = {}
    for announced in (False, True):
        device = Device(FakeSoc(params))
        long, urgent = device.load(walking_image(params, jobs=8)), device.load(smashing_image(params))
        for layer in long.image.meta.layers:
            layer.estimated_compute = 20_000
        runtime = runtime_of(device, always(choice))
        first = runtime.submit(long, X)
        second = runtime.submit(urgent, X, priority=1, arrival=device.bus.cycle + 8000, announced=announced)
        runtime.run_until_done()
        check(first), check(second)
        assert second.started >= second.arrival
        waits[announced] = second.ended - second.arrival
    if choice is Mechanism.DUMP:
        assert waits[True] < waits[False]


@pytest.mark.parametrize("arrival", range(100, 30_000, 2900))
def test_an_announced_request_may_arrive_at_any_time(arrival):
    device = Device(FakeSoc(TINY))
    long, urgent = device.load(walking_image(TINY, jobs=6)), device.load(smashing_image(TINY))
    runtime = runtime_of(device, always(Mechanism.DUMP))
    requests = [runtime.submit(long, X)]
    requests += [runtime.submit(urgent, X, priority=1, arrival=arrival + 6000 * i, announced=True) for i in range(2)]
    runtime.run_until_done()
    for request in requests:
        check(request)
        assert request.started >= request.arrival
    assert not device.suspensions
