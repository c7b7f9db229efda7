"""Defines a spill register: it ends the chain of ``ready`` signals through a stream, and costs no cycle."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.data_register import data_register


class SpillRegister(wiring.Component):
    """Passes entries on in the cycle in which they come; keeps one that is not taken at once.

    ``i.ready`` comes from a register alone: whoever fills ``i`` goes on for one entry after ``o`` has stopped, and
    waits for as long as that one is kept. Entries leave ``o`` in the cycles in which they would without it, or earlier.

    Members: ``i``: In(stream), ``o``: Out(stream), both of ``shape``; ``clear``: In, drop what is kept; ``kept``: Out,
    an entry is kept.
    """

    def __init__(self, shape) -> None:
        self._shape = shape
        super().__init__(
            {"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)), "clear": In(1), "kept": Out(1)}
        )

    def elaborate(self, platform):
        m = Module()
        store, free = data_register(self._shape), Signal(init=1)
        stays = self.o.valid & ~self.o.ready & ~self.clear
        m.d.comb += [
            self.i.ready.eq(free),
            self.o.valid.eq(self.i.valid | self.kept),
            self.o.payload.eq(Mux(self.kept, store, self.i.payload)),
        ]
        m.d.sync += [self.kept.eq(stays), free.eq(~stays)]  # two registers, as one may go far
        with m.If(~self.kept):
            m.d.sync += store.eq(self.i.payload)
        return m
