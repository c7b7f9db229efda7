"""What the native simulator cannot evaluate is refused, with the module's name, before any C is written."""

import pytest
from amaranth.hdl import ClockDomain, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.contract.params import preset
from hw.interfaces import AXI_ID_WIDTH, Axi4, Axi4Lite
from sim.rtl import SimTop
from sim.rtl.native import NetlistError, generate

PARAMS = preset("tiny").replace(dram_bytes=64 * 1024)


class Part(wiring.Component):
    """A SoC that does what ``build`` adds to it; ``irq`` depends on the result."""

    def __init__(self, build) -> None:
        self._build = build
        axi = Axi4(data_bytes=PARAMS.dram_word, id_width=AXI_ID_WIDTH)
        super().__init__({"axil": In(Axi4Lite()), "axi": Out(axi), "irq": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.part = part = Module()
        m.d.comb += self.irq.eq(self._build(part).xor())
        return m


def loop(m):
    a, b = Signal(8), Signal(8)
    m.d.comb += [a.eq(b + 1), b.eq(a + 1)]
    return a


def falling_edge(m):
    m.domains.fall = ClockDomain("fall", clk_edge="neg", reset_less=True)
    count = Signal(8)
    m.d.fall += count.eq(count + 1)
    return count


def transparent(m):
    m.submodules.memory = memory = Memory(shape=8, depth=8, init=[])
    write = memory.write_port()
    read = memory.read_port(transparent_for=[write])
    at = Signal(3)
    m.d.sync += at.eq(at + 1)
    m.d.comb += [write.en.eq(1), write.addr.eq(at), write.data.eq(at), read.en.eq(1), read.addr.eq(at)]
    return read.data


def wide_product(m):
    a = Signal(80, init=3)
    m.d.sync += a.eq((a * a)[:80])
    return a


def signed_division(m):
    a = Signal(range(-8, 8), init=3)
    m.d.sync += a.eq(a // 3)
    return a


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (loop, "module soc.part: combinational loop through a"),
        (falling_edge, "module soc.part: only the rising edge of one clock"),
        (transparent, "module soc.part: transparent read ports"),
        (wide_product, "module soc.part: Operator [*] of 80 bits; the limit is 64"),
        (signed_division, "module soc.part: the operator 's//'"),
    ],
)
def test_refused(build, message):
    with pytest.raises(NetlistError, match=message):
        generate(SimTop(PARAMS, Part(build)))
