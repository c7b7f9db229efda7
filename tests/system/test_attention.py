"""Attention blocks of random shapes on the compiled RTL: outputs of the reference, undisturbed, stopped at every point
while another model overwrites all memories, and preempted at random."""

from contextlib import closing

import numpy as np
import pytest

from compiler import ir, reference
from compiler.pipeline import build
from compiler.plan.options import Options
from hw.contract.bus import HostCosts
from hw.contract.params import preset
from sim import backends
from sim.simulators import open_simulator
from sw.driver import Device
from tests.support.exhaustive import Task, Walk, places
from tests.support.graphs import GraphBuilder, random_inputs
from tests.support.preempt_images import smashing_image
from tests.support.random_preemption import Case, Coverage

TINY = preset("tiny")


@pytest.fixture(scope="module")
def device():
    with closing(open_simulator(TINY, backends.DEFAULT_BACKEND, costs=HostCosts.free())) as bus:
        yield Device(bus)


def block(seed: int) -> ir.Graph:
    """Attention of a random shape, a normalisation behind it, and a product with weights."""
    rng = np.random.default_rng(seed)
    heads, width, length = int(rng.integers(1, 5)), 4 * int(rng.integers(1, 6)), int(rng.integers(3, 40))
    keys, mask = int(rng.integers(3, 40)), bool(rng.integers(2))
    print(f"seed {seed}: {heads} heads of {width}, {length} queries, {keys} keys, mask {mask}")
    make = GraphBuilder(seed)
    mixed = make.layer_norm(make.attention(length, heads, width, keys, mask))
    make.output(make.conv(make.reshape(mixed, (1, 1, length, heads * width)), 24, (1, 1)))
    return make.graph


def checked(device: Device, seed: int, interval: int) -> Task:
    """A loaded block, of which an undisturbed run gave what the reference says."""
    graph = block(seed)
    image, _ = build(graph, TINY, Options(cancel_interval=interval))
    task = Task(device, image, random_inputs(graph, seed))
    expected = reference.run_all(graph, random_inputs(graph, seed))
    for port in graph.outputs:
        np.testing.assert_array_equal(task.expected[port.name], expected[port.tensor], err_msg=f"seed {seed}")
    return task


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))])
def test_every_point(device, seed):
    victim = checked(device, seed, 700)
    smash = Task(device, smashing_image(TINY), np.linspace(-60, 60, 64, dtype=np.float32).reshape(1, 8, 8))
    walk = Walk(victim, [smash])
    walk.run()
    device.go_on([0])  # the walk pauses by hand, also behind the last job
    assert set(walk.visited) == places(victim.model.image) and len(walk.visited) > 10, f"seed {seed}"
    for task in (victim, smash):
        device.unload(task.model)


@pytest.mark.parametrize("first", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in range(20, 140, 20))])
def test_random_preemption(device, first):
    tasks = [checked(device, first + number, 400 + 300 * number) for number in range(4)]
    coverage = Coverage()
    for seed in range(first, first + 6):
        Case(device, device.bus, tasks, seed, coverage).run()
    for task in tasks:
        device.unload(task.model)
    assert coverage.preempted and coverage.dumps, f"seeds from {first}: {coverage}"


@pytest.mark.parametrize("first", [100, *(pytest.param(i, marks=pytest.mark.slow) for i in range(120, 220, 20))])
def test_random_shapes(device, first):
    for seed in range(first, first + 6):
        device.unload(checked(device, seed, 0).model)
