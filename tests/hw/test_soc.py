import random

import pytest
from amaranth.hdl import ClockDomain, Module, Signal
from amaranth.sim import Simulator

from hw.contract.bus import BusError
from hw.contract.isa import Insn, Op
from hw.contract.job import COUNTERS, Fault, FaultUnit, JobFlag
from hw.contract.params import preset
from hw.contract.regs import ID_VALUE, EngineState, global_reg
from hw.control.engine_control import EngineControl
from sim.backends import DEFAULT_BACKEND
from tests.hw.soc_bench import END, ENGINE_MEMORY, LV2_BYTES, SocBench, copy

PARAMS = preset("tiny").replace(engines=2)


@pytest.fixture(scope="module", params=[DEFAULT_BACKEND, pytest.param("pysim", marks=pytest.mark.slow)])
def soc(request):
    """One SoC for all tests: each leaves its engines usable."""
    bench = SocBench(PARAMS, request.param)
    yield bench
    bench.bus.close()


@pytest.fixture
def engines(soc):
    """Both engines, freshly reset."""
    for engine in range(PARAMS.engines):
        reset(soc, engine)
        soc.setup(engine)
        soc.code[engine] = 0
    return soc


def reset(soc: SocBench, engine: int) -> None:
    soc.write("CONTROL", 2, engine)
    for _ in range(100):
        if soc.read("STATUS", engine) & 15 == EngineState.DISABLED:
            return
        soc.bus.advance(20)
    raise AssertionError("the engine does not come out of reset")


def fill(soc: SocBench, size: int, engine: int = 0, seed: int = 1) -> bytes:
    content = random.Random(seed).randbytes(size)
    soc.bus.write_mem(soc.data(engine), content)
    return content


def round_trip(size: int, to: int):
    """Body that carries ``size`` bytes LV2 -> LV1 -> LV2 -> DRAM offset ``to``; the prologue brings them to LV2."""
    return [
        copy(Op.LD1, signal=1, len=size),
        copy(Op.ST1, wait=1, signal=2, len=size, dst=2048),
        copy(Op.ST2, wait=2, len=size, src=2048, dst=to),
        END,
    ]


def test_global_registers(soc):
    read = soc.bus.read_reg
    assert read(global_reg("ID")) == ID_VALUE
    assert read(global_reg("PARAMS")) == int(PARAMS.digest()[:8], 16)
    assert read(global_reg("ENGINES")) == 2
    cycle = read(global_reg("CYCLE_LO"))
    assert 0 <= soc.bus.cycle - cycle < 50
    assert read(global_reg("CYCLE_HI")) == 0
    assert read(global_reg("AXI_ATTRIBUTES")) == 0x0303
    soc.bus.write_reg(global_reg("AXI_ATTRIBUTES"), 0xFFFFFFFF)
    assert read(global_reg("AXI_ATTRIBUTES")) == 0x7F7F
    soc.bus.write_reg(global_reg("EVENT", 5), 0xFFFFFFF0)
    assert soc.event(5) == 0xFFFFFFF0
    assert soc.event(63) == 0


@pytest.mark.parametrize("address", [0x20, 0xFC, 0x200, 0x106C, 0x1200 + 4 * len(COUNTERS), 0x3000, 0x8000])
def test_unmapped_register(soc, address):
    with pytest.raises(BusError):
        soc.bus.read_reg(address)
    with pytest.raises(BusError):
        soc.bus.write_reg(address, 1)


def test_read_only_register(soc):
    with pytest.raises(BusError):
        soc.bus.write_reg(global_reg("ID"), 1)


