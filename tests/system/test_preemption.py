"""Preemption of compiled models on the compiled RTL: whatever happens, all outputs are those of undisturbed runs."""

import random
from contextlib import closing

import numpy as np
import pytest

from benchmarks.workloads import workload
from caesura.samples import random_samples
from compiler import reference
from compiler.compile import compile_model
from compiler.pipeline import build
from compiler.plan.options import Options
from hw.contract.bus import HostCosts
from hw.contract.isa import Segment
from hw.contract.params import preset
from hw.image.image import Image
from sim import backends
from sim.rtl import open_bus
from sim.simulators import open_simulator
from sw.driver import Device
from sw.runtime import Mechanism, Runtime
from tests.support.exhaustive import Task, Walk, places
from tests.support.graphs import late_weights, random_inputs
from tests.support.networks import DIGITS, network
from tests.support.placed import branchy
from tests.support.preempt_images import smashing_image
from tests.support.random_preemption import Case, Coverage

TINY, BASE = preset("tiny"), preset("base")


def compiled(name: str, interval: int) -> Image:
    return compile_model(network(name), TINY, options=Options(cancel_interval=interval, lv2_limit="all"))


def task(device: Device, image: Image, seed: int = 0) -> Task:
    return Task(device, image, random_samples(image, 1, seed)[0])


@pytest.mark.parametrize(
    ("name", "interval"),
    [
        ("digits", 1200),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in [("digits", 300), ("ic_resnet8_int8", 6000), ("kws_dscnn_int8", 3000)]
        ),
    ],
)
@pytest.mark.parametrize("backend", [backends.DEFAULT_BACKEND, backends.MODEL])
def test_every_cancellation_point_and_job_boundary(name, interval, backend):
    with closing(open_simulator(TINY, backend, costs=HostCosts.free())) as bus:
        device = Device(bus)
        victim = task(device, compiled(name, interval))
        smash = Task(device, smashing_image(TINY), np.linspace(-60, 60, 64, dtype=np.float32).reshape(1, 8, 8))
        urgent = [smash, task(device, compiled("digits", 0), seed=1)]
        for number in range(2):
            walk = Walk(victim, [urgent[number], urgent[1 - number]])
            walk.run()
            assert len(walk.visited) == len(places(victim.model.image))
            assert set(walk.visited) == places(victim.model.image)


@pytest.fixture(scope="module")
def tiny():
    """Device and tasks on ``tiny``: some share LV2 and must be dumped, some have a part of it that need not."""
    with open_bus(TINY) as bus:
        device = Device(bus)
        quarter = TINY.lv2_bytes // 4
        images = [
            compile_model(DIGITS, TINY, options=Options(cancel_interval=100, lv2_limit="all")),
            compile_model(DIGITS, TINY, options=Options(cancel_interval=300, lv2_limit=quarter)),
            conv("conv_8x8x8_8_k3_s1_p1", 200, quarter),
            conv("conv_16x16x16_16_k3_s1_p1", 1000, 0),
            conv("conv_16x16x16_32_k1_s1_p0", 500, quarter),
            conv("conv_8x24x24_16_k3_s1_p1", 2000, 2 * quarter),
        ]
        yield device, [task(device, image, seed) for seed, image in enumerate(images)]


def conv(name: str, interval: int, limit: int) -> Image:
    return compile_model(workload(name), TINY, options=Options(cancel_interval=interval, lv2_limit=limit))


@pytest.mark.parametrize("first", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in range(20, 470, 50))])
def test_random_cases(tiny, first):
    device, tasks = tiny
    coverage = Coverage()
    for seed in range(first, first + (50 if first else 20)):
        Case(device, device.bus, tasks, seed, coverage).run()
    print(coverage)
    assert coverage.preempted > 5 and coverage.dumps and coverage.withdrawn and coverage.deepest >= 3


