import asyncio

import numpy as np
import pytest

from hw.contract.isa import Op
from hw.contract.job import Fault
from hw.contract.params import preset
from sw.driver import Device, DeviceFault, DriverError
from sw.driver.errors import SupervisorFault
from sw.runtime.policies.request_order import Fcfs
from sw.runtime.preemption_mechanism import Mechanism
from sw.runtime.request import RequestCancelled, State
from sw.runtime.runtime import Runtime
from tests.support.fake_soc import FakeSoc
from tests.support.images import copy_image
from tests.support.preempt_images import smashing_image, walking_image

TINY, BASE = preset("tiny"), preset("base")
X = np.random.default_rng(0).uniform(-60, 60, (1, 8, 8)).astype(np.float32)
EXPECTED = ((np.clip(np.rint(X / np.float32(0.5)) + 3, -128, 127) - 3) * np.float32(0.5)).reshape(1, 64)


def check(request):
    np.testing.assert_array_equal(request.result()["out"], EXPECTED)
    assert request.state is State.DONE and request.progress == 1 and request.exception() is None


def walks(device, count, jobs=4, **options):
    return [device.load(walking_image(device.params, jobs=jobs, name=f"walk{i}", **options)) for i in range(count)]


def test_models_side_by_side_interleave_layer_by_layer():
    device = Device(FakeSoc(TINY))
    runtime = Runtime(device, "round_robin")
    requests = [runtime.submit(model, X) for model in walks(device, 3)]
    runtime.run_until_done()
    for request in requests:
        check(request)
    assert {run.request.number for run in runtime.groups[:3]} == {0, 1, 2}


def test_fcfs_runs_one_model_after_the_other():
    device = Device(FakeSoc(TINY))
    runtime = Runtime(device, "fcfs")
    requests = [runtime.submit(model, X) for model in walks(device, 3)]
    check(requests[1])
    assert requests[0].done()
    runtime.run_until_done()
    order = [run.request.number for run in runtime.groups]
    assert order == sorted(order)