def test_data_goes_through_the_scratchpads(engines):
    soc = engines
    content = fill(soc, 300)
    soc.job(round_trip(300, 2048), prologue=[copy(Op.LD2, len=300), END])
    soc.job([copy(Op.LD2, signal=1, len=77), copy(Op.ST2, wait=1, len=77, dst=3001), END])
    soc.ring()
    assert soc.bus.wait_irq(5000)
    soc.wait(2)
    assert soc.bus.read_mem(soc.data() + 2048, 300) == content
    assert soc.bus.read_mem(soc.data() + 3001, 77) == content[:77]
    first, second = soc.completion(0), soc.completion(1)
    assert first["status"] == second["status"] == Fault.NONE
    assert first["prologue_bytes"] == first["ld1_bytes"] == first["st1_bytes"] == first["st2_bytes"] == 300
    assert first["ld2_bytes"] == second["prologue_bytes"] == 0
    assert second["ld2_bytes"] == 77
    assert second["start"] - first["end"] < 70
    assert soc.bus.read_reg(global_reg("IRQ")) == 1


def test_limit_fault_reaches_only_its_engine(engines):
    soc = engines
    content = fill(soc, 256, engine=1)
    soc.job([copy(Op.LD2, len=64, src=0x4000 - 10, signal=1), copy(Op.ST2, wait=1, len=64), END])
    soc.job(round_trip(256, 2048), prologue=[copy(Op.LD2, len=256), END], engine=1)
    soc.ring(0)
    soc.ring(1)
    soc.wait(1, engine=1)
    soc.wait(1, engine=0)
    assert soc.completion(0, engine=1)["status"] == Fault.NONE
    assert soc.bus.read_mem(soc.data(1) + 2048, 256) == content
    completion = soc.completion(0)
    assert (completion["status"], completion["unit"], completion["pc"]) == (Fault.LIMIT, FaultUnit.LD2, 0)
    assert soc.read("STATUS") & 15 == EngineState.FAULT
    assert soc.read("FAULT_JOB") == 0x100


def test_engine_is_usable_after_a_reset_in_mid_flight(engines):
    soc = engines
    content = fill(soc, 2048)
    for pause in (30, 190, 333, 700):
        for _ in range(2):
            soc.job([copy(Op.LD2, len=2048, signal=1), copy(Op.ST2, wait=1, len=2048, dst=0x2000), END],
                    prologue=[copy(Op.LD2, len=1024, dst=2048), END])  # fmt: skip
        soc.ring()
        soc.bus.advance(pause)
        reset(soc, 0)
        assert soc.read("RING_TAIL") == soc.read("RING_HEAD") == soc.read("RING_FETCHED") == 0
        assert [soc.read("SEM", 0, i) for i in (0, 1)] == [0, 0]
        soc.setup()
        soc.code[0] = 0
    soc.job(round_trip(1024, 0x1000), prologue=[copy(Op.LD2, len=1024), END])
    soc.ring()
    soc.wait(1)
    assert soc.completion(0)["status"] == Fault.NONE
    assert soc.bus.read_mem(soc.data() + 0x1000, 1024) == content[:1024]


def test_reset_clears_a_fault(engines):
    soc = engines
    soc.job([bytes(64)])
    soc.ring()
    soc.wait(1)
    assert soc.completion(0)["status"] == Fault.ILLEGAL
    reset(soc, 0)
    assert soc.read("FAULT_CODE") == 0
    soc.setup()
    soc.job([END])
    soc.ring()
    soc.wait(1)
    assert soc.completion(0)["status"] == Fault.NONE


def test_events_hand_data_from_engine_to_engine(engines):
    """Engine 0 loads into LV2, engine 1 stores it; then the other way round: no host in between."""
    soc = engines
    for number in (1, 2):
        soc.bus.write_reg(global_reg("EVENT", number), 0xFFFFFFFF)  # comparison is modulo 2^32
    content = fill(soc, 512)
    shared = {"base6": 2 * LV2_BYTES}
    soc.job([copy(Op.LD2, len=512), END], flags=JobFlag.SIGNAL, signal_id=1, **shared)
    soc.job([copy(Op.LD2, len=512, dst=1024), END], flags=JobFlag.WAIT0, wait0_id=2, wait0_value=0, **shared)
    soc.job([copy(Op.ST2, len=512, dst=512), END], engine=1, flags=JobFlag.WAIT0 | JobFlag.SIGNAL,
            wait0_id=1, wait0_value=0, signal_id=2, **shared)  # fmt: skip
    soc.ring(1)
    soc.bus.advance(400)
    assert soc.read("RING_HEAD", 1) == 0
    soc.ring(0)
    soc.wait(2, engine=0)
    soc.wait(1, engine=1)
    assert soc.bus.read_mem(soc.data(1) + 512, 512) == content
    assert soc.completion(1)["start"] > soc.completion(0, engine=1)["end"]
    assert soc.event(1) == soc.event(2) == 0


