"""Every request ends exactly once, and errors stay with their request."""

import numpy as np
import pytest

from hw.contract.job import Fault
from hw.contract.params import preset
from sw.driver import Device
from sw.runtime import InputError, Mechanism, Runtime
from sw.runtime.request import State
from tests.support.fake_soc import FakeSoc
from tests.support.preempt_images import smashing_image, walking_image

TINY = preset("tiny")
X = np.random.default_rng(0).uniform(-60, 60, (1, 8, 8)).astype(np.float32)


def dump(situation):
    return Mechanism.DUMP


def test_inputs_that_a_model_does_not_take_fail_their_request_only():
    ended = []
    device = Device(FakeSoc(TINY))
    runtime = Runtime(device, "fcfs", on_end=ended.append)
    models = [device.load(walking_image(TINY, jobs=3, name=f"m{i}")) for i in range(3)]
    inputs = [X, np.zeros((2, 2), np.float32), X]
    requests = [runtime.submit(model, x) for model, x in zip(models, inputs, strict=True)]
    runtime.run_until_done()
    assert [request.state for request in requests] == [State.DONE, State.FAILED, State.DONE]
    assert isinstance(requests[1].error, InputError) and len(ended) == 3


def test_without_room_for_the_dump_the_other_request_starts_over():
    device = Device(FakeSoc(TINY))
    long, urgent = device.load(walking_image(TINY, jobs=6)), device.load(smashing_image(TINY))
    device.dram.allocate(device.dram.largest_block - 8192)
    runtime = Runtime(device, "fcfs", preemptive=True, rule=dump)
    first = runtime.submit(long, X)
    second = runtime.submit(urgent, X, priority=1, arrival=device.bus.cycle + 4000)
    runtime.run_until_done()
    assert first.state is second.state is State.DONE
    assert first.repeated == runtime.switches == 1 and first.ended > second.ended


def test_a_hang_while_a_pause_waits_fails_the_request_that_hangs():
    soc = FakeSoc(TINY)
    device = Device(soc)
    long, urgent = device.load(walking_image(TINY, jobs=6)), device.load(smashing_image(TINY))
    runtime = Runtime(device, "fcfs", preemptive=True, rule=dump)
    first = runtime.submit(long, X)
    second = runtime.submit(urgent, X, priority=1, arrival=device.bus.cycle + 4000)
    reset = soc._reset
    soc.inject = lambda engine, insn: setattr(soc, "hang", True) if insn.fields.get("fill") != 90 else None

    def free(engine):
        soc.hang, soc.inject = False, lambda engine, insn: None
        reset(engine)

    soc._reset = free
    runtime.run_until_done()
    assert first.state is State.FAILED and second.state is State.DONE


@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens_every_request_ends_once(seed):
    print("seed", seed)
    random = np.random.default_rng(seed)
    soc = FakeSoc(preset(("tiny", "base")[seed % 2]), seed=seed)
    device, ended = Device(soc), []
    images = [walking_image(device.params, jobs=int(random.integers(1, 6)), name=f"m{i}") for i in range(3)]
    models = [device.load(image) for image in (*images, smashing_image(device.params))]
    soc.inject = lambda engine, insn: Fault.BUS if random.random() < 0.01 else None
    rule = lambda situation: random.choice(list(Mechanism))  # noqa: E731
    runtime = Runtime(device, "round_robin", preemptive=True, rule=rule, on_end=ended.append)
    for _ in range(10):
        model, arrival = models[random.integers(4)], int(random.integers(0, 60_000))
        runtime.submit(model, X, priority=int(random.integers(0, 4)), arrival=arrival)
    runtime.requests[int(random.integers(10))].cancel()
    runtime.run_until_done()
    assert sorted(request.number for request in ended) == list(range(10))
    assert all(request.done() for request in runtime.requests) and not device.suspensions


def test_nothing_follows_an_end():
    device = Device(FakeSoc(TINY))
    runtime = Runtime(device)
    request = runtime.submit(device.load(walking_image(TINY)), X)
    request.result()
    with pytest.raises(RuntimeError, match="request 0 is done and cannot become failed"):
        request.end(0, InputError("late"))
    assert request.state is State.DONE and request.error is None
