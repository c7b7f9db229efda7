"""The fast model behind ``Bus``: what a driver sees is what the RTL shows."""

import pytest

from hw.contract.bus import Bus, BusError, HostCosts
from hw.contract.isa import Op
from hw.contract.params import preset
from hw.contract.regs import ENGINE_REGS, GLOBAL_REGS, Access, engine_reg, global_reg, register_map
from sim.model.bus import ModelBus
from sim.rtl import open_bus
from sim.simulators import NoWaveforms, open_simulator
from tests.hw.soc_bench import END, SocBench, copy

TINY = preset("tiny")


def test_every_register_reads_as_at_power_on():
    with open_bus(TINY) as rtl, ModelBus(TINY) as model:
        assert isinstance(model, Bus)
        for name, address in register_map(TINY.engines).items():
            assert model.read_reg(address) == rtl.read_reg(address), name
            assert model.cycle == rtl.cycle, name


def test_axi_attributes_are_kept_as_on_the_rtl():
    address = global_reg("AXI_ATTRIBUTES")
    with open_bus(TINY) as rtl, ModelBus(TINY) as model:
        for value in (0xFFFFFFFF, 0x1234, 0):
            for bus in (rtl, model):
                bus.write_reg(address, value)
            assert model.read_reg(address) == rtl.read_reg(address)


def test_accesses_take_as_long_as_on_the_rtl():
    """At no cost of the host: some registers take turns."""
    names = ("ID", "EVENT[3]", "E0.COUNTER[5]", "E0.SEM[1]", "EVENT[0]", "E0.STATUS")
    addresses = [register_map(1)[name] for name in names]
    with open_bus(TINY, costs=HostCosts.free()) as rtl, ModelBus(TINY, costs=HostCosts.free()) as model:
        for number in range(60):
            for bus in (rtl, model):
                bus.advance(number % 7)
                bus.read_reg(addresses[number % len(addresses)])
            assert model.cycle == rtl.cycle, (number, names[number % len(names)])


def test_bad_accesses_are_refused():
    with ModelBus(TINY) as bus:
        read_only = next(reg.name for reg in ENGINE_REGS if reg.access is Access.RO)
        assert GLOBAL_REGS
        for address in (0x20, 0x3000, 2):
            with pytest.raises(BusError):
                bus.read_reg(address)
        with pytest.raises(BusError):
            bus.write_reg(engine_reg(0, read_only), 1)
        with pytest.raises(BusError, match="leaves the DRAM"):
            bus.read_mem(TINY.dram_bytes, 1)
    with pytest.raises(RuntimeError, match="closed"):
        bus.advance(1)
    with pytest.raises(NoWaveforms, match=r"wave.vcd.*--backend cxxrtl"):
        open_simulator(TINY, "model", vcd="wave.vcd")


def test_jobs_of_two_engines_with_prologues_and_events():
    """Jobs that wait for each other's events begin and end in the same cycles."""
    params = TINY.replace(engines=2, name="two")
    results = []
    for bus in (open_bus(params, costs=HostCosts.free()), ModelBus(params, costs=HostCosts.free())):
        bench = SocBench(params, bus=bus)
        for engine in range(2):
            bench.setup(engine)
        load = [copy(Op.LD2, len=2048), END]
        body = [copy(Op.LD1, signal=1, len=2048), copy(Op.ST1, wait=1, len=2048, dst=2048), END]
        bench.job(body, load, signal_id=1, flags=16)
        bench.job(body, load, window_after=1, engine=1, wait0_id=1, wait0_value=1, flags=4)
        for engine in range(2):
            bench.ring(engine)
        for engine in range(2):
            bench.wait(1, engine)
        names = ("prologue_start", "prologue_end", "start", "end", "ld2_bytes", "ld1_busy", "instructions")
        results.append([[bench.completion(0, engine)[name] for name in names] for engine in range(2)])
        bus.close()
    assert results[0] == results[1]
