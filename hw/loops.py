"""Counts nested loops and the strided addresses they walk, one step per cycle, for the MAC and VEC units."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class LoopNest(wiring.Component):
    """Counts ``levels`` nested loops; level 0 is the innermost.

    Members: ``load``: In, start over with ``count`` iterations per level (at least one each); ``step``: In, go to the
    next iteration; ``moves``: Out, one-hot, the level that a step advances while all inner levels wrap; ``last``: Out,
    this is the last iteration.
    """

    def __init__(self, levels: int, width: int) -> None:
        super().__init__(
            {
                "load": In(1), "step": In(1), "count": In(width).array(levels),
                "moves": Out(levels), "last": Out(1),
            }
        )  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        wraps = 1  # all levels inside the current one are at their end
        for level, count in enumerate(self.count):
            left = Signal(count.shape(), name=f"left{level}")
            again = Signal(count.shape(), name=f"again{level}")
            at_end = Signal(name=f"at_end{level}")
            m.d.comb += [at_end.eq(left == 0), self.moves[level].eq(wraps & ~at_end)]
            with m.If(self.load):
                m.d.sync += [left.eq(count - 1), again.eq(count - 1)]
            with m.Elif(self.step & wraps):
                m.d.sync += left.eq(Mux(at_end, again, left - 1))
            reached = Signal(name=f"wraps{level}")
            m.d.comb += reached.eq(wraps & at_end)
            wraps = reached
        m.d.comb += self.last.eq(wraps)
        return m


class StridedAddress(wiring.Component):
    """Keeps an address that follows a :class:`LoopNest`: ``base`` plus the sum of index times ``stride`` per level.

    Each level remembers where its iteration began, so that one adder serves all levels. As every such start is itself
    visited, a user that stops at the first address out of range needs ``width`` bits for one stride beyond, no more.

    Members: ``load`` with ``base``: In; ``step`` with ``moves``: In, from the nest; ``stride``: In; ``addr``: Out,
    signed, ``width`` bits.
    """

    def __init__(self, levels: int, width: int, stride_width: int) -> None:
        super().__init__(
            {
                "load": In(1), "base": In(signed(width)), "step": In(1), "moves": In(levels),
                "stride": In(signed(stride_width)).array(levels), "addr": Out(signed(width)),
            }
        )  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        starts = [Signal(signed(len(self.base)), name=f"start{k}") for k in range(len(self.stride))]
        start, stride = Signal.like(self.addr), Signal.like(self.stride[0])
        for level, (own, own_stride) in enumerate(zip(starts, self.stride, strict=True)):
            with m.If(self.moves[level]):
                m.d.comb += [start.eq(own), stride.eq(own_stride)]
        following = Signal.like(self.addr)
        m.d.comb += [following.eq(start + stride), self.addr.eq(starts[0])]
        for level, own in enumerate(starts):
            with m.If(self.load):
                m.d.sync += own.eq(self.base)
            with m.Elif(self.step & self.moves[level:].any()):
                m.d.sync += own.eq(following)
        return m
