"""Defines the master that makes single register accesses, for a host that is outside."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.interfaces import Axi4Lite


class HostPort(wiring.Component):
    """Is a minimal AXI4-Lite master that makes one register access at a time.

    Members
    -------
    cmd_valid, cmd_write, cmd_addr, cmd_data : In
        Starts an access if none is under way.
    rsp_valid : Out(1)
        High for one cycle when the access is over.
    rsp_data, rsp_error : Out
        Valid from then on until the next access: the data read, and whether the slave refused.
    axil : Out(Axi4Lite)
    """

    def __init__(self) -> None:
        axil = Axi4Lite()
        self._addr_width = axil.members["awaddr"].shape
        super().__init__(
            {
                "cmd_valid": In(1),
                "cmd_write": In(1),
                "cmd_addr": In(self._addr_width),
                "cmd_data": In(32),
                "rsp_valid": Out(1),
                "rsp_data": Out(32),
                "rsp_error": Out(1),
                "axil": Out(axil),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        axil = self.axil
        m.d.comb += [axil.wstrb.eq(0b1111), axil.bready.eq(1), axil.rready.eq(1)]
        m.d.sync += self.rsp_valid.eq(0)
        for valid, ready in (
            (axil.awvalid, axil.awready),
            (axil.wvalid, axil.wready),
            (axil.arvalid, axil.arready),
        ):
            with m.If(ready):
                m.d.sync += valid.eq(0)
        with m.FSM():
            with m.State("IDLE"):
                with m.If(self.cmd_valid):
                    m.d.sync += [
                        axil.awaddr.eq(self.cmd_addr),
                        axil.araddr.eq(self.cmd_addr),
                        axil.wdata.eq(self.cmd_data),
                        axil.awvalid.eq(self.cmd_write),
                        axil.wvalid.eq(self.cmd_write),
                        axil.arvalid.eq(~self.cmd_write),
                    ]
                    m.next = "BUSY"
            with m.State("BUSY"):
                with m.If(axil.bvalid):
                    m.d.sync += [self.rsp_valid.eq(1), self.rsp_data.eq(0), self.rsp_error.eq(axil.bresp[1])]
                    m.next = "IDLE"
                with m.If(axil.rvalid):
                    m.d.sync += [
                        self.rsp_valid.eq(1),
                        self.rsp_data.eq(axil.rdata),
                        self.rsp_error.eq(axil.rresp[1]),
                    ]
                    m.next = "IDLE"
        return m
