"""Defines the AXI4-Lite slave and the register files behind it, both derived from the tables in
``hw.contract.regs``."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.contract.regs import ENGINE_BASE, ENGINE_STRIDE, Access, Reg
from hw.interfaces import Axi4Lite
from hw.mux_tree import mux_tree
from hw.registers import Registers

ADDR_BITS = 16
BLOCK_BITS = (ENGINE_STRIDE - 1).bit_length()  #: bits of a byte address within one register block
RESP_OKAY, RESP_SLVERR = 0, 2


class RegisterBus(wiring.Signature):
    """Carries accesses to a register file, seen from the initiator.

    ``valid`` is held with stable ``addr`` (in words), ``write`` and ``wdata`` until ``ready``, with which ``rdata``
    and ``error`` (no such register, or not writable) are valid.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "valid": Out(1),
                "write": Out(1),
                "addr": Out(BLOCK_BITS - 2),
                "wdata": Out(32),
                "ready": In(1),
                "rdata": In(32),
                "error": In(1),
            }
        )


class RegisterFile(wiring.Component):
    """Decodes accesses to one block of registers; the registers themselves live where ``regs`` leads.

    Members
    -------
    bus : In(RegisterBus)
    regs : Out(Registers(table))
    """

    def __init__(self, table: tuple[Reg, ...]) -> None:
        self.table = table
        super().__init__({"bus": In(RegisterBus()), "regs": Out(Registers(table))})

    def elaborate(self, platform) -> Module:
        m = Module()
        bus = self.bus
        # Decoded a cycle ahead of the access, a register for each: the words that it chooses from come from far away.
        addr, write = Signal.like(bus.addr), Signal()
        single = [reg for reg in self.table if reg.count == 1]
        arrays = [reg for reg in self.table if reg.count > 1]
        hits = {reg: Signal(name=f"at_{reg.name.lower()}") for reg in self.table}

        readable = [reg for reg in single if reg.access != Access.WO]
        words = [Mux(hits[reg], getattr(self.regs, reg.name.lower()).r_data, 0) for reg in readable]

        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [addr.eq(bus.addr), write.eq(bus.write)]
                m.d.sync += [hit.eq(_within(bus.addr, reg)) for reg, hit in hits.items()]
                with m.If(bus.valid):
                    m.next = "ACCESS"
            with m.State("ACCESS"):
                m.d.sync += [
                    bus.rdata.eq(reduce(or_, words, Const(0, 32))),
                    bus.error.eq(~Cat(hits[reg] for reg in self.table if reg.access != Access.RO).any()),
                ]
                with m.If(~write):
                    m.d.sync += bus.error.eq(~Cat(hits.values()).any())
                m.next = "DONE"
                for reg in single:
                    element = getattr(self.regs, reg.name.lower())
                    m.d.comb += element.r_stb.eq(hits[reg] & ~write)
                    if reg.access != Access.RO:
                        m.d.comb += element.w_stb.eq(hits[reg] & write)
                for reg in arrays:
                    array = getattr(self.regs, reg.name.lower())
                    writable = reg.access != Access.RO
                    with m.If(hits[reg] & (~write | int(writable))):
                        m.d.comb += array.read.eq(~write)
                        if writable:
                            m.d.comb += array.write.eq(write)
                        m.d.sync += bus.rdata.eq(array.r_data)
                        with m.If(~array.ack):
                            m.next = "ACCESS"
            with m.State("DONE"):
                m.d.comb += bus.ready.eq(1)
                m.next = "IDLE"

        for reg in self.table:
            wires = getattr(self.regs, reg.name.lower())
            if reg.access != Access.RO:
                m.d.comb += wires.w_data.eq(bus.wdata)
            if reg.count > 1:
                m.d.comb += wires.index.eq(addr - reg.offset // 4)
        return m


def _within(addr: Value, reg: Reg) -> Value:
    """Return whether the word address ``addr`` is that of ``reg``, or of one of several."""
    first = reg.offset // 4
    return addr == first if reg.count == 1 else (addr >= first) & (addr < first + reg.count)


class CsrSlave(wiring.Component):
    """Answers AXI4-Lite accesses to ``blocks`` register files: block 0 is global, block 1 + e is engine e.

    One access at a time; reads and writes that wait together take turns. Unmapped addresses, addresses that are not
    a multiple of 4, writes to read-only registers, and writes of less than a whole word answer SLVERR. One access of
    each channel is taken ahead: no ready depends combinationally on a valid.

    Members
    -------
    axil : In(Axi4Lite)
    block : Out(RegisterBus).array(blocks)
    """

    def __init__(self, blocks: int) -> None:
        assert ENGINE_BASE == ENGINE_STRIDE, "block number = upper address bits"
        self.blocks = blocks
        super().__init__({"axil": In(Axi4Lite(ADDR_BITS)), "block": Out(RegisterBus()).array(blocks)})

    def elaborate(self, platform) -> Module:
        m = Module()
        axil = self.axil
        # What each channel brought is held until it has been answered, so that no ready depends on a valid.
        address, write, after_read = Signal(ADDR_BITS), Signal(), Signal()
        aw_held, w_held, ar_held = Signal(), Signal(), Signal()
        aw_addr, ar_addr, strobes = Signal(ADDR_BITS), Signal(ADDR_BITS), Signal(4)
        data, legal = Signal(32), Signal()
        for channel, held, kept in (
            ("aw", aw_held, [aw_addr.eq(axil.awaddr)]),
            ("w", w_held, [data.eq(axil.wdata), strobes.eq(axil.wstrb)]),
            ("ar", ar_held, [ar_addr.eq(axil.araddr)]),
        ):
            m.d.comb += getattr(axil, f"{channel}ready").eq(~held)
            with m.If(~held & getattr(axil, f"{channel}valid")):
                m.d.sync += [held.eq(1), *kept]
        m.d.comb += [
            address.eq(Mux(write, aw_addr, ar_addr)),
            legal.eq((address[:2] == 0) & (~write | strobes.all())),
        ]
        number = address[BLOCK_BITS:]
        valid, ready, error = Signal(), Signal(), Signal()
        rdata = Signal(32)
        for b in range(self.blocks):
            bus = self.block[b]
            m.d.comb += [
                bus.valid.eq(valid & (number == b)),
                bus.write.eq(write),
                bus.addr.eq(address[2:BLOCK_BITS]),
                bus.wdata.eq(data),
            ]
        m.d.comb += [
            ready.eq(mux_tree(number, [bus.ready for bus in self.block] + [Const(1)] * (16 - self.blocks))),
            error.eq(mux_tree(number, [bus.error for bus in self.block] + [Const(1)] * (16 - self.blocks))),
            rdata.eq(mux_tree(number, [bus.rdata for bus in self.block])),
            axil.bresp.eq(axil.rresp),
        ]

        with m.FSM():
            with m.State("IDLE"):
                can_write = (aw_held | axil.awvalid) & (w_held | axil.wvalid)
                can_read = ar_held | axil.arvalid
                with m.If(can_write | can_read):
                    m.d.sync += write.eq(can_write & (after_read | ~can_read))
                    m.next = "ACCESS"
            with m.State("ACCESS"):
                m.d.comb += valid.eq(legal)
                with m.If(ready | ~legal):
                    m.d.sync += [
                        axil.rdata.eq(Mux(error | ~legal, 0, rdata)),
                        axil.rresp.eq(Mux(error | ~legal, RESP_SLVERR, RESP_OKAY)),
                    ]
                    m.next = "RESPOND"
            with m.State("RESPOND"):
                m.d.comb += [axil.bvalid.eq(write), axil.rvalid.eq(~write)]
                with m.If(Mux(write, axil.bready, axil.rready)):
                    m.d.sync += after_read.eq(~write)
                    with m.If(write):
                        m.d.sync += [aw_held.eq(0), w_held.eq(0)]
                    with m.Else():
                        m.d.sync += ar_held.eq(0)
                    m.next = "IDLE"
        return m
