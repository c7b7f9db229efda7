"""Units on real scratchpads: DRAM → LV2 → LV1 → LV2 → DRAM, with the narrow adapters between."""

import random

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from hw.contract.isa import Op
from hw.contract.params import SocParams
from hw.dma.units import Ld1Unit, Ld2Unit, St1Unit, St2Unit
from hw.interfaces import BusReadPort, BusWritePort, UnitPort
from hw.scratchpad import NarrowRead, NarrowWrite, Scratchpad
from tests.hw.dma.harness import WIDE, Segments, command, copy
from tests.support.memories import serve_bus_read, serve_bus_write
from tests.support.streams import Stalls, simulate, stream_put

UNITS = {Op.LD2: "ld2", Op.LD1: "ld1", Op.ST1: "st1", Op.ST2: "st2"}


class Chain(wiring.Component):
    """Four units around LV1 and LV2. Members: a ``UnitPort`` for each, ``read`` and ``write``: the bus."""

    def __init__(self, params: SocParams) -> None:
        self.params = params
        super().__init__(
            {"read": Out(BusReadPort(params)), "write": Out(BusWritePort(params))}
            | {name: Out(UnitPort()) for name in UNITS.values()}
        )

    def elaborate(self, platform):
        m = Module()
        p = self.params
        m.submodules.lv1 = lv1 = Scratchpad(p.lv1_bytes, p.lv1_word, p.lv1_banks, readers=1, writers=1)
        m.submodules.lv2 = lv2 = Scratchpad(p.lv2_bytes, p.lv1_word, p.lv2_banks, readers=2, writers=2)
        m.submodules.narrow_read = narrow_read = NarrowRead(lv2.addr_width, p.lv1_word, p.dram_word)
        m.submodules.narrow_write = narrow_write = NarrowWrite(lv2.addr_width, p.lv1_word, p.dram_word)
        units = {"ld2": Ld2Unit(p), "ld1": Ld1Unit(p), "st1": St1Unit(p), "st2": St2Unit(p)}
        for name, unit in units.items():
            m.submodules[name] = unit
            wiring.connect(m, unit.unit, wiring.flipped(getattr(self, name)))
        wiring.connect(m, units["ld2"].src, wiring.flipped(self.read))
        wiring.connect(m, units["ld2"].dst, narrow_write.narrow)
        wiring.connect(m, narrow_write.wide, lv2.write[0])
        wiring.connect(m, units["ld1"].src, lv2.read[0])
        wiring.connect(m, units["ld1"].dst, lv1.write[0])
        wiring.connect(m, units["st1"].src, lv1.read[0])
        wiring.connect(m, units["st1"].dst, lv2.write[1])
        wiring.connect(m, units["st2"].src, narrow_read.narrow)
        wiring.connect(m, narrow_read.wide, lv2.read[1])
        wiring.connect(m, units["st2"].dst, wiring.flipped(self.write))
        return m


def test_there_and_back():
    """A block of rows goes through every level and changes its alignment and pitch at each step."""
    dut = Chain(WIDE)
    dram = bytearray(random.Random(1).randbytes(1 << 14))
    rows, row = 6, 77
    steps = [
        copy(Op.LD2, src=1003, dst=5, len=row, n0=rows, src_s0=200, dst_s0=row),
        copy(Op.LD1, src=5, dst=130, len=row, n0=rows, src_s0=row, dst_s0=100),
        copy(Op.ST1, src=130, dst=4099, len=row, n0=rows, src_s0=100, dst_s0=90),
        copy(Op.ST2, src=4099, dst=8001, len=row, n0=rows, src_s0=90, dst_s0=row),
    ]
    expected = b"".join(dram[1003 + 200 * i :][:row] for i in range(rows))

    async def run(ctx) -> None:
        for insn in steps:
            unit = getattr(dut, UNITS[insn.op])
            await stream_put(ctx, unit.cmd, command(insn, Segments()))
            while not ctx.get(unit.done):
                await ctx.tick()

    bus = serve_bus_read(dut.read, dram, latency=20, stalls=Stalls(2, 0.2))
    bus += serve_bus_write(dut.write, dram, latency=20, stalls=Stalls(3, 0.2))
    simulate(dut, run, background=bus)
    assert dram[8001 : 8001 + rows * row] == expected
