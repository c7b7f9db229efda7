"""Preemption on the real RTL: small models that meet every kind of cancellation point."""

import numpy as np
import pytest

from compiler.compile import compile_model
from compiler.plan.options import Options
from hw.contract.params import preset
from sim.backends import DEFAULT_BACKEND, MODEL
from sim.simulators import open_simulator
from sw.driver import Device, DeviceFault
from sw.runtime import Mechanism, Runtime, Session
from tests.support.preempt_images import smashing_image, walking_image

TINY = preset("tiny")
LIMIT = 1_000_000
DIGITS = "examples/digits/digits.onnx"
X = np.random.default_rng(0).uniform(-60, 60, (1, 8, 8)).astype(np.float32)


@pytest.fixture(scope="module", params=[DEFAULT_BACKEND, MODEL])
def device(request):
    bus = open_simulator(TINY, request.param)
    yield Device(bus)
    bus.close()


def test_every_point_of_a_model_written_by_hand(device):
    walk, smash = device.load(walking_image(TINY, jobs=2)), device.load(smashing_image(TINY))
    expected = Session(device, smash).run(X)[0]["out"]
    seen = set()
    for delay in range(0, 1000, 20):
        data = np.random.default_rng(delay).integers(-128, 128, (1, 8, 8)).astype(np.int8)
        walk.write_tensor("x", data)
        device.begin(walk, LIMIT)
        ids = device.submit(walk, range(2), limit=LIMIT)
        device.bus.advance(delay)
        suspension = device.suspend([0], smash, verify=True)
        device.admit(smash)
        np.testing.assert_array_equal(Session(device, smash).run(X)[0]["out"], expected)
        device.resume(suspension)
        device.collect(ids, LIMIT)
        np.testing.assert_array_equal(walk.read_tensor("y"), data)
        assert device.bus.read_mem(*walk.segments[4], charge=False) == walk.image.weights
        seen |= {halt.point for halt in suspension.halts.values() if halt.in_job}
    assert len(seen) >= 8
    device.settle()
    device.unload(walk), device.unload(smash)


def test_a_model_killed_at_any_time_after_a_dump_harms_nobody(device):
    walk, smash = device.load(walking_image(TINY)), device.load(smashing_image(TINY))
    dumped = 0
    for i, delay in enumerate(range(0, 16000, 250)):
        data = np.random.default_rng(delay).integers(-128, 128, (1, 8, 8)).astype(np.int8)
        walk.write_tensor("x", data)
        device.begin(walk, LIMIT)
        ids = device.submit(walk, range(1), limit=LIMIT)
        device.bus.advance(300 + 37 * i % 700)
        suspension = device.suspend([0], smash)
        dumped += device.admit(smash) is not None
        device.begin(smash, LIMIT)
        device.submit(smash, range(1), limit=LIMIT)
        device.bus.advance(delay)
        device.abort(smash)
        device.resume(suspension)
        device.collect(ids, LIMIT)
        np.testing.assert_array_equal(walk.read_tensor("y"), data, err_msg=f"killed after {delay} cycles")
    assert dumped >= 5
    device.settle()
    device.unload(walk), device.unload(smash)


def test_digits_preempted_at_random_times_by_itself_and_another(device):
    image = compile_model(DIGITS, TINY, options=Options(cancel_interval=300, lv2_limit="all"))
    samples = np.load("examples/digits/digits_samples.npz")["input"].astype(np.float32)
    models = [device.load(image), device.load(image), device.load(smashing_image(TINY))]
    inputs = [samples[:1], samples[1:2], X]
    runs = [Session(device, model).run(x) for model, x in zip(models, inputs, strict=True)]
    random, preempted = np.random.default_rng(7), 0
    for _ in range(12):
        runtime = Runtime(device, "fcfs", preemptive=True, rule=lambda situation: Mechanism.DUMP)
        at = device.bus.cycle + 1
        for priority, (model, x) in enumerate(zip(models, inputs, strict=True)):
            runtime.submit(model, x, priority=priority, arrival=at)
            at += int(random.integers(1, runs[0][1].latency))
        runtime.run_until_done()
        for request, (outputs, _) in zip(runtime.requests, runs, strict=True):
            assert request.error is None
            for name, value in outputs.items():
                np.testing.assert_array_equal(request.outputs[name], value)
        preempted += sum(request.preempted for request in runtime.requests)
    assert preempted >= 8


def test_a_halted_body_takes_none_of_the_cycles_that_it_may(device):
    walk, inside = device.load(walking_image(TINY)), 0
    for delay in range(0, 1000, 50):
        device.begin(walk, LIMIT)
        ids = device.submit(walk, range(1), limit=LIMIT, cycle_limit=3000)
        device.bus.advance(delay)
        inside += device.pause([0])[0].in_job
        device.bus.advance(20_000)
        device.go_on([0])
        device.collect(ids, LIMIT)
    assert inside >= 3
    device.begin(walk, LIMIT)
    with pytest.raises(DeviceFault, match="CYCLE_LIMIT"):
        device.collect(device.submit(walk, range(1), limit=LIMIT, cycle_limit=200), LIMIT)
    device.abort(walk)
    device.unload(walk)
