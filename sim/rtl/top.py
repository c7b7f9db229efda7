"""Defines what both RTL backends simulate: the SoC, its DRAM, and a host that drives the register port."""

from amaranth.hdl import ClockDomain, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.board import HostPort
from hw.contract.params import SocParams
from sim.dram import Dram, fault_ports, timing_ports


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
