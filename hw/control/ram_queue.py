"""Defines a first-in, first-out queue whose head is the read register of a block RAM."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out


class RamQueue(wiring.Component):
    """Holds ``depth`` entries (a power of two, at least 2) in a block RAM and one more at the head.

    An entry that enters an empty queue is at the head two cycles later. The head is replaced in the cycle after it
    was taken, if another entry waits.

    Members
    -------
    i : In(stream of ``shape``)
    o : Out(stream of ``shape``)
        The head.
    empty : Out(1)
        No entry, neither at the head nor on its way there.
    """

    def __init__(self, shape, depth: int) -> None:
        if depth < 2 or depth & (depth - 1):
            raise ValueError(f"the depth of a queue must be a power of two, at least 2, not {depth!r}")
        self._shape, self._depth = shape, depth
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)), "empty": Out(1)})
        # State, here rather than in elaborate() so that a proof can relate it to what the queue has seen.
        self._level = Signal(range(depth + 1))  #: entries in the RAM
        self._oldest = Signal(range(depth))  #: row of the oldest of them
        self._next = Signal(range(depth))  #: row of the next one

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.ram = ram = Memory(shape=self._shape, depth=self._depth, init=[])
        write, read = ram.write_port(), ram.read_port()
        push, pop = Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(self._level != self._depth),
            push.eq(self.i.valid & self.i.ready),
            write.en.eq(push),
            write.addr.eq(self._next),
            write.data.eq(self.i.payload),
            pop.eq((self._level != 0) & (~self.o.valid | self.o.ready)),
            read.en.eq(pop),
            read.addr.eq(self._oldest),
            self.o.payload.eq(read.data),
            self.empty.eq((self._level == 0) & ~self.o.valid),
        ]
        m.d.sync += self._level.eq(self._level + push - pop)
        with m.If(push):
            m.d.sync += self._next.eq(self._next + 1)
        with m.If(pop):
            m.d.sync += [self._oldest.eq(self._oldest + 1), self.o.valid.eq(1)]
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        return m
