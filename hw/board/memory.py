"""Defines the memory of a machine that has none outside: block RAM behind an AXI4 slave port, shared with the host."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.contract.params import SocParams
from hw.interfaces import ADDR, AXI_ID_WIDTH, Axi4

RESP_DECERR = 3


class MemoryPort(wiring.Signature):
    """Carries single accesses of the host, seen from it: a word address, byte enables and data of a write.
    ``rsp_valid`` comes in the cycle after a read was accepted, with its data."""

    def __init__(self, word_bytes: int) -> None:
        request = data.StructLayout({"write": 1, "addr": ADDR, "en": word_bytes, "data": 8 * word_bytes})
        super().__init__({"req": Out(stream.Signature(request)), "rsp_valid": In(1), "rsp_data": In(8 * word_bytes)})


class BlockMemory(wiring.Component):
    """Holds ``params.dram_bytes`` bytes. Reads and writes go on side by side, each burst by burst at a word per cycle;
    the host comes between bursts, before the next. A burst that begins beyond the memory answers DECERR, reads zeros
    and writes nothing; the host's accesses wrap around.

    Members
    -------
    axi : In(Axi4)
        Incrementing bursts of whole words within a page of 4 KiB.
    host : In(MemoryPort)
    """

    def __init__(self, params: SocParams) -> None:
        self._word, self._size = params.dram_word, params.dram_bytes
        super().__init__(
            {
                "axi": In(Axi4(data_bytes=self._word, id_width=AXI_ID_WIDTH)),
                "host": In(MemoryPort(self._word)),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        rows = self._size // self._word
        m.submodules.rows = memory = Memory(shape=8 * self._word, depth=rows, init=[])
        self._read(m, memory.read_port())
        self._write(m, memory.write_port(granularity=8))
        host, writes = self.host.req, self.host.req.payload.write
        with m.If(writes):
            m.d.comb += host.ready.eq(self._host_writes)
        with m.Else():
            m.d.comb += host.ready.eq(self._host_reads)
        return m

    def _row(self, address) -> tuple:
        """Return the row of a byte address, and whether the memory ends before it."""
        low = (self._word - 1).bit_length()
        high = (self._size - 1).bit_length()
        return address[low:high], address[high:].any()

    def _read(self, m: Module, port) -> None:
        axi, host = self.axi, self.host
        row, beyond = self._row(axi.araddr)
        left, next_row, failed = Signal(9), Signal.like(port.addr), Signal()
        idle, host_asks = Signal(), Signal()
        self._host_reads = Signal()
        m.d.comb += [
            idle.eq((left == 0) & ~axi.rvalid),
            host_asks.eq(host.req.valid & ~host.req.payload.write),
            self._host_reads.eq(idle),
            axi.arready.eq(idle & ~host_asks),
            axi.rdata.eq(port.data),
            host.rsp_data.eq(port.data),
            port.addr.eq(next_row),
            port.en.eq(0),  # what was read stays until it is taken
        ]
        m.d.sync += host.rsp_valid.eq(host_asks & idle)
        with m.If(host_asks & idle):
            m.d.comb += [port.addr.eq(host.req.payload.addr), port.en.eq(1)]
        with m.If(axi.arvalid & axi.arready):
            m.d.sync += [left.eq(axi.arlen + 1), next_row.eq(row), failed.eq(beyond), axi.rid.eq(axi.arid)]
        with m.If(failed):
            m.d.comb += [axi.rdata.eq(0), axi.rresp.eq(RESP_DECERR)]
        with m.If(~axi.rvalid | axi.rready):
            m.d.sync += axi.rvalid.eq(left != 0)
            with m.If(left != 0):
                m.d.comb += port.en.eq(1)
                m.d.sync += [left.eq(left - 1), next_row.eq(next_row + 1), axi.rlast.eq(left == 1)]

    def _write(self, m: Module, port) -> None:
        axi, host = self.axi, self.host
        row, beyond = self._row(axi.awaddr)
        busy, next_row, failed = Signal(), Signal.like(port.addr), Signal()
        idle, host_asks = Signal(), Signal()
        self._host_writes = Signal()
        m.d.comb += [
            idle.eq(~busy & ~axi.bvalid),
            host_asks.eq(host.req.valid & host.req.payload.write),
            self._host_writes.eq(idle),
            axi.awready.eq(idle & ~host_asks),
            axi.wready.eq(busy),
            port.addr.eq(next_row),
            port.data.eq(axi.wdata),
        ]
        with m.If(host_asks & idle):
            m.d.comb += [
                port.addr.eq(host.req.payload.addr), port.data.eq(host.req.payload.data),
                port.en.eq(host.req.payload.en),
            ]  # fmt: skip
        with m.If(axi.awvalid & axi.awready):
            m.d.sync += [busy.eq(1), next_row.eq(row), failed.eq(beyond), axi.bid.eq(axi.awid)]
        with m.If(axi.wvalid & axi.wready):
            with m.If(~failed):
                m.d.comb += port.en.eq(axi.wstrb)
            m.d.sync += next_row.eq(next_row + 1)
            with m.If(axi.wlast):
                m.d.sync += [busy.eq(0), axi.bvalid.eq(1)]
                with m.If(failed):
                    m.d.sync += axi.bresp.eq(RESP_DECERR)
                with m.Else():
                    m.d.sync += axi.bresp.eq(0)
        with m.If(axi.bvalid & axi.bready):
            m.d.sync += axi.bvalid.eq(0)
