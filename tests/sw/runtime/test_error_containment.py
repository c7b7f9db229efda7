"""Whatever a request, a policy, a rule, a callback or a step on the CPU raises ends one request; others go on."""

import numpy as np
import pytest

from hw.contract.params import preset
from hw.contract.spaces import Space
from sw.driver import Device, DriverError, NotSuspendable
from sw.runtime import InputError, Mechanism, Runtime
from sw.runtime.policies.request_order import Fcfs
from sw.runtime.request import RequestCancelled, State
from tests.support.fake_soc import FakeSoc
from tests.support.images import copy_image, negating_image
from tests.support.preempt_images import smashing_image, walking_image

TINY = preset("tiny")
X = np.random.default_rng(0).uniform(-60, 60, (1, 8, 8)).astype(np.float32)


class Trouble(Exception):
    """Nothing that the run time knows."""


class Hostile:
    """An input whose conversion raises."""

    def __array__(self, *args, **named):
        raise Trouble("no array")


def served(runtime):
    """Run until done within bounds: a run time that spins fails the test instead."""
    for _ in range(5000):
        if all(request.done() for request in runtime.requests):
            runtime.run_until_done()
            return
        runtime.step()
    raise AssertionError(f"no end: {[request.state for request in runtime.requests]}")


def states(runtime):
    return [request.state for request in runtime.requests]


def test_inputs_that_raise_end_their_request_only():
    device = Device(FakeSoc(TINY))
    runtime = Runtime(device)
    for x in (X, Hostile(), X):
        runtime.submit(device.load(copy_image(TINY)), x)
    served(runtime)
    assert states(runtime) == [State.DONE, State.FAILED, State.DONE]
    with pytest.raises(InputError, match="no array") as told:
        runtime.requests[1].result()
    assert isinstance(told.value.__cause__, Trouble)


@pytest.mark.parametrize("method", ["choose", "garbage"])
def test_an_order_policy_that_raises_ends_one_request(method):
    calls = []

    class Failing(Fcfs):
        def choose(self, state, candidates):
            calls.append(candidates)
            if len(calls) == 2:
                if method == "garbage":
                    return None
                raise Trouble("cannot decide")
            return super().choose(state, candidates)

    device = Device(FakeSoc(TINY))
    runtime = Runtime(device, Failing)
    for i in range(3):
        runtime.submit(device.load(walking_image(TINY, jobs=2, name=f"m{i}")), X)
    served(runtime)
    assert sorted(state.value for state in states(runtime)) == ["done", "done", "failed"]


@pytest.mark.parametrize("method", ["place", "executed"])
def test_a_placement_policy_that_raises_ends_one_request(method):
    from sw.runtime.policies.placement import QueueTime

    calls = []

    class Failing(QueueTime):
        pass

    genuine = getattr(QueueTime, method)

    def failing(self, *args):
        calls.append(args)
        if len(calls) == 2:
            raise Trouble("cannot place")
        return genuine(self, *args)

    setattr(Failing, method, failing)
    device = Device(FakeSoc(TINY))
    runtime = Runtime(device, "fcfs", lambda *args, **named: Failing([0.0] * TINY.engines), placed=True)
    for i in range(3):
        runtime.submit(device.load(walking_image(TINY, jobs=2, name=f"m{i}")), X)
    served(runtime)
    assert sorted(state.value for state in states(runtime)) == ["done", "done", "failed"]


@pytest.mark.parametrize("announced", [False, True])
def test_a_rule_that_raises_ends_the_request_it_was_asked_for(announced):
    def rule(situation):
        raise Trouble("no rule")

    device = Device(FakeSoc(TINY))
    long, urgent = device.load(walking_image(TINY, jobs=6)), device.load(smashing_image(TINY))
    runtime = Runtime(device, "fcfs", preemptive=True, rule=rule)
    runtime.submit(long, X)
    runtime.submit(urgent, X, priority=1, arrival=device.bus.cycle + 4000, announced=announced)
    served(runtime)
    assert states(runtime) == [State.DONE, State.FAILED]
    assert isinstance(runtime.requests[1].error, Trouble)


def test_a_callback_that_raises_fails_its_request_and_wakes_its_waiter():
    def on_end(request):
        if request.number != 2:
            raise Trouble(f"after {request.number}")

    device = Device(FakeSoc(TINY))
    runtime = Runtime(device, on_end=on_end)
    model = device.load(copy_image(TINY))
    requests = [runtime.submit(model, X) for _ in range(4)]
    requests[3].cancel()
    with pytest.raises(Trouble, match="after 0"):
        requests[0].result()
    served(runtime)
    assert states(runtime) == [State.FAILED, State.FAILED, State.DONE, State.CANCELLED]
    assert isinstance(requests[3].error, RequestCancelled) and "after 3" in requests[3].error.__notes__[0]
    device.unload(model)