def test_engines_run_side_by_side(engines):
    soc = engines
    contents = [fill(soc, 1024, engine, seed=engine) for engine in range(2)]
    for engine in range(2):
        soc.job(round_trip(1024, 2048), prologue=[copy(Op.LD2, len=1024), END], engine=engine)
    for engine in range(2):
        soc.ring(engine)
    for engine in range(2):
        soc.wait(1, engine)
        assert soc.bus.read_mem(engine * ENGINE_MEMORY + 0x4000 + 2048, 1024) == contents[engine]
    first, second = soc.completion(0, 0), soc.completion(0, 1)
    assert max(first["start"], second["start"]) < min(first["end"], second["end"])


def test_reset_keeps_where_the_rings_lie_and_nothing_else(engines):
    soc = engines
    kept = {"RING_BASE": 0x100, "RING_SIZE": 5, "CPL_BASE": 0x2300, "CPL_SIZE": 6, "IRQ_ENABLE": 5}
    soc.job([END])
    soc.ring()
    soc.wait(1)
    soc.write("CPL_HEAD", 1)
    soc.write("CONTROL", 0)
    for name, value in kept.items():
        soc.write(name, value)
    reset(soc, 0)
    assert {name: soc.read(name) for name in kept} == kept
    for name in (
        "CONTROL",
        "IRQ_STATUS",
        "RING_TAIL",
        "RING_FETCHED",
        "RING_HEAD",
        "RING_LOADED",
        "CPL_HEAD",
        "CPL_TAIL",
    ):
        assert soc.read(name) == 0, name
    assert soc.read("RING_SIZE", 1) == 3, "the other engine is untouched"


def test_a_halted_engine_comes_out_of_reset_within_a_few_cycles(engines):
    soc = engines
    long = [Insn(Op.CANCEL, {"point": 1}), *[copy(Op.LD1, len=64)] * 30, END]
    soc.job(long)
    soc.job(long, prologue=[copy(Op.LD2, len=1024), END])
    soc.write("CONTROL", 5)
    soc.ring()
    soc.bus.advance(300)
    for _ in range(2):  # before the body, then inside it
        assert soc.read("STATUS") & 15 == EngineState.HALTED
        soc.write("CONTROL", 1)
        soc.write("CONTROL", 5)
        soc.bus.advance(900)
    assert soc.read("STATUS") & 15 == EngineState.HALTED
    before = soc.bus.cycle
    soc.write("CONTROL", 2)
    while soc.read("STATUS") & 15 != EngineState.DISABLED:
        assert soc.bus.cycle - before < 40


def test_power_on_clears_what_an_engine_reset_keeps():
    """Under the reset of the clock domain, not that of an engine."""
    dut = EngineControl(PARAMS)

    async def testbench(ctx):
        ctx.set(dut.regs.ring_base.w_data, 0x300)
        ctx.set(dut.regs.ring_base.w_stb, 1)
        await ctx.tick()
        ctx.set(dut.regs.ring_base.w_stb, 0)
        assert ctx.get(dut.regs.ring_base.r_data) == 0x300
        ctx.set(reset_signal, 1)
        await ctx.tick()
        ctx.set(reset_signal, 0)
        await ctx.tick()
        assert ctx.get(dut.regs.ring_base.r_data) == 0

    reset_signal = Signal()
    top = Module()
    top.domains.sync = domain = ClockDomain("sync")
    top.submodules.dut = dut
    top.d.comb += domain.rst.eq(reset_signal)
    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
