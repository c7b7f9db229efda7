"""Maxima of columns, and then of those, on the compiled RTL: alone and in a region, stopped between them too."""

from contextlib import closing

import numpy as np
import pytest

from compiler import reference
from compiler.pipeline import build
from compiler.plan.options import Options
from hw.contract.bus import HostCosts
from hw.contract.isa import Op, VecOp
from hw.contract.params import preset
from hw.image import Image
from sim import backends
from sim.simulators import open_simulator
from sw.driver import Device
from tests.support.exhaustive import Task, Walk, places
from tests.support.graphs import GraphBuilder, random_inputs
from tests.support.images import decoded
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


def beside_a_convolution() -> GraphBuilder:
    """Maxima of 3x3 and a convolution of one tensor, which are one region, and a convolution that reads both."""
    make = GraphBuilder(1)
    x = make.conv(make.input((1, 14, 15, 3)), 16, (1, 1))
    parts = [make.conv(x, 8, pads=(1,) * 4), make.pool("max", x, (3, 3), (1, 1), (1,) * 4)]
    make.output(make.conv(make.concat(parts, 3), 8, (1, 1)))
    return make


def between_maxima(image: Image) -> int:
    """How many points lie behind maxima of columns and ahead of those of what these are."""
    found, columns = 0, False
    for insn in decoded(image.code):
        if insn.op is Op.VEC and insn["op"] == VecOp.MAX:
            columns = insn["k0"] == 1
        found += columns and insn.op is Op.CANCEL
    return found


@pytest.mark.parametrize("graph", [pyramid, beside_a_convolution])
@pytest.mark.parametrize("interval", [0, 1200])
def test_stopped_at_every_place(device, monkeypatch, graph, interval):
    """Another model overwrites all memories wherever this one can be stopped, between the two maxima of a tile too."""
    graph, joined = graph().graph, graph is beside_a_convolution
    if joined:
        monkeypatch.setattr("compiler.plan.regions.regions._PART", 1.0)  # of a graph that is hardly more than a region
    image, _ = build(graph, TINY, Options(cancel_interval=interval))
    assert any("conv+maxpool" in layer.kind for layer in image.meta.layers) == joined
    inputs = random_inputs(graph, 1)
    victim = Task(device, image, inputs)
    for port in graph.outputs:
        np.testing.assert_array_equal(victim.expected[port.name], reference.run_all(graph, inputs)[port.tensor])
    smash = Task(device, smashing_image(TINY), np.linspace(-60, 60, 64, dtype=np.float32).reshape(1, 8, 8))
    walk = Walk(victim, [smash])
    walk.run()
    device.go_on([0])  # the walk pauses by hand, also behind the last job
    assert set(walk.visited) == places(image)
    assert bool(between_maxima(image)) == bool(interval)