def test_models_that_overlap_take_turns():
    device = Device(FakeSoc(TINY))
    whole = (TINY.lv2_bytes // 2, TINY.lv2_bytes // 2)
    first, second = walks(device, 2, windows=whole)
    assert first.overlaps(second)
    runtime = Runtime(device, "round_robin")
    requests = [runtime.submit(first, X), runtime.submit(second, X), runtime.submit(first, X)]
    runtime.run_until_done()
    for request in requests:
        check(request)
    order = [run.request.number for run in runtime.groups]
    assert order == sorted(order)


def test_rings_smaller_than_a_model_only_delay():
    device = Device(FakeSoc(TINY), ring_log2=1)
    runtime = Runtime(device)
    requests = [runtime.submit(model, X) for model in walks(device, 2, jobs=7)]
    runtime.run_until_done()
    for request in requests:
        check(request)


@pytest.mark.parametrize("seed", range(6))
def test_layers_placed_on_any_engine_stay_in_order(seed):
    device = Device(FakeSoc(BASE, seed=seed))
    runtime = Runtime(device, "round_robin", "round_robin_queues", placed=True)
    image = walking_image(BASE, jobs=5)
    image.meta.events = 0
    for job in image.meta.jobs:
        job.engine, job.waits, job.signal = 0, [], None
    requests = [runtime.submit(device.load(image), X) for _ in range(3)]
    runtime.run_until_done()
    for request in requests:
        check(request)
    assert {run.decision.engine for run in runtime.groups} == {0, 1}


def test_only_models_compiled_for_one_engine_can_be_placed():
    runtime = Runtime(Device(FakeSoc(BASE)), placed=True)
    model = runtime.device.load(copy_image(BASE, engines=2))
    with pytest.raises(DriverError, match="compile it with engines=1"):
        runtime.submit(model, X)


@pytest.mark.parametrize("at", [3, 17, 40])
def test_a_fault_fails_its_request_only(at):
    soc = FakeSoc(TINY)
    device = Device(soc)
    count = iter(range(10_000))
    soc.inject = lambda engine, insn: Fault.BUS if next(count) == at else None
    runtime = Runtime(device, "round_robin")
    requests = [runtime.submit(model, X) for model in walks(device, 3)]
    runtime.run_until_done()
    (failed,) = [request for request in requests if request.exception() is not None]
    assert failed.state is State.FAILED
    with pytest.raises(DeviceFault, match=failed.model.name):
        failed.result()
    others = [request for request in requests if request is not failed]
    for request in others:
        check(request)
    assert any(request.repeated for request in others)
    check(runtime.submit(failed.model, X))


@pytest.mark.parametrize("op", [Op.ST2, Op.LD2], ids=["dump", "restore"])
@pytest.mark.parametrize("params", [TINY, BASE], ids=lambda p: p.name)
def test_a_dump_or_restore_that_fails_is_tried_again(params, op):
    """What was queued behind it starts over; nothing fails, and what was suspended goes on from where it stood."""
    soc = FakeSoc(params)
    device = Device(soc)
    failures = []

    def inject(engine, insn):
        if insn.op is op and soc._bodies[engine].job["tag"] >> 16 == 0xFFFF and not failures:
            failures.append(insn)
            return Fault.BUS
        return None

    soc.inject = inject
    runtime = Runtime(device, "round_robin", preemptive=True, rule=lambda situation: Mechanism.DUMP)
    long = [runtime.submit(model, X) for model in walks(device, 2, jobs=6)]
    urgent = runtime.submit(device.load(smashing_image(params)), X, priority=1, arrival=device.bus.cycle + 4000)
    runtime.run_until_done()
    for request in (*long, urgent):
        check(request)
    assert failures and runtime.switches == 1
    if op is Op.ST2:
        assert urgent.repeated and not any(request.repeated for request in long)


def test_a_dump_that_keeps_failing_fails_the_request_whose_state_it_saves():
    soc = FakeSoc(TINY)
    device = Device(soc)
    own = 0xFFFF  #: in the tag of jobs of the driver
    soc.inject = lambda e, insn: Fault.BUS if insn.op is Op.ST2 and soc._bodies[e].job["tag"] >> 16 == own else None
    runtime = Runtime(device, preemptive=True, rule=lambda situation: Mechanism.DUMP)
    long = runtime.submit(*walks(device, 1, jobs=6), X)
    urgent = runtime.submit(device.load(smashing_image(TINY)), X, priority=1, arrival=device.bus.cycle + 4000)
    runtime.run_until_done()
    check(urgent)
    with pytest.raises(SupervisorFault, match="BUS fault in a dump job of the driver, for 'walk"):
        long.result()


def test_a_fault_of_an_urgent_request_leaves_suspended_ones_alone():
    soc = FakeSoc(TINY)
    device = Device(soc)
    soc.inject = lambda engine, insn: Fault.BUS if insn.op is Op.LD1 and insn["fill"] == 90 else None
    runtime = Runtime(device, "round_robin", preemptive=True, rule=lambda situation: Mechanism.DUMP)
    long = [runtime.submit(model, X) for model in walks(device, 2, jobs=6)]
    urgent = runtime.submit(device.load(smashing_image(TINY)), X, priority=1, arrival=device.bus.cycle + 4000)
    runtime.run_until_done()
    assert isinstance(urgent.exception(), DeviceFault)
    for request in long:
        check(request)
        assert not request.repeated


def test_cancelled_before_and_while_it_runs():
    device = Device(FakeSoc(TINY))
    runtime = Runtime(device)
    first, second, third = (runtime.submit(model, X) for model in walks(device, 3, jobs=8))
    assert second.cancel() and second.done() and not second.cancel()
    runtime.step()
    assert first.state is State.RUNNING and first.progress < 1
    assert first.cancel()
    runtime.run_until_done()
    for request in (first, second):
        assert request.state is State.CANCELLED
        with pytest.raises(RequestCancelled, match=f"request {request.number} was cancelled"):
            request.result()
    check(third)
    check(runtime.submit(first.model, X))


def test_a_request_arrives_when_told():
    device = Device(FakeSoc(TINY))
    runtime = Runtime(device)
    late = runtime.submit(device.load(walking_image(TINY)), X, arrival=50_000)
    check(late)
    assert late.started >= 50_000


def test_awaiting_requests():
    device = Device(FakeSoc(TINY))
    runtime = Runtime(device)

    async def both():
        return await asyncio.gather(*(runtime.submit(model, X) for model in walks(device, 2)))

    for outputs in asyncio.run(both()):
        np.testing.assert_array_equal(outputs["out"], EXPECTED)


@pytest.mark.parametrize("params", [TINY, BASE], ids=lambda p: p.name)
def test_more_urgent_requests_suspend_several_models(params):
    device = Device(FakeSoc(params))
    runtime = Runtime(device, "round_robin", preemptive=True, rule=lambda situation: Mechanism.DUMP)
    long = [runtime.submit(model, X) for model in walks(device, 2, jobs=6)]
    urgent = runtime.submit(device.load(smashing_image(params)), X, priority=1, arrival=device.bus.cycle + 4000)
    runtime.run_until_done()
    for request in (*long, urgent):
        check(request)
    assert runtime.switches == 1
    assert all(urgent.ended < request.ended for request in long)


def test_waiting_can_be_the_rule():
    device = Device(FakeSoc(TINY))
    runtime = Runtime(device, preemptive=True, rule=lambda situation: Mechanism.WAIT)
    long = runtime.submit(*walks(device, 1, jobs=6), X)
    urgent = runtime.submit(device.load(smashing_image(TINY)), X, priority=1, arrival=device.bus.cycle + 2000)
    runtime.run_until_done()
    check(long), check(urgent)
    assert runtime.switches == 0 and long.ended <= urgent.ended


def test_host_decisions_are_charged():
    costs = []
    for policy in (Fcfs, "idle_time"):
        device = Device(FakeSoc(TINY))
        runtime = Runtime(device, policy)
        before = device.bus.cycle
        runtime.submit(*walks(device, 1), X)
        runtime.step()
        costs.append(device.bus.cycle - before)
        assert runtime.measured.decision_seconds
    assert min(costs) >= FakeSoc(TINY).costs.decision


def test_options_are_checked():
    device = Device(FakeSoc(TINY))
    with pytest.raises(ValueError, match="ahead must be at least 1"):
        Runtime(device, ahead=0)
    with pytest.raises(ValueError):
        Runtime(device, "no such policy")
