"""Defines the round-robin arbiter of the interconnect."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class RoundRobinArbiter(wiring.Component):
    """Grants one of ``count`` requests; whoever was served last comes last.

    Members
    -------
    requests : In(count)
    taken : In(1)
        The grant is used this cycle: the priority moves behind it.
    grant : Out(count)
        One-hot, combinational; zero without a request. While ``taken`` is low it only moves to a request of
        higher priority.
    """

    def __init__(self, count: int) -> None:
        if count < 1:
            raise ValueError(f"an arbiter needs at least one request, not {count!r}")
        self.count = count
        super().__init__({"requests": In(count), "taken": In(1), "grant": Out(count)})
        self._behind = Signal(count)  #: the requests behind the last grant, which come first

    def elaborate(self, platform) -> Module:
        m = Module()
        # Of each request, whether another goes before it: requests come late, and pass as few gates as can be.
        pressing = Signal(self.count)
        m.d.comb += pressing.eq(self.requests & self._behind)
        for n in range(self.count):
            others = self.requests[:n].any() | pressing[n + 1 :].any()
            before = Mux(self._behind[n], pressing[:n].any(), others)
            m.d.comb += self.grant[n].eq(self.requests[n] & ~before)
        with m.If(self.taken & self.grant.any()):
            m.d.sync += self._behind.eq(Cat(self.grant[:n].any() for n in range(self.count)))
        return m
