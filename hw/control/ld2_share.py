"""Shares one LV2 load unit between two command streams, the body's and the prologues'."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.contract.timing import SETTLED, UNIT_IN_FLIGHT
from hw.control.signatures import ACTIVITY, PrologueLoads
from hw.interfaces import COMMAND, UnitPort


class Ld2Share(wiring.Component):
    """Gives the LD2 unit to the body or the loader, command by command; a body command that is ready goes first.

    Commands of the two never overlap in the unit. So its counters belong to one side at any time, and a prologue
    that faults or is abandoned can be taken out without harm to the body that runs: the unit is aborted and reset
    alone, and only the loader hears of it. A body command that comes meanwhile waits.

    Members
    -------
    loads : In(PrologueLoads)
    body : In(stream of COMMAND)
    body_done, body_fault : Out(1)
        The unit's pulses for the body's commands.
    body_active : Out(1)
        Commands of the body are in the unit.
    abort : In(1)
        Stop the unit for good.
    unit : In(UnitPort)
        The LD2 unit.
    unit_reset : Out(1)
        Reset the unit (no transaction is outstanding).
    quiet : Out(1)
        The unit is not busy.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "loads": In(PrologueLoads()),
                "body": In(stream.Signature(COMMAND)),
                "body_done": Out(1),
                "body_fault": Out(1),
                "body_active": Out(1),
                "abort": In(1),
                "unit": In(UnitPort()),
                "unit_reset": Out(1),
                "quiet": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        unit = self.unit
        to_loader = Signal()  # whose commands are in the unit, or on offer to it
        offering = Signal()
        in_flight = Signal(range(UNIT_IN_FLIGHT + 1))
        recovering, settled = Signal(), Signal(range(SETTLED + 1))

        accepted = Signal()
        m.d.comb += [
            unit.cmd.valid.eq(offering & Mux(to_loader, self.loads.cmd.valid, self.body.valid)),
            unit.cmd.payload.eq(Mux(to_loader, self.loads.cmd.payload, self.body.payload)),
            accepted.eq(unit.cmd.valid & unit.cmd.ready),
            self.loads.cmd.ready.eq(accepted & to_loader),
            self.body.ready.eq(accepted & ~to_loader),
        ]
        room = (in_flight != UNIT_IN_FLIGHT) & ~recovering & ~unit.fault
        empty = in_flight == 0
        with m.If(offering):
            with m.If(accepted | recovering):
                m.d.sync += offering.eq(0)
        with m.Elif(room & self.body.valid & (empty | ~to_loader)):
            m.d.sync += [offering.eq(1), to_loader.eq(0)]
        with m.Elif(room & self.loads.cmd.valid & ~self.body.valid & (empty | to_loader)):
            m.d.sync += [offering.eq(1), to_loader.eq(1)]
        m.d.sync += in_flight.eq(in_flight + accepted - unit.done)

        m.d.comb += [
            self.loads.done.eq(unit.done & to_loader),
            self.body_done.eq(unit.done & ~to_loader),
            self.loads.fault.eq(unit.fault & to_loader & ~recovering),
            self.body_fault.eq(unit.fault & ~to_loader),
            self.loads.active.eq(~empty & to_loader),
            self.body_active.eq(~empty & ~to_loader),
            self.loads.present.eq((to_loader & (~empty | offering)) | recovering),
            unit.abort.eq(self.abort | recovering),
            self.quiet.eq(~unit.busy),
            self.loads.fault_info.eq(unit.fault_info),
            *(
                self.loads.activity[name].eq(unit.busy if name == "busy" else getattr(unit, f"mon_{name}"))
                for name, _ in ACTIVITY
            ),
        ]

        # A prologue faulted or is abandoned: quiesce the unit and reset it.
        settles = recovering & ~unit.busy & ~self.unit_reset
        m.d.sync += self.unit_reset.eq(settles & (settled == SETTLED - 1))
        with m.If(self.loads.fault | (self.loads.abandon & self.loads.present)):
            m.d.sync += recovering.eq(1)
        with m.If(settles):
            m.d.sync += settled.eq(settled + 1)
        with m.Else():
            m.d.sync += settled.eq(0)
        with m.If(self.unit_reset):
            m.d.sync += [recovering.eq(0), in_flight.eq(0)]
        return m