@pytest.mark.slow
def test_random_cases_with_resnet8(tiny):
    device, tasks = tiny
    victim, coverage = task(device, compiled("ic_resnet8_int8", 3000)), Coverage()
    for seed in range(1000, 1050):
        Case(device, device.bus, [victim, *tasks], seed, coverage, first=victim).run()
    print(coverage)
    device.unload(victim.model)
    assert coverage.preempted > 50 and coverage.deepest >= 3


@pytest.mark.slow
def test_random_cases_on_two_engines():
    with open_bus(BASE) as bus:
        device, coverage = Device(bus), Coverage()
        settings = [
            (DIGITS, 100, 0),
            (DIGITS, 300, BASE.lv2_bytes // 4),
            (workload("conv_32x28x28_32_k3_s1_p1"), 500, 0),
            (workload("conv_32x28x28_64_k3_s1_p1"), 1000, BASE.lv2_bytes // 4),
        ]
        images = [
            compile_model(path, BASE, engines=2, options=Options(cancel_interval=interval, lv2_limit=limit))
            for path, interval, limit in settings
        ]
        print([sorted({job.engine for job in image.meta.jobs}) for image in images])
        assert {job.engine for job in images[-1].meta.jobs} == {0, 1}
        tasks = [task(device, image, seed) for seed, image in enumerate(images)]
        for seed in range(2000, 2040):
            Case(device, bus, tasks, seed, coverage, first=tasks[2 + seed % 2]).run()
        print(coverage)
        assert coverage.preempted > 20 and coverage.dumps


@pytest.mark.slow
def test_resnet50_preempted_fifty_times():
    path = network("resnet50_int8_qdq")
    times, seed = 64, 5
    print(f"seed {seed}")
    rng = random.Random(seed)
    with open_bus(BASE) as bus:
        device = Device(bus)
        victim = task(device, compile_model(path, BASE, engines=BASE.engines, options=Options(lv2_limit="all")))
        small = Options(lv2_limit=BASE.lv2_bytes // 8)
        urgent = task(
            device, compile_model(workload("conv_8x8x8_8_k3_s1_p1"), BASE, engines=BASE.engines, options=small)
        )
        runtime = Runtime(device, "fcfs", preemptive=True, rule=lambda situation: Mechanism.DUMP)
        begin = bus.cycle + 2000
        request = runtime.submit(victim.model, victim.inputs)
        for i in range(times):
            share = (i + rng.random()) / times
            runtime.submit(urgent.model, urgent.inputs, priority=1, arrival=begin + int(share * victim.stats.latency))
        runtime.run_until_done()
        print(request.preempted)
        assert request.preempted >= 50
        victim.check(request.outputs, f"{request.preempted} times preempted")
        for other in runtime.requests[1:]:
            urgent.check(other.outputs, f"arrived at {other.arrival}")


@pytest.mark.slow
def test_random_cases_while_weights_are_loaded_over_tensors():
    """Two engines, networks whose weights come while earlier layers compute, to where tensors lay."""
    two, kib, coverage = TINY.replace(engines=2), 1024, Coverage()
    settings = [
        (late_weights(2), 60, 800),
        (late_weights(3), 52, 2000),
        (branchy(3, 8, 24), 40, 600),
        (branchy(9, 8, 32), 28, 500),
    ]
    with open_bus(two) as bus:
        device, tasks = Device(bus), list[Task]()
        for seed, (graph, limit, interval) in enumerate(settings):
            options = Options(engines=2, lv2_limit=limit * kib, cancel_interval=interval)
            image, inputs = build(graph, two, options)[0], random_inputs(graph, seed)
            tensors = image.meta.segment_sizes[Segment.LV2]
            assert any(size and start < tensors for start, size in (job.window for job in image.meta.jobs))
            tasks.append(Task(device, image, inputs))
            expected = reference.run_all(graph, inputs)
            assert all(np.array_equal(tasks[-1].expected[port.name], expected[port.tensor]) for port in graph.outputs)
        for seed in range(3000, 3040):
            Case(device, bus, tasks, seed, coverage, first=tasks[seed % 2]).run()
        print(coverage)
        assert coverage.preempted > 40 and coverage.dumps > 20 and coverage.deepest >= 3
