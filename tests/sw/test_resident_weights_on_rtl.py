"""Weights that stay in LV2 from one inference to the next: nobody ever computes with those of others."""

import random

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from compiler.compile import compile_model
from compiler.plan.options import Options
from hw.contract.params import preset
from sim.backends import DEFAULT_BACKEND, MODEL
from sim.simulators import open_simulator
from sw.driver import Device
from sw.driver.memory.ranges import overlap
from sw.runtime import Mechanism, Runtime, Session
from tests.support.model_soc import ModelSoc
from tests.support.preempt_images import smashing_image, walking_image
from tests.support.sampled import sampled

TINY = preset("tiny")
DIGITS = "examples/digits/digits.onnx"
OPTIONS = Options(cancel_interval=300, lv2_limit="all")
X = np.random.default_rng(0).uniform(-60, 60, (1, 8, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def images():
    """Digits, and the same network with other weights: they lie at the same places."""
    proto = onnx.load(DIGITS)
    for constant in proto.graph.initializer:
        value = numpy_helper.to_array(constant)
        if value.dtype == np.int8 and value.ndim > 1:
            constant.CopyFrom(numpy_helper.from_array(value[::-1].copy(), constant.name))
    return [compile_model(each, TINY, name="digits", options=OPTIONS) for each in (DIGITS, proto)]


@pytest.fixture(params=[DEFAULT_BACKEND, MODEL])
def device(request):
    bus = open_simulator(TINY, request.param)
    yield Device(bus)
    bus.close()


@pytest.fixture(scope="module")
def samples():
    return np.load("examples/digits/digits_samples.npz")["input"].astype(np.float32)


def left_out(model, stats) -> int:
    """Prologues that did not run."""
    return sum(
        model.image.meta.jobs[job.job].prologue_pc is not None and not job.prologue_start and not job.resumed
        for job in stats.jobs
    )


def run(device, model, x):
    outputs, stats = Session(device, model).run(x)
    (value,) = outputs.values()
    return value, left_out(model, stats), stats.cycles


def test_the_second_inference_loads_nothing_and_is_shorter(device, images, samples):
    expected = run(device, device.load(images[0]), samples[:1])[0]
    model = device.load(images[0], keep_weights=True)
    runs = [run(device, model, samples[:1]) for _ in range(3)]
    assert all(np.array_equal(value, expected) for value, _, _ in runs)
    assert [count for _, count, _ in runs] == [0, 3, 3]
    assert runs[1][2] < runs[0][2]
    device.unload(model)
    again = device.load(images[0], keep_weights=True)
    assert run(device, again, samples[:1])[1] == 3, "another load of the same image finds them, too"


@pytest.mark.parametrize("other", ["another tenant", "other weights", "all of LV2", "an engine that was reset"])
def test_who_comes_after_others_loads_again(device, images, samples, other):
    model = device.load(images[0], keep_weights=True)
    expected = run(device, model, samples[:1])[0]
    assert run(device, model, samples[:1])[1] == 3
    if other == "another tenant":
        assert run(device, device.load(images[0], keep_weights=True, tenant="b"), samples[:1])[1] == 0
    elif other == "other weights":
        assert run(device, device.load(images[1], keep_weights=True), samples[:1])[1] == 0
    elif other == "all of LV2":
        run(device, device.load(smashing_image(TINY)), X)
    else:
        device.begin(model, 1000)
        device.submit(model, range(2), limit=1000)
        device.bus.advance(50)
        device.abort(model)
    value, count, _ = run(device, model, samples[:1])
    assert count == 0
    np.testing.assert_array_equal(value, expected)


def test_those_who_do_not_keep_weights_spoil_those_of_others(device, images, samples):
    kept, plain = device.load(images[0], keep_weights=True), device.load(images[0])
    assert [run(device, model, samples[:1])[1] for model in (kept, kept, plain, kept)] == [0, 3, 0, 0]


@pytest.mark.parametrize("seed", sampled(range(5), 2))
def test_random_uses(device, images, samples, seed):
    """Inferences alone, preempted with everything dumped, and killed, of models that have LV2 in common."""
    rng, kept, preempted = random.Random(seed), 0, 0
    print("seed", seed)
    models = [
        device.load(image, keep_weights=keep, tenant=tenant)
        for image, keep, tenant in (
            (images[0], True, None), (images[0], True, None), (images[1], True, None), (images[0], True, "b"),
            (images[0], False, None),
        )
    ]  # fmt: skip
    smash = device.load(smashing_image(TINY))
    inputs = {id(model): samples[i : i + 1] for i, model in enumerate(models)} | {id(smash): X}
    expected = {}
    for model, image in zip(models, (0, 0, 1, 0, 0), strict=True):
        fresh = device.load(images[image])
        expected[id(model)] = run(device, fresh, inputs[id(model)])[0]
        device.unload(fresh)
    expected[id(smash)] = run(device, smash, X)[0]
    assert not np.array_equal(expected[id(models[0])], expected[id(models[2])])
    for _ in range(40):
        model = rng.choice(models[:4])
        what = rng.choice(["alone", "alone", "alone", "preempted", "killed"])
        if what == "killed":
            device.begin(model, 10**6)
            device.submit(model, range(len(model.image.meta.jobs)), limit=10**6)
            device.bus.advance(rng.randrange(3000))
            device.abort(model)
        elif what == "alone":
            value, count, _ = run(device, model, inputs[id(model)])
            kept += count
            np.testing.assert_array_equal(value, expected[id(model)])
        else:
            urgent = rng.choice([smash, *(each for each in models if each is not model)])
            rule = rng.choice([None, lambda situation: Mechanism.DUMP])
            runtime = Runtime(device, preemptive=True, **({"rule": rule} if rule else {}))
            arrival = device.bus.cycle + rng.randrange(300, 4000)
            requests = [
                runtime.submit(model, inputs[id(model)]),
                runtime.submit(urgent, inputs[id(urgent)], priority=1, arrival=arrival),
            ]
            runtime.run_until_done()
            for each, request in zip((model, urgent), requests, strict=True):
                (value,) = request.result().values()
                np.testing.assert_array_equal(value, expected[id(each)])
            preempted += requests[0].preempted > 0
    assert kept > 0 and preempted > 0


@pytest.mark.parametrize("seed", range(4))
def test_what_is_said_to_lie_in_lv2_lies_there(seed):
    """Bytes that nobody has are put down as somebody's, so that whatever passes through them has to say so."""
    rng, soc = random.Random(seed), ModelSoc(TINY)
    device, told = Device(soc), {}
    lv2, resident = soc.machine.lv2, device.lv2
    put, word = resident.put, 1024
    lv2[:] = np.random.default_rng(seed).integers(0, 256, lv2.shape)
    runtime = Runtime(device, preemptive=True, rule=lambda situation: Mechanism.DUMP)
    walk, smash = (
        device.load(walking_image(TINY, jobs=4, windows=(4096, 1024))),
        device.load(smashing_image(TINY, windows=(64, 64))),
    )

    def noted(where, tenant, digest):
        told[where, digest] = lv2[slice(*where)].copy()
        put(where, tenant, digest)

    resident.put = noted
    staged = []
    through = resident.pass_through
    resident.pass_through = lambda where, whose: (staged.extend(where), through(where, whose))
    held = preempted = 0
    for turn in range(8):
        for low in range(0, TINY.lv2_bytes, word):
            if not any(resident.has_weights((low, low + word), None, bytes([t])) for t in range(turn)):
                noted((low, low + word), None, bytes([turn]))
        now = device.bus.cycle
        staged.clear()
        requests = [
            runtime.submit(walk, X),
            runtime.submit(smash, X, priority=1, arrival=now + rng.randrange(2500)),
        ]
        runtime.run_until_done()
        preempted += requests[0].preempted
        for (where, digest), content in told.items():
            if resident.has_weights(where, None, digest):
                held += 1
                assert not overlap([where], staged)
                np.testing.assert_array_equal(lv2[slice(*where)], content)
    assert held and preempted
