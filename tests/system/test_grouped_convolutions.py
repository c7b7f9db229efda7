"""Packed groups on the RTL of ``tiny`` beside the fast model: outputs of the reference, and cycles that agree."""

from contextlib import closing

import numpy as np
import pytest

from compiler import ir, reference
from compiler.pipeline import build
from compiler.plan.options import Options
from hw.contract.bus import HostCosts
from hw.contract.params import preset
from sim import backends
from sim.model.bus import ModelBus
from sim.simulators import open_simulator
from sw.driver import Device
from sw.runtime import Session
from tests.support.graphs import GraphBuilder, random_inputs

TINY = preset("tiny")
SHARE, ROOM = (
    0.03,
    250,
)  #: by how much the model may be off: of the cycles, and stores of short runs, which it follows less


@pytest.fixture(scope="module")
def rtl():
    with closing(open_simulator(TINY, backends.DEFAULT_BACKEND, costs=HostCosts.free())) as bus:
        yield Device(bus)


def grouped(seed: int) -> ir.Graph:
    """Grouped convolutions one behind the other, with strides, sums and tables."""
    rng, make = np.random.default_rng(seed), GraphBuilder(seed)
    group = (2, 4, 12, 1)[seed % 4]
    channels = group * int(rng.integers(3, 8))
    height, width = (int(size) for size in rng.integers(5, 14, 2))
    x = make.conv(make.input((1, height, width, 3)), channels, (1, 1))
    y = make.conv(x, channels, pads=(1, 1, 1, 1), groups=channels // group, table=bool(rng.integers(2)))
    x = make.eltwise("add", y, x)
    strides = tuple(int(step) for step in rng.integers(1, 3, 2))
    make.output(make.conv(x, 2 * channels, strides=strides, pads=(1, 1, 1, 1), groups=channels // group))
    return make.graph


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 40))])
def test_model_and_rtl_agree(rtl, seed):
    graph = grouped(seed)
    image, _ = build(graph, TINY, Options(cancel_interval=(0, 600)[seed % 2]))
    inputs = random_inputs(graph, seed)
    expected, took = reference.run_all(graph, inputs), []
    for device in (rtl, Device(ModelBus(TINY, costs=HostCosts.free()))):
        found, stats = Session(device, device.load(image)).run(inputs)
        for port in graph.outputs:
            np.testing.assert_array_equal(found[port.name], expected[port.tensor], err_msg=f"seed {seed}")
        took.append(stats.cycles)
    assert abs(took[1] - took[0]) <= SHARE * took[0] + ROOM, took
