"""Random graphs with regions on the compiled RTL: outputs of the reference, undisturbed and preempted."""

from contextlib import closing

import numpy as np
import pytest

from compiler import reference
from compiler.pipeline import build
from compiler.plan.options import Options
from hw.contract.bus import HostCosts
from hw.contract.params import preset
from hw.image.image import Image
from sim import backends
from sim.simulators import open_simulator
from sw.driver import Device
from tests.support.exhaustive import Task, Walk, places
from tests.support.graphs import random_inputs
from tests.support.placed import branches, branchy
from tests.support.preempt_images import smashing_image
from tests.support.random_preemption import Case, Coverage

TINY = preset("tiny")


@pytest.fixture(autouse=True)
def _regions_of_any_size(monkeypatch):
    """In graphs of a few layers a region is most of the graph."""
    monkeypatch.setattr("compiler.plan.regions.regions._PART", 1.0)


def compiled(seed: int, interval: int) -> tuple[Image, dict, dict]:
    """A random graph with regions, its inputs, and what it must return."""
    graph = branchy(seed, operators=8, channels=24)
    image, _ = build(graph, TINY, Options(cancel_interval=interval))
    inputs = random_inputs(graph, seed)
    expected = reference.run_all(graph, inputs)
    return image, inputs, {port.name: expected[port.tensor] for port in graph.outputs}


def inside_regions(image: Image) -> set[int]:
    """The jobs of regions."""
    return {number for number, job in enumerate(image.meta.jobs) if " + " in image.meta.layers[job.layer].name}


def checked(device: Device, seed: int, interval: int) -> Task:
    """A loaded random graph, of which an undisturbed run gave what the reference says."""
    image, inputs, expected = compiled(seed, interval)
    assert inside_regions(image), f"seed {seed}: no region in it"
    task = Task(device, image, inputs)
    for name, value in expected.items():
        np.testing.assert_array_equal(task.expected[name], value, err_msg=f"seed {seed}")
    return task


@pytest.fixture(scope="module")
def device():
    with closing(open_simulator(TINY, backends.DEFAULT_BACKEND, costs=HostCosts.free())) as bus:
        yield Device(bus)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))])
def test_every_point_of_a_region(device, seed):
    """Stopped at every place, while another model overwrites all memories."""
    victim = checked(device, seed, 800)
    smash = Task(device, smashing_image(TINY), np.linspace(-60, 60, 64, dtype=np.float32).reshape(1, 8, 8))
    walk = Walk(victim, [smash])
    walk.run()
    device.go_on([0])  # the walk pauses by hand, also behind the last job
    jobs = inside_regions(victim.model.image)
    stopped = {point for job, point in walk.visited if job in jobs and point is not None}
    assert len(stopped) > 3 and set(walk.visited) == places(victim.model.image), f"seed {seed}"
    for task in (victim, smash):
        device.unload(task.model)


@pytest.mark.parametrize("first", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in range(20, 140, 20))])
def test_random_preemption(device, first):
    """Several graphs with regions that preempt each other at random times, with stalls of DRAM."""
    tasks = [checked(device, first + number, 400 + 300 * number) for number in range(4)]
    coverage = Coverage()
    for seed in range(first, first + 8):
        Case(device, device.bus, tasks, seed, coverage).run()
    for task in tasks:
        device.unload(task.model)
    assert coverage.preempted and coverage.dumps, f"seeds from {first}: {coverage}"


@pytest.mark.parametrize(
    "first", [0, pytest.param(40, marks=pytest.mark.slow), pytest.param(60, marks=pytest.mark.slow)]
)
def test_random_preemption_of_engines_on_different_layers(first):
    """Two engines, regions in which each computes layers of its own."""
    two, coverage = TINY.replace(engines=2), Coverage()
    with closing(open_simulator(two, backends.DEFAULT_BACKEND, costs=HostCosts.free())) as bus:
        device, tasks = Device(bus), []
        for number in range(3):
            graph = branches(first + number, 2 + number % 2, channels=12, size=8)
            image, plan = build(graph, two, Options(engines=2, cancel_interval=400 + 300 * number))
            assert any(isinstance(place, int) for step in plan.steps for place in step.places), f"seed {first + number}"
            task = Task(device, image, random_inputs(graph, number))
            expected = reference.run_all(graph, random_inputs(graph, number))
            for port in graph.outputs:
                np.testing.assert_array_equal(task.expected[port.name], expected[port.tensor])
            tasks.append(task)
        for seed in range(first, first + 8):
            Case(device, bus, tasks, seed, coverage).run()
    assert coverage.preempted and coverage.dumps, f"seeds from {first}: {coverage}"
