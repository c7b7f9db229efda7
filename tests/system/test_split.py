"""A model with split operators on the compiled RTL: outputs of the reference, also if it is stopped at any point."""

from contextlib import closing

import numpy as np
import pytest

from compiler import reference
from compiler.pipeline import build
from compiler.plan.options import Options
from compiler.plan.order.dimensions import CHANNELS, FRAMES, HEIGHT
from compiler.plan.plan import ImageCut
from compiler.plan.split.parts import cut
from hw.contract.bus import HostCosts
from hw.contract.params import preset
from sim import backends
from sim.simulators import open_simulator
from sw.driver import Device
from tests.support.exhaustive import Task, Walk, places
from tests.support.graphs import GraphBuilder, random_inputs
from tests.support.preempt_images import smashing_image
from tests.support.split_graphs import batched_attention, wide_middle

TINY = preset("tiny")


@pytest.fixture(scope="module")
def device():
    with closing(open_simulator(TINY, backends.DEFAULT_BACKEND, costs=HostCosts.free())) as bus:
        yield Device(bus)


def loaded(device, graph, first, last, how, part, **options):
    """A task of ``graph`` with operators ``first`` to ``last`` cut, whose outputs are those of ``graph`` on the device,
    and its image; ``part``: of the name of a layer that there is then."""
    split = cut(graph, ImageCut(frozenset(op.name for op in graph.ops[first:last]), *how))
    assert split is not None
    image, _ = build(split, TINY, Options(**options))
    assert any(part in layer.name for layer in image.meta.layers)
    inputs = random_inputs(graph, 1)
    expected = reference.run_all(graph, inputs)
    task = Task(device, image, inputs)
    for port in graph.outputs:
        np.testing.assert_array_equal(task.expected[port.name], expected[port.tensor])
    return task, image


def test_a_batch_in_parts_of_frames(device):
    """Single frames in parts of an image; slices and results are where they belong in the batch."""
    graph = wide_middle(16, 32, frames=2).graph
    loaded(device, graph, 1, 4, (FRAMES, 2, (HEIGHT, 2)), "/part1/part1")


def test_attention_of_a_batch_in_parts_of_frames(device):
    """Products of computed matrices and softmax of one frame after the other."""
    graph = batched_attention(2, 12, 16, 2).graph
    loaded(device, graph, 0, len(graph.ops), (FRAMES, 2), "/part1")


def test_groups_of_channels(device):
    """A convolution and depthwise ones behind it; what the last makes is joined in place."""
    make = GraphBuilder(2)
    x = make.conv(make.input((1, 10, 9, 8)), 72, (1, 1))
    x = make.conv(make.conv(x, 72, pads=(1,) * 4, groups=72), 72, pads=(1,) * 4, groups=72)
    make.output(make.conv(x, 8, (1, 1)))
    loaded(device, make.graph, 0, 3, (CHANNELS, 3), "/part2")


def test_every_point_of_a_split_model(device):
    """Stopped at every place while another model overwrites all memories."""
    graph = wide_middle(16, 32).graph
    victim, image = loaded(device, graph, 1, 4, (HEIGHT, 3), "/part2", cancel_interval=1500)
    smash = Task(device, smashing_image(TINY), np.linspace(-60, 60, 64, dtype=np.float32).reshape(1, 8, 8))
    walk = Walk(victim, [smash])
    walk.run()
    device.go_on([0])  # the walk pauses by hand, also behind the last job
    assert len(image.meta.cancel_points) > 10 and set(walk.visited) == places(image)
