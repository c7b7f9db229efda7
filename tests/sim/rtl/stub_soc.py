"""A SoC small enough for backend tests: sixteen registers and a copy engine."""

from amaranth.hdl import Array, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.axi.interconnect import AxiInterconnect
from hw.contract.params import SocParams
from hw.interfaces import AXI_ID_WIDTH, Axi4, Axi4Lite

SOURCE, DESTINATION, BEATS, BURSTS, START, DONE = (4 * i for i in range(6))
DEAD = 0xF00  #: an address that never answers
BAD = 0xE00  #: an address that answers SLVERR


class StubSoc(wiring.Component):
    """Registers 0 to 15 read back; writing START copies BURSTS bursts of BEATS words and counts them in DONE.

    The interrupt is high while DONE is not zero; writing DONE sets it.
    """

    def __init__(self, params: SocParams) -> None:
        self.params = params
        super().__init__(
            {
                "axil": In(Axi4Lite()),
                "axi": Out(Axi4(data_bytes=params.dram_word, id_width=AXI_ID_WIDTH)),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        regs = Array(Signal(32, name=f"reg{i}") for i in range(16))
        self._registers(m, regs)
        self._copy(m, regs)
        m.d.comb += self.irq.eq(regs[DONE // 4].any())
        return m

    def _registers(self, m, regs):
        axil = self.axil
        done = Signal()
        m.d.comb += done.eq(~axil.bvalid & axil.awvalid & axil.wvalid)
        m.d.comb += [axil.awready.eq(done), axil.wready.eq(done)]
        with m.If(axil.bready):
            m.d.sync += axil.bvalid.eq(0)
        with m.If(done & (axil.awaddr != DEAD)):
            m.d.sync += [axil.bvalid.eq(1), axil.bresp.eq((axil.awaddr == BAD) << 1)]
            with m.If(axil.awaddr < 64):
                m.d.sync += regs[axil.awaddr[2:6]].eq(axil.wdata)
        with m.If(axil.rready):
            m.d.sync += axil.rvalid.eq(0)
        m.d.comb += axil.arready.eq(~axil.rvalid)
        with m.If(axil.arvalid & axil.arready & (axil.araddr != DEAD)):
            m.d.sync += [
                axil.rvalid.eq(1),
                axil.rresp.eq((axil.araddr == BAD) << 1),
                axil.rdata.eq(regs[axil.araddr[2:6]]),
            ]

    def _copy(self, m, regs):
        m.submodules.axi = axi = AxiInterconnect(self.params, readers=1, writers=1)
        wiring.connect(m, axi.axi, wiring.flipped(self.axi))
        read, write = axi.read[0], axi.write[0]
        size = Signal(32)
        m.d.comb += [
            size.eq(regs[BEATS // 4] * self.params.dram_word),
            read.req.p.addr.eq(regs[SOURCE // 4]),
            read.req.p.beats.eq(regs[BEATS // 4]),
            write.req.p.addr.eq(regs[DESTINATION // 4]),
            write.req.p.beats.eq(regs[BEATS // 4]),
            write.data.valid.eq(read.data.valid),
            read.data.ready.eq(write.data.ready),
            write.data.p.data.eq(read.data.p.data),
            write.data.p.strb.eq(~0),
            write.data.p.last.eq(read.data.p.last),
            write.rsp.ready.eq(1),
        ]
        with m.If(write.rsp.valid):
            m.d.sync += regs[DONE // 4].eq(regs[DONE // 4] + 1)
        requested_read, requested_write = Signal(), Signal()
        with m.If(regs[START // 4].any()):
            m.d.comb += [read.req.valid.eq(~requested_read), write.req.valid.eq(~requested_write)]
            with m.If(read.req.ready):
                m.d.sync += requested_read.eq(1)
            with m.If(write.req.ready):
                m.d.sync += requested_write.eq(1)
            with m.If(requested_read & requested_write):
                m.d.sync += [
                    requested_read.eq(0),
                    requested_write.eq(0),
                    regs[SOURCE // 4].eq(regs[SOURCE // 4] + size),
                    regs[DESTINATION // 4].eq(regs[DESTINATION // 4] + size),
                    regs[BURSTS // 4].eq(regs[BURSTS // 4] - 1),
                ]
                with m.If(regs[BURSTS // 4] == 1):
                    m.d.sync += regs[START // 4].eq(0)
