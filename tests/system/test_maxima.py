"""Maxima of columns, and then of those, on the compiled RTL: in one region with convolutions, and stopped between."""

from contextlib import closing

import numpy as np
import pytest

from compiler import reference
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

TINY = preset("tiny")


@pytest.fixture(scope="module")
def device():
    with closing(open_simulator(TINY, backends.DEFAULT_BACKEND, costs=HostCosts.free())) as bus:
        yield Device(bus)


def pyramid() -> GraphBuilder:
    """Maxima of 5x5 of maxima of 5x5, beside each other behind a convolution."""
    make = GraphBuilder(4)
    parts = [make.conv(make.input((1, 14, 11, 8)), 24, (1, 1))]
    for _ in range(2):
        parts.append(make.pool("max", parts[-1], (5, 5), (1, 1), (2, 2, 2, 2)))
    make.output(make.concat(parts, 3))
    return make


@pytest.mark.parametrize("interval", [0, 1200])
def test_stopped_at_every_place(device, interval):
    """Another model overwrites all memories wherever this one can be stopped, between the two maxima of a tile too."""
    graph = pyramid().graph
    image, _ = build(graph, TINY, Options(cancel_interval=interval))
    inputs = random_inputs(graph, 1)
    victim = Task(device, image, inputs)
    for port in graph.outputs:
        np.testing.assert_array_equal(victim.expected[port.name], reference.run_all(graph, inputs)[port.tensor])
    smash = Task(device, smashing_image(TINY), np.linspace(-60, 60, 64, dtype=np.float32).reshape(1, 8, 8))
    walk = Walk(victim, [smash])
    walk.run()
    device.go_on([0])  # the walk pauses by hand, also behind the last job
    assert set(walk.visited) == places(image)
    assert not interval or len(image.meta.cancel_points) > 10