def test_waiting_for_a_result_inside_of_a_callback_is_refused():
    device = Device(FakeSoc(TINY))
    runtime = Runtime(device, on_end=lambda request: runtime.requests[-1].result())
    model = device.load(copy_image(TINY))
    requests = [runtime.submit(model, X) for _ in range(2)]
    with pytest.raises(DriverError, match="in a turn already"):
        requests[0].result()
    served(runtime)
    assert states(runtime) == [State.FAILED, State.DONE]


@pytest.mark.parametrize("lie", ["raises", "shape", "type", "missing"])
def test_a_step_on_the_cpu_that_fails_or_lies_ends_its_request(monkeypatch, lie):
    device = Device(FakeSoc(TINY))
    runtime = Runtime(device)
    models = [device.load(negating_image(TINY, name=f"n{i}")) for i in range(3)]
    requests = [runtime.submit(model, X) for model in models]
    session, genuine = requests[1].data, requests[1].data.compute_host

    def lying(step):
        (name, value), *_ = genuine(step).items()
        if lie == "raises":
            raise Trouble("no step")
        return {"shape": {name: value[:, :1]}, "type": {name: value.astype(np.float64)}, "missing": {"q": value}}[lie]

    monkeypatch.setattr(session, "compute_host", lying)
    served(runtime)
    assert states(runtime) == [State.DONE, State.FAILED, State.DONE]


def test_outputs_that_cannot_be_fetched_end_their_request(monkeypatch):
    device = Device(FakeSoc(TINY))
    runtime = Runtime(device)
    requests = [runtime.submit(device.load(copy_image(TINY)), X) for _ in range(3)]

    def fetch():
        raise Trouble("no outputs")

    monkeypatch.setattr(requests[1].data, "fetch", fetch)
    served(runtime)
    assert states(runtime) == [State.DONE, State.FAILED, State.DONE]


@pytest.mark.parametrize("damage", ["no table", "other job", "dirty LV0", "nonsense"])
def test_a_task_that_cannot_be_suspended_is_aborted_and_the_urgent_one_runs(damage):
    device = Device(FakeSoc(TINY))
    long, urgent = device.load(walking_image(TINY, jobs=6)), device.load(smashing_image(TINY))
    points = long.image.meta.cancel_points  # the loader refuses all of these; here they come later
    if damage == "no table":
        points.clear()
    for point in points:
        if damage == "other job":
            point.job = (point.job + 1) % 6
        for live in point.live:
            live.dirty, live.space = (True, Space.LV0_ACT) if damage == "dirty LV0" else (live.dirty, live.space)
            live.segment = 99 if damage == "nonsense" else live.segment
    runtime = Runtime(device, "fcfs", preemptive=True, rule=lambda situation: Mechanism.DUMP)
    first = runtime.submit(long, X)
    second = runtime.submit(urgent, X, priority=1, arrival=device.bus.cycle + 4500)
    served(runtime)
    assert first.state is State.FAILED and second.state is State.DONE
    if damage != "nonsense":
        assert isinstance(first.error, NotSuspendable) and first.error.model is long
    assert not device.suspensions and not device.transferring
    third = runtime.submit(urgent, X)
    third.result()


def test_the_driver_takes_back_a_pause_that_it_cannot_complete():
    device = Device(FakeSoc(TINY))
    model = device.load(walking_image(TINY, jobs=6))
    points = list(model.image.meta.cancel_points)
    model.write_tensor("x", np.zeros((1, 8, 8), np.int8))
    device.begin(model, 1_000_000)
    ids = device.submit(model, range(6), limit=0)
    device.bus.advance(300)
    model.image.meta.cancel_points.clear()
    with pytest.raises(NotSuspendable, match="halted at point"):
        device.suspend(range(1))
    model.image.meta.cancel_points[:] = points
    assert len(device.collect(ids, 1_000_000)) == 6  # the engine goes on


@pytest.mark.parametrize("direction", ["save", "load"])
def test_a_dump_or_restore_that_cannot_be_written_leaves_nothing_half_queued(monkeypatch, direction):
    from sw.driver.preempt.transfers import Transfers

    device = Device(FakeSoc(TINY))
    long, urgent = device.load(walking_image(TINY, jobs=6)), device.load(smashing_image(TINY))
    genuine = Transfers._gate

    def gate(self, operation, *rest):
        if operation.name == {"save": "dump", "load": "restore"}[direction]:
            raise DriverError("more supervisor programs than fit")
        genuine(self, operation, *rest)

    monkeypatch.setattr(Transfers, "_gate", gate)
    runtime = Runtime(device, "fcfs", preemptive=True, rule=lambda situation: Mechanism.DUMP)
    first = runtime.submit(long, X)
    second = runtime.submit(urgent, X, priority=1, arrival=device.bus.cycle + 4000)
    served(runtime)
    assert first.state is State.FAILED and second.state is State.DONE
    assert isinstance(first.error, NotSuspendable) and "more supervisor programs than fit" in str(first.error)
    assert not device.transferring and not device.suspensions
    monkeypatch.undo()
    runtime.submit(long, X).result()
