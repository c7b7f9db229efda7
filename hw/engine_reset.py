"""Resets one engine without disturbing the bus."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.contract.timing import RESET_PATIENCE, SETTLED


class EngineReset(wiring.Component):
    """Quiesces an engine, then resets it: transactions the bus has accepted are never abandoned.

    Members
    -------
    request : In(1)
        Pulse.
    quiet : In(1)
        The engine has no bus transaction outstanding.
    halt : Out(1)
        Finish what is outstanding and begin nothing.
    reset : Out(1)
        One cycle, at the end.
    busy : Out(1)
        From the cycle after the request to the reset.
    hung : Out(1)
        The reset has waited for ``RESET_PATIENCE`` cycles: a transaction is not answered. An answer that came after a
        reset would be taken for that of another transaction, so it goes on waiting.
    """

    def __init__(self) -> None:
        super().__init__(
            {"request": In(1), "quiet": In(1), "halt": Out(1), "reset": Out(1), "busy": Out(1), "hung": Out(1)}
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        silence = Signal(range(SETTLED + 1))
        m.d.comb += [self.halt.eq(self.busy), self.reset.eq(silence == SETTLED)]
        with m.If(self.request):
            m.d.sync += self.busy.eq(1)
        with m.Elif(self.reset):
            m.d.sync += self.busy.eq(0)
        waited = Signal(range(RESET_PATIENCE + 1))
        m.d.comb += self.hung.eq(waited == RESET_PATIENCE)
        with m.If(~self.busy):
            m.d.sync += waited.eq(0)
        with m.Elif(~self.hung):
            m.d.sync += waited.eq(waited + 1)
        with m.If(self.busy & self.quiet & ~self.reset):
            m.d.sync += silence.eq(silence + 1)
        with m.Else():
            m.d.sync += silence.eq(0)
        return m
