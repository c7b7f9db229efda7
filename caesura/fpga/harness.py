"""Puts shift registers round a component, so that it fits into any package however many ports it has."""

from amaranth.hdl import Cat, ClockDomain, ClockSignal, Module, ResetSignal, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class Harness(wiring.Component):
    """Feeds all inputs of ``machine`` from one pin and folds all its outputs into another.

    A flip-flop stands at each input bit and at each output bit, so that every path of the machine is one from register
    to register. None of it computes anything: it keeps the tools from removing logic, and stands in for what a board's
    own top would connect.

    Members: ``reset_pin``: In(1), ``data_in``: In(1), ``data_out``: Out(1). ``clock`` is the clock of all.
    """

    def __init__(self, machine: wiring.Component) -> None:
        self._machine = machine
        self.clock = Signal(name="clk")
        super().__init__({"reset_pin": In(1), "data_in": In(1), "data_out": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.domains.sync = ClockDomain()
        m.domains.pins = ClockDomain(reset_less=True)
        m.submodules.machine = machine = self._machine
        inputs: list[Value] = []
        outputs: list[Value] = []
        for _, member, value in machine.signature.flatten(machine):
            (inputs if member.flow == wiring.In else outputs).append(Value.cast(value))
        into, out_of = Cat(inputs), Cat(outputs)
        shifted = Signal(len(into), name="harness_in")
        taken, folded = Signal(len(out_of), name="harness_out"), Signal(len(out_of), name="harness_fold")
        reset = Signal(name="harness_reset")
        m.d.comb += [
            ClockSignal().eq(self.clock), ClockSignal("pins").eq(self.clock), ResetSignal().eq(reset),
            into.eq(shifted), self.data_out.eq(folded[-1]),
        ]  # fmt: skip
        m.d.pins += [
            reset.eq(self.reset_pin), shifted.eq(Cat(self.data_in, shifted)), taken.eq(out_of),
            folded.eq(taken ^ Cat(self.data_in, folded)),
        ]  # fmt: skip
        return m
