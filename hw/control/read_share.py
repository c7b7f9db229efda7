"""Puts two bus readers on one port."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from hw.contract.params import SocParams
from hw.interfaces import BusReadPort

BURSTS = 32  #: bursts in flight


class ReadShare(wiring.Component):
    """Merges two :class:`~hw.interfaces.BusReadPort` clients; the first has priority. Data returns in request order.

    Members
    -------
    client : In(BusReadPort).array(2)
    bus : Out(BusReadPort)
    """

    def __init__(self, params: SocParams) -> None:
        port = BusReadPort(params)
        super().__init__({"client": In(port).array(2), "bus": Out(port)})

    def elaborate(self, platform) -> Module:
        m = Module()
        first, second = self.client[0], self.client[1]
        m.submodules.owners = owners = SyncFIFOBuffered(width=1, depth=BURSTS)

        # A request that was offered stays offered until the bus takes it.
        held, held_choice, choice = Signal(), Signal(), Signal()
        request = self.bus.req
        m.d.comb += [
            choice.eq(Mux(held, held_choice, ~first.req.valid)),
            request.valid.eq((first.req.valid | second.req.valid) & owners.w_rdy),
            request.payload.eq(Mux(choice, second.req.payload, first.req.payload)),
            first.req.ready.eq(request.ready & owners.w_rdy & ~choice),
            second.req.ready.eq(request.ready & owners.w_rdy & choice),
            owners.w_en.eq(request.valid & request.ready),
            owners.w_data.eq(choice),
        ]
        m.d.sync += [held.eq(request.valid & ~request.ready), held_choice.eq(choice)]

        beat = self.bus.data
        m.d.comb += [
            first.data.payload.eq(beat.payload),
            second.data.payload.eq(beat.payload),
            first.data.valid.eq(beat.valid & owners.r_rdy & ~owners.r_data),
            second.data.valid.eq(beat.valid & owners.r_rdy & owners.r_data),
            beat.ready.eq(owners.r_rdy & Mux(owners.r_data, second.data.ready, first.data.ready)),
            owners.r_en.eq(beat.valid & beat.ready & beat.payload.last),
        ]
        return m
