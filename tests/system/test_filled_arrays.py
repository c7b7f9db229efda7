"""Packed groups and narrow channel tiles on the RTL beside the fast model: outputs of the reference, cycles that agree.

Groups are packed on ``tiny``; narrow tiles take machines whose vectors cover half of the outputs of an engine:
``nano``, whose memories have one bank each, and one with more.
"""

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

TINY, NANO = preset("tiny"), preset("nano")
HALVES = TINY.replace(vec_lanes=4, name="halves")
SHARE = 0.03  #: of the cycles, by which the model may be off
#: Cycles beside that: of a whole network, whose first and last layers move runs of a few bytes from and to DRAM, which
#: the model follows less, and of the layers between, which stay on chip.
ROOM, ROOM_ON_CHIP = 250, 100
SEEDS = [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 40))]
SAME = (1, 1, 1, 1)


@pytest.fixture(scope="module")
def tiny():
    with closing(open_simulator(TINY, backends.DEFAULT_BACKEND, costs=HostCosts.free())) as bus:
        yield Device(bus)


@pytest.fixture(scope="module")
def nano():
    with closing(open_simulator(NANO, backends.DEFAULT_BACKEND, costs=HostCosts.free())) as bus:
        yield Device(bus)


@pytest.fixture(scope="module")
def halves():
    with closing(open_simulator(HALVES, backends.DEFAULT_BACKEND, costs=HostCosts.free())) as bus:
        yield Device(bus)


def agrees(graph: ir.Graph, device: Device, seed: int) -> None:
    """Every other seed, points inside of layers cut what would be one instruction."""
    params = device.params
    image, _ = build(graph, params, Options(cancel_interval=(0, 600)[seed % 2]))
    inputs = random_inputs(graph, seed)
    expected, took, inner = reference.run_all(graph, inputs), [], []
    for one in (device, Device(ModelBus(params, costs=HostCosts.free()))):
        found, stats = Session(one, one.load(image)).run(inputs)
        for port in graph.outputs:
            np.testing.assert_array_equal(found[port.name], expected[port.tensor], err_msg=f"seed {seed}")
        took.append(stats.cycles)
        inner.append(sum(job.end - job.start for job in stats.jobs[1:-1]))
    assert abs(took[1] - took[0]) <= SHARE * took[0] + ROOM, took
    assert abs(inner[1] - inner[0]) <= SHARE * inner[0] + ROOM_ON_CHIP, inner


def grouped(seed: int) -> ir.Graph:
    """Grouped convolutions one behind the other, with strides, sums and tables."""
    rng, make = np.random.default_rng(seed), GraphBuilder(seed)
    group = (2, 4, 12, 1)[seed % 4]
    channels = group * int(rng.integers(3, 8)) * (1 + (group == 1))
    height, width = (int(size) for size in rng.integers(5, 14, 2))
    x = make.conv(make.input((1, height, width, 3)), channels, (1, 1))
    y = make.conv(x, channels, pads=SAME, groups=channels // group, table=bool(rng.integers(2)))
    x = make.eltwise("add", y, x)
    strides = tuple(int(step) for step in rng.integers(1, 3, 2))
    make.output(make.conv(x, 2 * channels, strides=strides, pads=SAME, groups=channels // group))
    return make.graph


def narrow(seed: int) -> ir.Graph:
    """Convolutions of which some tile has four outputs at most, with strides, sums and tables."""
    rng, make = np.random.default_rng(seed), GraphBuilder(seed)
    channels = int(rng.integers(1, 5)) + 8 * (seed % 3)
    height, width = (int(size) for size in rng.integers(1, 14, 2))
    x = make.conv(make.input((1, height, width, 3)), channels, pads=SAME)
    y = make.conv(x, channels, pads=SAME, table=bool(rng.integers(2)))
    x = make.eltwise("add", y, x)
    strides = tuple(int(step) for step in rng.integers(1, 3, 2))
    make.output(make.conv(make.conv(x, channels, (1, 1)), 3, strides=strides, pads=SAME))
    return make.graph


@pytest.mark.parametrize("seed", SEEDS)
def test_packed_groups(tiny, seed):
    agrees(grouped(seed), tiny, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_narrow_tiles(nano, seed):
    agrees(narrow(seed), nano, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_narrow_tiles_beside_several_banks(halves, seed):
    agrees(narrow(seed), halves, seed)
