"""Defines what both RTL backends simulate: the SoC, its DRAM, and a host that drives the register port."""

from amaranth.hdl import ClockDomain, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw import Axi4Lite
from hw.contract.params import SocParams
from sim.dram import Dram, fault_ports, timing_ports


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


class SimTop(wiring.Component):
    """Joins SoC, DRAM and host port.

    Parameters
    ----------
    params : SocParams
    soc : wiring.Component
        A SoC with ports ``axil`` (In(Axi4Lite)), ``axi`` (Out(Axi4)) and ``irq`` (Out(1)).

    Members
    -------
    cmd_*, rsp_*
        See :class:`HostPort`.
    irq : Out(1)
    stall_rate, stall_seed, dram_latency, dram_row_miss, dram_bandwidth, fault_*
        See :class:`sim.dram.Dram`.

    The clock is that of ``domain``. There is no reset: a simulation starts from the initial values, and a reset
    multiplexer before every register would cost speed.
    """

    def __init__(self, params: SocParams, soc: wiring.Component) -> None:
        self.params = params
        self.domain = ClockDomain("sync", reset_less=True)
        self.soc = soc
        self.dram = Dram(params)
        self.host = HostPort()
        members = {name: m for name, m in self.host.signature.members.items() if name != "axil"}
        stalls = {"stall_rate": In(8), "stall_seed": In(32)}
        super().__init__({**members, "irq": Out(1), **stalls, **timing_ports(params, "dram_"), **fault_ports()})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.domains.sync = self.domain
        m.submodules.soc = self.soc
        m.submodules.dram = self.dram
        m.submodules.host = self.host
        wiring.connect(m, self.host.axil, self.soc.axil)
        wiring.connect(m, self.soc.axi, self.dram.axi)
        for name, member in self.signature.members.items():
            if name == "irq":
                m.d.comb += self.irq.eq(self.soc.irq)
            elif name.startswith(("stall_", "fault_")):
                m.d.comb += getattr(self.dram, name).eq(getattr(self, name))
            elif name.startswith("dram_"):
                m.d.comb += getattr(self.dram, name.removeprefix("dram_")).eq(getattr(self, name))
            elif member.flow == In:
                m.d.comb += getattr(self.host, name).eq(getattr(self, name))
            else:
                m.d.comb += getattr(self, name).eq(getattr(self.host, name))
        return m
