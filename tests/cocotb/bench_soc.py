"""Runs inside the Verilog simulator: registers, and jobs without compiler and driver."""

import random

import cocotb
from cocotb.task import bridge

from hw.contract.bus import BusError
from hw.contract.isa import Op
from hw.contract.params import preset
from hw.contract.regs import ID_VALUE, EngineState, engine_reg, global_reg
from tests.cocotb.cocotb_bus import CocotbBus
from tests.hw.soc_bench import END, SocBench, copy

PARAMS = preset("tiny")
SIZE = 600


class Bench(SocBench):
    """The SoC bench over the Verilog."""

    def __init__(self, bus: CocotbBus) -> None:
        self.params = bus.params
        self.bus = bus
        self.jobs = [0] * self.params.engines
        self.code = [0] * self.params.engines


def check_registers(bus: CocotbBus) -> None:
    assert bus.read_reg(global_reg("ID")) == ID_VALUE
    bus.write_reg(global_reg("EVENT", 3), 0x1234)
    assert bus.read_reg(global_reg("EVENT", 3)) == 0x1234
    try:
        bus.read_reg(0xFFC)
    except BusError:
        pass
    else:
        raise AssertionError("an address outside the register map was answered")


def check_copy(bus: CocotbBus) -> None:
    """Two jobs carry data DRAM -> LV2 -> LV1 -> LV2 -> DRAM."""
    bench = Bench(bus)
    bench.setup()
    for number in range(2):
        content = random.Random(number).randbytes(SIZE)
        to = 0x1000 * (number + 1)
        bus.write_mem(bench.data() + 3, content)
        body = [
            copy(Op.LD1, signal=1, len=SIZE),
            copy(Op.ST1, wait=1, signal=2, len=SIZE, dst=2048),
            copy(Op.ST2, wait=2, len=SIZE, src=2048, dst=to + 5),
            END,
        ]
        index = bench.job(body, [copy(Op.LD2, src=3, len=SIZE), END])
        bench.ring()
        assert bus.wait_irq(20_000), "no interrupt"
        bench.wait(index + 1)
        bench.write("IRQ_STATUS", 7)
        completion = bench.completion(index)
        assert (completion["status"], completion["job_id"]) == (0, 0x100 + index)
        assert bus.read_mem(bench.data() + to + 5, SIZE) == content


def check_attributes(bus: CocotbBus) -> None:
    """Every burst has the AxCACHE and AxPROT that the register says."""
    for value, read, write in ((0x0303, (3, 0), (3, 0)), (0x2F72, (2, 7), (15, 2))):
        bus.write_reg(engine_reg(0, "CONTROL"), 2)  # its rings begin anew
        while bus.read_reg(engine_reg(0, "STATUS")) & 15 != EngineState.DISABLED:
            pass
        bus.write_reg(global_reg("AXI_ATTRIBUTES"), value)
        for seen in bus.attributes.values():
            seen.clear()
        check_copy(bus)
        assert bus.attributes == {"ar": {read}, "aw": {write}}


async def run(dut, stall: float) -> None:
    bus = CocotbBus(dut, PARAMS, stall=stall)
    await bus.start()
    await bridge(check_registers)(bus)
    await bridge(check_copy)(bus)
    await bridge(check_attributes)(bus)


@cocotb.test()
async def without_stalls(dut):
    await run(dut, 0.0)


@cocotb.test()
async def with_random_stalls(dut):
    await run(dut, 0.4)
