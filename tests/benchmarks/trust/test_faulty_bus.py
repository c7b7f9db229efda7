"""Faults on purpose: of the memory in every simulator of the RTL, of interrupts and of what the host reads."""

import pytest

from benchmarks.trust.faulty_bus import FaultyBus
from hw.contract.bus import HostCosts
from hw.contract.isa import Op
from hw.contract.job import Fault, FaultUnit
from hw.contract.params import preset
from hw.contract.regs import EngineState
from sim.dram import DramFault
from sim.simulators import open_simulator
from tests.hw.soc_bench import END, SocBench, copy

TINY = preset("tiny")


@pytest.fixture(scope="module", params=["native", pytest.param("pysim", marks=pytest.mark.slow), "model"])
def soc(request):
    bench = SocBench(TINY, bus=FaultyBus(open_simulator(TINY, request.param, costs=HostCosts.free())))
    yield bench
    bench.bus.close()


@pytest.fixture
def engine(soc):
    soc.bus.heal()
    soc.write("CONTROL", 2)
    while soc.read("STATUS") & 15 != EngineState.DISABLED:
        soc.bus.advance(20)
    soc.setup()
    soc.code[0] = 0
    return soc


def there_and_back(soc, size=512):
    soc.bus.write_mem(soc.data(), bytes(range(256)) * 2)
    soc.job([copy(Op.LD2, len=size, signal=1), copy(Op.ST2, wait=1, len=size, dst=2048), END])
    soc.ring()


@pytest.mark.parametrize("kind", [DramFault.SLVERR, DramFault.DECERR])
@pytest.mark.parametrize(("offset", "unit"), [(0, FaultUnit.LD2), (2048, FaultUnit.ST2)])
def test_errors_strike_where_and_when_they_are_told_to(engine, kind, offset, unit):
    soc = engine
    soc.bus.set_dram_fault(kind, soc.data() + offset, 512, after=0, cycles=100_000)
    there_and_back(soc)
    soc.wait(1)
    assert (soc.completion(0)["status"], soc.completion(0)["unit"]) == (Fault.BUS, unit)


def test_errors_elsewhere_and_later_strike_nobody(engine):
    soc = engine
    for told in ({"base": soc.data() + 4096, "size": 64, "cycles": 100_000}, {"after": 50_000, "cycles": 10}):
        soc.bus.set_dram_fault(DramFault.SLVERR, **told)
        there_and_back(soc)
        soc.wait(soc.jobs[0])
        assert soc.completion(soc.jobs[0] - 1)["status"] == Fault.NONE


def test_a_memory_that_stands_still_costs_time_and_nothing_else(engine):
    soc = engine
    soc.bus.set_dram_fault(DramFault.FREEZE, after=100, cycles=3000)
    before = soc.bus.cycle
    there_and_back(soc)
    soc.wait(1, limit=10_000)
    assert soc.bus.cycle - before > 3000
    assert soc.completion(0)["status"] == Fault.NONE
    assert soc.bus.read_mem(soc.data() + 2048, 512) == bytes(range(256)) * 2


def test_a_host_that_cannot_hear(engine):
    soc = engine
    soc.bus.lose_interrupts(1)
    there_and_back(soc)
    assert not soc.bus.wait_irq(3000) and soc.read("IRQ_STATUS") == 1
    assert soc.bus.wait_irq(3000)
    soc.bus.delay_interrupts(500)
    before = soc.bus.cycle
    assert not soc.bus.wait_irq(300) and soc.bus.wait_irq(300)
    assert soc.bus.cycle == before + 500


def test_a_byte_that_reads_otherwise_once(engine):
    engine.bus.write_mem(0x9000, b"abc")
    engine.bus.damage_next_read(0x9001, 0x01)
    assert engine.bus.read_mem(0x9000, 3) == b"acc" and engine.bus.read_mem(0x9000, 3) == b"abc"


def test_the_bases_of_rings_have_no_low_bits(engine):
    engine.write("RING_BASE", 0x12FF)
    engine.write("CPL_BASE", 0x34AB)
    assert (engine.read("RING_BASE"), engine.read("CPL_BASE")) == (0x1200, 0x3400)


@pytest.mark.parametrize("backend", ["native", "model"])
def test_a_reset_that_the_memory_holds_up_says_so_and_ends_with_it(backend):
    soc = SocBench(TINY, bus=FaultyBus(open_simulator(TINY, backend, costs=HostCosts.free())))
    soc.setup()
    soc.bus.set_dram_fault(DramFault.FREEZE, after=200, cycles=300_000)
    there_and_back(soc)
    soc.bus.advance(1000)
    soc.write("CONTROL", 2)
    soc.bus.advance(1000)
    assert soc.read("STATUS") & 15 == EngineState.RESETTING
    soc.bus.advance(150_000)
    assert soc.read("STATUS") & 15 == EngineState.HUNG
    soc.bus.advance(160_000)
    assert soc.read("STATUS") & 15 == EngineState.DISABLED
    soc.setup()
    soc.code[0] = 0
    there_and_back(soc)
    soc.wait(1)
    assert soc.completion(0)["status"] == Fault.NONE
    soc.bus.close()


WRONG = [{"kind": 4}, {"kind": 2, "size": 0}, {"kind": 2, "base": 1 << 32}, {"kind": 1, "cycles": 0}]


@pytest.mark.parametrize("wrong", WRONG)
def test_impossible_faults_are_named(soc, wrong):
    with pytest.raises(ValueError, match="no fault of kind"):
        soc.bus.set_dram_fault(**wrong)


class NoFaults:
    """A bus to something that cannot go wrong on purpose, as hardware."""

    params, costs, cycle = TINY, HostCosts.free(), 0


def test_a_bus_without_faults_of_the_memory_says_so():
    bus = FaultyBus(NoFaults())  # type: ignore[arg-type]
    bus.set_dram_fault(DramFault.NONE)
    with pytest.raises(TypeError, match="NoFaults has no faults of the memory"):
        bus.set_dram_fault(DramFault.FREEZE, cycles=5)
