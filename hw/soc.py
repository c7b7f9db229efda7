"""Defines the SoC: engines, LV2, events, registers and the memory port."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.axi.interconnect import ATTRIBUTES, AxiInterconnect
from hw.contract.params import SocParams
from hw.contract.regs import GLOBAL_REGS, ID_VALUE, VERSION_VALUE
from hw.control.events import EventCounters
from hw.csr import ADDR_BITS, CsrSlave, RegisterFile
from hw.engine import READERS, WRITERS, Engine
from hw.interfaces import AXI_ID_WIDTH, Axi4, Axi4Lite
from hw.scratchpad import Scratchpad


class Soc(wiring.Component):
    """Is the whole accelerator.

    Members
    -------
    axil : In(Axi4Lite)
        Registers, see ``hw.contract.regs``.
    axi : Out(Axi4)
        Memory: ``params.dram_word`` data bytes; ID 3e + i is read client i, ID 2e + i write client i of engine e.
    irq : Out(1)
        Level: some engine has an enabled interrupt pending.
    """

    def __init__(self, params: SocParams) -> None:
        self.params = params
        super().__init__(
            {
                "axil": In(Axi4Lite(ADDR_BITS)),
                "axi": Out(Axi4(data_bytes=params.dram_word, id_width=AXI_ID_WIDTH)),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        p = self.params
        n = p.engines
        m.submodules.axi = axi = AxiInterconnect(p, readers=READERS * n, writers=WRITERS * n)
        m.submodules.lv2 = lv2 = Scratchpad(p.lv2_bytes, p.lv1_word, p.lv2_banks, readers=2 * n, writers=2 * n)
        m.submodules.events = events = EventCounters(p)
        m.submodules.csr = csr = CsrSlave(1 + n)
        m.submodules.registers = registers = RegisterFile(GLOBAL_REGS)
        connect(m, flipped(self.axi), axi.axi)
        connect(m, flipped(self.axil), csr.axil)
        connect(m, csr.block[0], registers.bus)

        now = Signal(64)
        m.d.sync += now.eq(now + 1)
        interrupts = Signal(n)
        for e in range(n):
            m.submodules[f"engine{e}"] = engine = Engine(p)
            connect(m, csr.block[1 + e], engine.regs)
            connect(m, engine.event, events.engine[e])
            for i in range(READERS):
                connect(m, engine.bus_read[i], axi.read[READERS * e + i])
            for i in range(WRITERS):
                connect(m, engine.bus_write[i], axi.write[WRITERS * e + i])
            for i in range(2):
                connect(m, engine.lv2_read[i], lv2.read[2 * e + i])
                connect(m, engine.lv2_write[i], lv2.write[2 * e + i])
            m.d.comb += [engine.now.eq(now), interrupts[e].eq(engine.interrupt)]
        m.d.comb += self.irq.eq(interrupts.any())
        self._global_registers(m, registers.regs, events, now, interrupts)
        self._axi_attributes(m, registers.regs.axi_attributes, axi)
        return m

    def _axi_attributes(self, m: Module, register, axi: AxiInterconnect) -> None:
        entry = next(reg for reg in GLOBAL_REGS if reg.name == "AXI_ATTRIBUTES")
        attributes = Signal(ATTRIBUTES, init=ATTRIBUTES.from_bits(entry.reset))
        m.d.comb += [register.r_data.eq(attributes), axi.attributes.eq(attributes)]
        with m.If(register.w_stb):
            m.d.sync += attributes.as_value().eq(register.w_data.as_value() & entry.mask)

    def _global_registers(self, m: Module, regs, events: EventCounters, now: Signal, interrupts: Signal) -> None:
        upper = Signal(32)
        with m.If(regs.cycle_lo.r_stb):
            m.d.sync += upper.eq(now[32:])
        m.d.comb += [
            regs.id.r_data.eq(ID_VALUE),
            regs.version.r_data.eq(VERSION_VALUE),
            regs.params.r_data.eq(int(self.params.digest()[:8], 16)),
            regs.engines.r_data.eq(self.params.engines),
            regs.cycle_lo.r_data.eq(now[:32]),
            regs.cycle_hi.r_data.eq(upper),
            regs.irq.r_data.eq(interrupts),
            events.index.eq(regs.event.index),
            events.read.eq(regs.event.read),
            events.write.eq(regs.event.write),
            events.w_data.eq(regs.event.w_data),
            regs.event.r_data.eq(events.r_data),
            regs.event.ack.eq(events.ack),
        ]
