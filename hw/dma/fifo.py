"""Defines a queue with stream interfaces."""

from amaranth.hdl import Module, Shape
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out


class StreamFifo(wiring.Component):
    """Passes entries on first in, first out: ``depth`` of them in a memory with synchronous reads, two cycles from
    ``i`` to ``o``.

    Members: ``i``: In(stream), ``o``: Out(stream), both of ``shape``; ``busy``: Out, there are entries, at ``o`` or on
    their way.
    """

    def __init__(self, shape, depth: int) -> None:
        self._shape = shape
        self._depth = depth
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)), "busy": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = SyncFIFOBuffered(width=Shape.cast(self._shape).width, depth=self._depth)
        m.d.comb += [
            fifo.w_data.eq(self.i.payload),
            fifo.w_en.eq(self.i.valid),
            self.i.ready.eq(fifo.w_rdy),
            self.o.payload.eq(fifo.r_data),
            self.o.valid.eq(fifo.r_rdy),
            fifo.r_en.eq(self.o.ready),
            self.busy.eq(fifo.level != 0),
        ]
        return m
