"""Defines the round-robin arbiter of the interconnect."""

from amaranth.hdl import Module, Mux, Signal, Value
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
        # The lowest bit set, and all above it, of either set of candidates: known side by side, without a carry chain.
        first, others, passed = Signal(self.count), Signal(self.count), Signal(self.count)
        m.d.comb += [
            first.eq(_upwards(self.requests & self._behind)),
            others.eq(_upwards(self.requests)),
            passed.eq(Mux(first[-1], first, others)),
            self.grant.eq(passed & ~(passed << 1)),
        ]
        with m.If(self.taken & self.grant.any()):
            m.d.sync += self._behind.eq(passed << 1)
        return m


def _upwards(value: Value) -> Value:
    """Return ``value`` with every bit above one that is set."""
    width, step = len(value), 1
    while step < width:
        value = (value | (value << step))[:width]
        step *= 2
    return value
