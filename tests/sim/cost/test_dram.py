"""Estimates of durations against the fast model."""

import pytest

from hw.contract.bus import HostCosts
from hw.contract.isa import Op
from hw.contract.params import preset
from sim.cost.dram import load_cycles
from sim.model.bus import ModelBus
from tests.hw.soc_bench import DATA_BYTES, END, SocBench, copy

BASE = preset("base")
AGAIN = 20


@pytest.mark.parametrize("changes", [{}, {"dram_latency": 200}, {"axi_outstanding": 8}, {"dram_bandwidth": 50}])
@pytest.mark.parametrize(("length", "pitch"), [(16, 64), (32, 64), (64, 128), (256, 256)])
def test_runs_that_lie_apart(changes, length, pitch):
    params = BASE.replace(**changes)
    bench, runs = SocBench(params, bus=ModelBus(params, costs=HostCosts.free())), DATA_BYTES // pitch
    bench.setup()
    load = copy(Op.LD2, len=length, n1=AGAIN, n0=runs, hi=length, hi1=AGAIN, hi0=runs, src_s0=pitch, dst_s0=0)
    bench.job([load, END])
    bench.ring()
    begin = bench.bus.cycle
    bench.wait(1, limit=100_000)
    taken = bench.bus.cycle - begin
    assert taken == pytest.approx(load_cycles(AGAIN * runs, length, params), rel=0.35)
