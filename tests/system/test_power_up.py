"""Nothing relies on what memories hold when the power comes on."""

import random

import numpy as np
import pytest
from amaranth.hdl import MemoryData, Shape

import caesura
from compiler.pipeline import build
from compiler.plan.options import Options
from hw.contract.params import PRESETS
from hw.soc import Soc
from sim.rtl import open_bus
from sim.rtl.native.build import native_bus
from sim.rtl.top import SimTop
from tests.support.graphs import random_inputs, residual_block

TINY = PRESETS["tiny"]
PRIVATE_BYTES = 1 << 18  #: larger memories are the simulated DRAM


def rubbish(monkeypatch, seed):
    """From now on every memory without given contents starts with random ones. Returns a list that grows with them."""
    rng, filled = random.Random(seed), []
    ordinary = MemoryData.Init.__init__

    def init(self, elems, *, shape, depth):
        elems = list(elems)
        ordinary(self, elems, shape=shape, depth=depth)
        width = Shape.cast(shape).width
        if not elems and width * depth // 8 <= PRIVATE_BYTES:
            self._raw[:] = [rng.getrandbits(width) for _ in range(depth)]
            filled.append(depth)

    monkeypatch.setattr(MemoryData.Init, "__init__", init)
    return filled


@pytest.mark.slow  # builds a simulator of its own
def test_results_and_cycles_are_the_same(monkeypatch):
    graph = residual_block(1).graph
    image, _ = build(graph, TINY, Options(False, 1))
    given = random_inputs(graph, 3)
    expected, stats = inference(open_bus(TINY), image, given)
    filled = rubbish(monkeypatch, seed=11)
    found, after_rubbish = inference(native_bus(TINY, lambda: SimTop(TINY, Soc(TINY))), image, given)
    assert len(filled) > 20 and after_rubbish.cycles == stats.cycles
    for name, value in expected.items():
        assert np.array_equal(found[name], value), name


def inference(bus, image, given):
    with caesura.Device(bus) as device:
        return device.load(image).run(given)
